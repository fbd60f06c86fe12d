"""``torch.autograd``: backward and grad over proxies. Neither waits for the server."""

from .._core.backward.backward import backward, grad
from .._core.backward.raw_saved_tensors import RawSavedTensor as SavedTensor
from .._core.context.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .._core.surface.unsupported import explaining as _explaining
from . import anomaly_mode, forward_ad, function, functional, grad_mode, graph
from .function import Function
from .gradcheck import gradcheck, gradgradcheck  # the function, which hides its module as in PyTorch
from .variable import Variable

__getattr__ = _explaining(__name__)

__all__ = [
    "Function", "SavedTensor", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad",
    "forward_ad", "function", "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph",
    "inference_mode", "is_multithreading_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
