"""``gradwire.autograd.grad_mode``: the grad modes under the name of PyTorch's module."""

from .._core.context.modes import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
