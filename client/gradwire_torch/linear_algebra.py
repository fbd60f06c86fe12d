"""Decompositions of matrices, solving with them, and products of several tensors."""

from __future__ import annotations

from typing import Any

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes


def _factored(A: Any) -> tuple[Any, Any]:
    factors, pivots, _ = call("linalg_lu_factor_ex", A, True, False)
    return factors, pivots


def _factored_across(A: Any) -> tuple[Any, Any]:
    """The factors that PyTorch's derivative of a determinant takes: of the transpose of a real, contiguous matrix."""
    return _factored(A.mT if A.is_contiguous() and not A.is_complex() else A)


@computes("_linalg_det")
def det(A: Any) -> Any:
    return gw.linalg.det(A), *_factored_across(A)


@computes("_linalg_slogdet")
def slogdet(A: Any) -> Any:
    return *gw.linalg.slogdet(A), *_factored_across(A)


@computes("_linalg_solve_ex")
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    result, info = call("linalg_solve_ex", A, B, left, check_errors)
    return result, *_factored(A), info


@computes("_linalg_eigh")
def eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> Any:
    if compute_v:
        return tuple(call("linalg_eigh", A, UPLO))
    return call("linalg_eigvalsh", A, UPLO), A.new_empty(0)


@computes("_linalg_eigvals", "linalg_eigvals")
def eigvals(self: Any) -> Any:
    return call("linalg_eigvals", self)


@computes("_linalg_svd")
def svd(A: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Any:
    if compute_uv:
        return tuple(call("linalg_svd", A, full_matrices))
    return A.new_empty(0), call("linalg_svdvals", A), A.new_empty(0)


@computes("_cholesky_solve_helper")
def cholesky_solve(self: Any, A: Any, upper: bool) -> Any:
    return call("cholesky_solve", self, A, upper)


@computes("_trilinear")
def trilinear(
    i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int = 1
) -> Any:
    """The sum of the product of three tensors, each with new dimensions."""
    widened = []
    for tensor, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        wide = tensor
        for dim in dims:
            wide = wide.unsqueeze(dim)
        widened.append(wide)
    product = widened[0] * widened[1] * widened[2]
    return product.sum(tuple(sumdim)) if sumdim else product


@computes("_int_mm")
def int_mm(self: Any, mat2: Any) -> Any:
    return call("mm", self.to(gw.int32), mat2.to(gw.int32))


@computes("_histogramdd_bin_edges")
def histogramdd_edges(self: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    return list(gw.histogramdd(self, list(bins), range=range, weight=weight, density=density)[1])


@computes("_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors")
def histogramdd(self: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    return gw.histogramdd(self, list(bins), range=range, weight=weight, density=density)[0]
