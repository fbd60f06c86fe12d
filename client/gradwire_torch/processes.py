"""Other processes: a session and its tensors belong to one.

A process that is forked from one that uses the device cannot use it, as with a GPU, and no tensor of the device is
handed to another process.
"""

from __future__ import annotations

import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NoReturn

import torch
from torch.multiprocessing.reductions import reduce_tensor

from .device_type import NAME

_HANDED: Final = (
    f"a tensor on {NAME} belongs to its process's session and cannot be handed to another process: "
    "hand over tensor.cpu(), and move it to the device there"
)
_FORKED: Final = (
    f"this process was forked from one that uses {NAME}, whose session is not shared: use the device before "
    "and after, or start processes with the method 'spawn'. A DataLoader's workers return tensors of the CPU"
)


def refuse(*_: Any) -> NoReturn:
    """Stands for every operation in a forked process.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(_FORKED)


def _refuse_handed() -> NoReturn:
    raise RuntimeError(_HANDED)


def _handed(tensor: torch.Tensor) -> Any:
    """What another process makes of a tensor. A queue's own thread has nobody to tell: the other side raises."""
    if tensor.device.type != NAME:
        return reduce_tensor(tensor)
    if threading.current_thread() is threading.main_thread():
        _refuse_handed()
    return _refuse_handed, ()


def install() -> None:
    """Let nobody hand a tensor of the device to another process."""
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _handed)
