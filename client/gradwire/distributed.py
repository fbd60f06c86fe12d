"""``torch.distributed``: gradwire has none of it, and says so to programs that ask first."""


def is_available() -> bool:
    """No: a program with several processes lets them share a session instead."""
    return False


def is_initialized() -> bool:
    """No."""
    return False


def is_torchelastic_launched() -> bool:
    """No."""
    return False
