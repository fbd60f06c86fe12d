"""What a plan does otherwise where its arrays are not NumPy's: on a GPU, or on a stand-in for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType

from ..autograd.operands import cast_operand, widened
from ..runtime.arrays import Array, Native, native
from ..runtime.backends import Backend

if TYPE_CHECKING:
    from ..autograd.engine import Engine
    from ..runtime.cuda.registry import Fused

HOST: Final = "cpu"


def array_types(engine: Engine) -> frozenset[type]:
    """The types of the arrays that tensors of this engine are made of."""
    return frozenset(backend.array_type for backend in engine.backends.opened())


class Applied:
    """An op as the engine runs it where there are fused kernels: by its own where that applies, else by the op's.

    Args:
        narrow: the dtype of half precision that only the fused kernel takes as it is; else None.
        coarse: the session's precision of products, which the plan is guarded by.
    """

    __slots__ = ("_kernel", "_narrow", "_options", "_run")

    def __init__(self, fused: Fused, kernel: Callable[..., Any], narrow: Native | None, coarse: bool) -> None:
        self._run = fused.run
        self._kernel = kernel
        self._narrow = narrow
        self._options = {"coarse": coarse} if fused.products else {}

    def __call__(self, *arguments: Any) -> Any:
        found = self._run(*arguments, **self._options)
        if found is not NotImplemented:
            return found
        if self._narrow is not None:
            arguments = tuple([widened(a, self._narrow) for a in arguments])
        return self._kernel(*arguments)


def applied(fused: Fused, kernel: Callable[..., Any], half: bool, compute: DType | None, coarse: bool) -> Applied:
    """The op with this fused kernel; ``half`` tells whether the op's own takes half precision."""
    narrows = fused.half and not half and compute is not None and compute.is_low_precision
    return Applied(fused, kernel, native(compute) if narrows and compute is not None else None, coarse)


def carried(array: Array, backend: Backend, target: Native, via: Native) -> Array:
    """A number in host memory as an operand on a device; see ``operands.cast_operand``."""
    array = backend.from_host(array)
    return array if target is via and (target is None or array.dtype == target) else cast_operand(array, target, via)


def uploaded(host: Array, backend: Backend) -> Array:
    """A constant of the frame in the device's memory, new each time."""
    return backend.from_host(host.copy())


def elements(strides: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Strides in elements of this size."""
    return tuple([step // size for step in strides])


def dtype_named(array_dtype: Native) -> DType:
    """The DType of an array's dtype."""
    return dtypes.BY_NAME[array_dtype.name]
