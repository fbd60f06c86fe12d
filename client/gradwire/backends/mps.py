"""``torch.backends.mps``: gradwire computes on no Apple GPU."""


def is_available() -> bool:
    """No."""
    return False


def is_built() -> bool:
    """No."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """No: it is asked of the machine that would compute."""
    return False
