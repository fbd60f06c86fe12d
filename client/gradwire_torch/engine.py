"""PyTorch's backward in the thread that calls it.

PyTorch starts a thread for each device of a type, and takes a device registered in Python for one: the gradients of a
second device would find none. There is nothing to gain from threads, since operations are only recorded, and a thread
of PyTorch's does not know the line of the program that called ``backward``.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.autograd import Variable

_enabled: Final[Any] = torch._C._is_multithreading_enabled
_enable: Final[Any] = torch._C._set_multithreading_enabled
_Plain: Final[Any] = torch._C._ImperativeEngine


class Engine(_Plain):  # type: ignore[misc]
    """PyTorch's engine, without threads of its own."""

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute gradients, as PyTorch's engine does."""
        before = _enabled()
        _enable(False)
        try:
            return super().run_backward(*args, **kwargs)
        finally:
            _enable(before)


def install() -> None:
    """Let backward run so from now on."""
    Variable._execution_engine = Engine()
