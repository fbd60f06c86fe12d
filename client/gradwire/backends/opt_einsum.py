"""``torch.backends.opt_einsum``: in which order einsum contracts. Here from left to right, or as two operands go."""

enabled = False
strategy = None


def is_available() -> bool:
    """No."""
    return False


def get_opt_einsum() -> None:
    """There is none."""
