"""``torch.mps``: gradwire computes on no Apple GPUs."""


def is_available() -> bool:
    """No."""
    return False


def device_count() -> int:
    """None."""
    return 0
