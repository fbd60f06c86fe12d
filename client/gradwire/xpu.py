"""``torch.xpu``: gradwire computes on no Intel GPUs."""


def is_available() -> bool:
    """No."""
    return False


def device_count() -> int:
    """None."""
    return 0
