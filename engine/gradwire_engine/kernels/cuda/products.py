"""Matrix products on tensor cores: stacks of matrices as they lie, float16 and bfloat16 added up in float32.

``coarse`` lets float32 be rounded to TF32, as the session's precision of float32 products says (by default not).
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any, Final

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import FLOATS, element_of
from ...runtime.cuda.registry import fused
from . import cublaslt
from .problem import ALIGNMENT, MatmulProblem, Operand, aligned, dense, lay, stack_of

_mine: Final = threading.local()


def library(xp: Namespace) -> Any:
    """This thread's way to cuBLASLt; ``None`` where there is none, and CuPy's own product has to do."""
    given = getattr(xp, "products", None)  # a test's
    if given is not None:
        return given
    if not hasattr(_mine, "library"):
        _mine.library = cublaslt.find(xp) if getattr(xp, "__name__", "") == "cupy" else None
    return _mine.library


def multiply(
    xp: Namespace, a: Any, b: Any, coarse: bool, bias: Any = None, alpha: float = 1.0, out: Any = None
) -> Array:
    """``alpha * a @ b + bias`` of matrices or stacks of them; ``NotImplemented`` where the library is not there, or
    has nothing for it.

    Args:
        bias: added to each row; or None.
        out: row-major memory for the result, of the operands' type or float32; by default new.
    """
    lib = library(xp)
    element = element_of(a.dtype)
    if lib is None or element not in FLOATS or a.dtype != b.dtype or a.ndim < 2 or b.ndim < 2:
        return NotImplemented
    lead = stack_of(a, b)
    rows, cols = a.shape[-2], b.shape[-1]
    if not a.size or not b.size or not prod(lead):
        return NotImplemented
    laid: list[tuple[Any, Operand]] = []
    for x in (aligned(a), aligned(b)):
        if prod(x.shape[:-2]) != 1 and x.shape[:-2] != lead:
            x = xp.broadcast_to(x, (*lead, *x.shape[-2:]))
        operand = lay(x, lead)
        if operand is None:
            x = xp.ascontiguousarray(x)
            operand = lay(x, lead)
        if operand is None:
            return NotImplemented
        laid.append((x, operand))
    (a, first), (b, second) = laid
    asked = out
    if asked is None or asked.data.ptr % ALIGNMENT:
        out = xp.empty((*lead, rows, cols), a.dtype if asked is None else asked.dtype)
    bias = bias if bias is None else aligned(bias)
    problem = MatmulProblem(
        element, element_of(out.dtype), coarse and element == "float32", prod(lead), second, first, dense(out),
        bias is not None,
    )  # fmt: skip
    device = out.device.id
    prepared = lib.prepare(device, problem)
    if prepared is None:
        return NotImplemented
    work = xp.empty(prepared.workspace, "B") if prepared.workspace else None
    stream = xp.cuda.get_current_stream().ptr
    lib.multiply(
        device, stream, problem, prepared, b.data.ptr, a.data.ptr, out.data.ptr, alpha, 0.0,
        0 if bias is None else bias.data.ptr, 0 if work is None else work.data.ptr,
    )  # fmt: skip
    if asked is None or asked is out:
        return out
    asked[...] = out.reshape(asked.shape)
    return asked


def _rows(x: Array) -> Array:
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


@fused("matmul", "mm", "bmm", "mv", "dot", half=True, products=True)
def matmul(xp: Namespace, a: Array, b: Array, *, coarse: bool) -> Array:
    return products(xp, a, b, coarse)


def products(xp: Namespace, a: Array, b: Array, coarse: bool, out: Any = None) -> Array:
    """``a @ b`` with NumPy's meaning for vectors and stacks; ``out`` is row-major memory, for matrices only."""
    if out is not None and (a.ndim < 2 or b.ndim < 2):
        return NotImplemented
    if a.ndim == 1 and b.ndim == 1:
        found = multiply(xp, a[None], b[:, None], coarse)
        return found if found is NotImplemented else found.reshape(())
    if a.ndim == 1:
        found = multiply(xp, a[None], b, coarse)
        return found if found is NotImplemented else found.reshape((*found.shape[:-2], found.shape[-1]))
    if b.ndim == 1:
        found = multiply(xp, a, b[:, None], coarse)
        return found if found is NotImplemented else found.reshape(found.shape[:-1])
    if out is None and a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        found = multiply(xp, _rows(a), b, coarse)
        return found if found is NotImplemented else found.reshape((*a.shape[:-1], b.shape[1]))
    return multiply(xp, a, b, coarse, out=out)


@fused("linear", half=True, products=True)
def linear(xp: Namespace, x: Array, weight: Array, bias: Array | None, *, coarse: bool) -> Array:
    if weight.ndim != 2 or x.ndim == 0:
        return NotImplemented
    if bias is not None and not (bias.shape == weight.shape[:1] and bias.flags.c_contiguous):
        return NotImplemented
    found = multiply(xp, _rows(x), weight.T, coarse, bias)
    return found if found is NotImplemented else found.reshape((*x.shape[:-1], weight.shape[0]))
