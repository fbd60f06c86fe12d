"""What waits for the server: a tensor's values, as Python numbers, as arrays, and as text."""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, GraphError
from gradwire_protocol.ops.control import GRAD_MODE

from ..context.handles import TensorBase
from ..context.modes import MODES
from ..context.numpy_dtypes import FOREIGN
from ..graph.graph_mirror import Node

REMEMBERED_BYTES: Final = 4096
REMEMBERED_S: Final = 0.02
"""No longer, since another client of the session may write to the tensor."""


def given_values(tensor: Any) -> np.ndarray[Any, Any] | None:
    """The values of a small int64 tensor that the program made of its own numbers and nobody wrote to, without asking.

    For lengths, positions and the like, which decide what is recorded next.
    """
    if MODES.capture is not None:
        MODES.capture.refuse("it looks at values that were given")
    untouched = tensor._versions is None or not tensor._versions[0]
    found: np.ndarray[Any, Any] | None = tensor._uploaded
    return found if untouched and not tensor._session.names else None


class Readable(TensorBase):
    """The part of a tensor that looks at values. Each of these costs a round trip."""

    __slots__ = ()

    _node: Node | None
    _last_read: tuple[int, float, Any] | None

    # Values: each of these waits for the server

    def _fetch(self: Any) -> np.ndarray[Any, Any]:
        value: np.ndarray[Any, Any] | None
        if MODES.capture is not None:
            MODES.capture.refuse("it reads a value")
        if self._row_of is None:
            value = self._read_or_remembered()
        else:
            together, at = self._row_of
            value = together.value(at, self)
        if value is None:
            raise GraphError("this gradient is undefined: no gradient arrived here")
        return value

    def _read_or_remembered(self: Any) -> np.ndarray[Any, Any] | None:
        """Programs print a loss and then add it up: what was read a moment ago is known while nothing is recorded."""
        session = self._session
        with session.lock:
            known = self._last_read
            if known is not None and known[0] == session.builder.recorded and monotonic() < known[1]:
                found: np.ndarray[Any, Any] = known[2].copy()
                return found
            session.read_loops.read()
            value: np.ndarray[Any, Any] | None = session.read_ahead.read(self)
            if value is None or value.nbytes > REMEMBERED_BYTES:
                if known is not None:
                    self._last_read = None
                return value
            self._last_read = session.builder.recorded, monotonic() + REMEMBERED_S, value
            return value.copy()

    def item(self: Any) -> bool | int | float:
        """The one element as a Python number. One round trip.

        Raises:
            ArgumentError: when there is not exactly one.
        """
        if self._form.known and self._form.numel != 1:
            raise ArgumentError(f"item() needs exactly one element, the tensor has shape {list(self.shape)}")
        value = self._fetch()
        if value.size != 1:
            raise ArgumentError(f"item() needs exactly one element, the tensor has shape {list(value.shape)}")
        return self._python(value.reshape(()))

    def tolist(self: Any) -> Any:
        """The elements as nested lists; a number for a 0-dim tensor. One round trip."""
        return self._python(self._fetch())

    def _python(self: Any, value: np.ndarray[Any, Any]) -> Any:
        if self._form.dtype in FOREIGN:
            value = value.astype(np.float32)
        return value.tolist()

    async def item_async(self: Any) -> Any:
        """:meth:`item` without blocking the event loop."""
        import asyncio

        return await asyncio.to_thread(self.item)

    def numpy(self: Any, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The values as a NumPy array of their own. bfloat16 and float8 have no NumPy dtypes and are refused.

        Raises:
            GraphError: when the tensor requires grad and gradients are being recorded; use ``detach()``.
        """
        if self.requires_grad and not force and MODES.flags & GRAD_MODE:
            raise GraphError("numpy() of a tensor that requires grad would lose its history: use detach().numpy()")
        if self._form.dtype in FOREIGN:
            raise ArgumentTypeError(f"NumPy has no {self._form.dtype.name}: convert with .float() first")
        found: np.ndarray[Any, Any] = self._fetch()
        return found

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def _only(self: Any) -> Any:
        if self.numel() != 1:
            raise ArgumentValueError(f"a tensor of shape {list(self.shape)} is no number: it must have one element")
        return self.item()

    def _real(self: Any) -> Any:
        value = self._only()
        if isinstance(value, complex):
            if value.imag:
                raise ArgumentError(f"{value} is no real number: look at real, imag or abs()")
            return value.real
        return value

    def __float__(self: Any) -> float:
        return float(self._real())

    def __int__(self: Any) -> int:
        return int(self._real())

    def __complex__(self: Any) -> complex:
        return complex(self._only())

    def __index__(self: Any) -> int:
        if self._form.dtype.carries_gradient or self.numel() != 1:
            raise ArgumentTypeError(f"only one integer can be an index, not a {self._form!r} tensor")
        return int(self.item())

    def __format__(self: Any, spec: str) -> str:
        from .tensor import Tensor

        if self.ndim == 0 and not self.is_meta and (spec or type(self) is Tensor):
            return format(self.item(), spec)
        return object.__format__(self, spec)
