"""A device of PyTorch's whose tensors are on a gradwire server: ``device="gradwire"``.

PyTorch runs as it does: its dispatcher, its tape, its optimizers and modules. What it computes on the device is
recorded as gradwire's operations, deferred, and sent in frames, as by :mod:`gradwire` itself. The server is that of
``GRADWIRE_URL``, or one embedded in the program.

PyTorch imports this at ``import torch`` (its entry point ``torch.backends``). It stands on the client's tensors; no
module of :mod:`gradwire` imports it.
"""

from __future__ import annotations

import warnings

from .device_type import NAME

SUPPORTED = "2.13"
"""The versions of PyTorch with this beginning. The registration of devices in Python is experimental in PyTorch."""

_registered = False


def register() -> None:
    """Make ``"gradwire"`` a device of PyTorch's. PyTorch calls it at ``import torch``; a second call has no effect.

    Where it cannot be one, it warns: an error would end the import of PyTorch, of programs that use it without the
    device, too.
    """
    global _registered
    if _registered:
        return
    import torch

    hindrance = ""
    if not torch.__version__.startswith(f"{SUPPORTED}."):
        hindrance = f"it needs PyTorch {SUPPORTED}; this is {torch.__version__}"
    elif (other := torch._C._get_privateuse1_backend_name()) not in ("privateuseone", NAME):
        hindrance = f"PyTorch has one device of its kind at a time, which is {other}"
    if hindrance:
        warnings.warn(f"there is no device {NAME!r} in this process: {hindrance}", RuntimeWarning, stacklevel=2)
        return
    from .registration import install

    install()
    _registered = True
