"""``torch.jit._state``: whether PyTorch's compiler of Python source is on. It never is."""


def enable() -> None:
    """Without effect: there is no compiler."""


def disable() -> None:
    """Without effect: there is no compiler."""
