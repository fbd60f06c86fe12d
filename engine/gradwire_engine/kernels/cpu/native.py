"""How a Python function becomes machine code: its annotations are the signature. Imports Numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.core.typing.templates import Signature

from ...runtime.arrays import Array, Native
from .later import now_or_later
from .ranges import kept_here, part_of, run

F = TypeVar("F", bound=Callable[..., Any])

BLOCK: Final = 4096
"""Elements of an elementwise kernel that are always worked on together."""

Element: TypeAlias = Any
"""A number of whichever dtype an array has that compiled code works on."""

# The words of signatures; what they mean is in the table below.
In1: TypeAlias = Array
In2: TypeAlias = Array
In3: TypeAlias = Array
Out1: TypeAlias = Array
Out2: TypeAlias = Array
Out3: TypeAlias = Array
Strided4: TypeAlias = Array
Int1: TypeAlias = Array
Int2: TypeAlias = Array
IntOut1: TypeAlias = Array
Byte1: TypeAlias = Array
ByteOut1: TypeAlias = Array
Half1: TypeAlias = Array
HalfOut1: TypeAlias = Array
DoubleOut1: TypeAlias = Array
Count: TypeAlias = int
Double: TypeAlias = float
Flag: TypeAlias = bool

_SCALARS: Final = {"Count": types.int64, "Double": types.float64, "Flag": types.boolean, "None": types.void}
_ARRAYS: Final = {
    "In": None,
    "Strided": None,
    "Int": types.int64,
    "Byte": types.uint8,
    "Half": types.uint16,
    "Double": types.float64,
}
_GENERIC: Final = frozenset({"In", "Out", "Strided"})
"""Words of arrays of the dtype that a kernel is compiled for."""

_BOARD: Final = types.Array(types.int64, 1, "C")
_DTYPES: Final[dict[str, types.Type]] = {"float32": types.float32, "float64": types.float64}

_EXACT: Final = {"contract"}
"""What the compiler may do to arithmetic: fuse a product with a sum. Never assume that there is no NaN."""

_REORDERED: Final = {"contract", "reassoc", "nsz"}


def _meaning(word: str, T: types.Type) -> types.Type:
    if word in _SCALARS:
        return _SCALARS[word]
    kind, ndim = word[:-1], int(word[-1])
    written = kind.endswith("Out")
    element = _ARRAYS["In" if kind in ("In", "Out") else kind.removesuffix("Out")]
    layout: Any = "A" if kind == "Strided" else "C"
    return types.Array(T if element is None else element, ndim, layout, readonly=not written)


def native(*dtypes: str) -> Callable[[F], F]:
    """Compile a kernel for these dtypes (float32 if none are named), from the disk cache if it is there.

    It runs without the interpreter's lock and returns nothing. All parameters are annotated by the words above.
    """

    def compile_(function: F) -> F:
        words = [word for name, word in function.__annotations__.items() if name != "return"]
        at = next((i for i, word in enumerate(words) if word[:-1] in _GENERIC), None)
        signatures: dict[Native | None, Signature] = {
            None if at is None else np.dtype(dtype): types.void(*[_meaning(word, _DTYPES[dtype]) for word in words])
            for dtype in dtypes or ("float32",)
        }
        return cast(F, kernel_of(function, signatures, at, nogil=True, error_model="numpy", fastmath=_EXACT))

    return compile_


def kernel_of(
    function: Callable[..., Any], signatures: dict[Native | None, Signature], at: int | None, **options: Any
) -> Any:
    """A kernel with these signatures, now or at its first call (:mod:`.later`).

    If its last parameters are ``start`` and ``stop``, it has a second function ``by_threads``: that takes a board and
    what :func:`.ranges.run` takes instead, before the other arguments.

    Args:
        signatures: by the dtype of the argument ``at``.
    """
    kernel = now_or_later(function, signatures, at, **options)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if names[-2:] == ("start", "stop"):
        leading = [_BOARD, *[types.int64] * 3, types.boolean]
        divided = {dtype: types.boolean(*leading, *each.args[:-2]) for dtype, each in signatures.items()}
        place = None if at is None else at + len(leading)
        kernel.by_threads = now_or_later(_divided(kernel, function, names[:-2]), divided, place, nogil=True)
    return kernel


def _divided(kernel: Any, function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    # Numba keeps compiled code by file, line and name of its source: these are the kernel's.
    given = ", ".join(names)
    name, code = f"{function.__name__}_by_threads", function.__code__
    # A leading underscore, since these names stand beside the kernel's own.
    source = f"def {name}(_board, _count, _step, _most, _wakes, {given}):\n return _run("
    source += f"_board, _part_of(_kernel, ({given},)), _kept_here(({given},)), _count, _step, _most, _wakes)"
    module = compile("\n" * (code.co_firstlineno - 1) + source, code.co_filename, "exec")
    body = next(each for each in module.co_consts if isinstance(each, CodeType))
    scope = {"_run": run, "_part_of": part_of, "_kept_here": kept_here, "_kernel": kernel}
    scope["__name__"] = function.__module__
    return FunctionType(body, scope)


def inline(function: F) -> F:
    """A function that kernels call: it is compiled into them."""
    made: Any = njit(forceinline=True, error_model="numpy", fastmath=_EXACT)(function)
    return cast(F, made)


def reducing(function: F) -> F:
    """Like :func:`inline`, for a loop that adds up: the compiler may keep several sums and add them at the end."""
    made: Any = njit(forceinline=True, error_model="numpy", fastmath=_REORDERED)(function)
    return cast(F, made)


def dense(x: Array) -> Array:
    """The array itself if kernels can read it, else a copy in row-major order."""
    flags = x.flags
    return x if flags.c_contiguous and flags.aligned else np.array(x, order="C")


def in_memory(*arrays: Array) -> list[Array] | None:
    """The elements of arrays of one shape as one dimension each, in the order in which all of them lie in memory;
    ``None`` where they lie differently or with gaps.
    """
    x = arrays[0]
    for a in arrays:
        flags = a.flags
        if not flags.c_contiguous or not flags.aligned:
            break
    else:
        return [a.reshape(-1) for a in arrays]
    order = sorted(range(x.ndim), key=lambda i: -x.strides[i])
    moved = [a.transpose(order) for a in arrays]
    if all(a.flags.c_contiguous and a.flags.aligned for a in moved):
        return [a.reshape(-1) for a in moved]
    return None


def flat(x: Array) -> Array:
    """All elements in row-major order, as one dimension."""
    return dense(x).reshape(-1)


def blocks(size: int) -> int:
    """How many blocks so many elements are."""
    return -(-size // BLOCK)
