"""Transforms onto simplices and triangular matrices."""

from __future__ import annotations

from math import log
from typing import Any

from ..._core.context.argument_types import Shape
from ..._core.tensor.tensor import Tensor
from .. import constraints
from ..library import gw
from ..parameters import as_size, log1p_exp, precision, tril_matrix_to_vec, vec_to_tril_matrix
from .transform import ParameterFree, Transform


class SoftmaxTransform(ParameterFree):
    """Vectors to points of the simplex, by exponentials and normalisation; not injective."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return gw.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Shape:
        return _with_events(self, shape, 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _with_events(self, shape, 1)


def _with_events(transform: Any, shape: Shape, ndim: int) -> Any:
    if len(shape) < ndim:
        raise ValueError(f"{transform!r}: an event has {ndim} dimensions, the shape is {list(shape)}")
    return shape


class StickBreakingTransform(ParameterFree):
    """Vectors of n numbers to points of the simplex with n + 1 components, one to one.

    Each number says, through a sigmoid, which share of what is left of a stick is broken off; it is shifted so that
    zeros give equal parts.
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    @staticmethod
    def _shift(like: Tensor, count: int) -> Any:
        """log n, ..., log 1."""
        return gw.arange(count, 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x: Tensor) -> Tensor:
        eps, tiny = precision(x.dtype)
        share = gw.sigmoid(x - self._shift(x, x.shape[-1])).clamp(tiny, 1 - eps)
        left = (1 - share).cumprod(-1)
        ones = gw.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
        return gw.cat([share, ones], -1) * gw.cat([ones, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1] - 1
        part = y.narrow(-1, 0, n)
        left = (1 - part.cumsum(-1)).clamp(min=precision(y.dtype)[1])
        return part.log() - left.log() + self._shift(y, n)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n = x.shape[-1]
        moved = x - self._shift(x, n)
        return (y.narrow(-1, 0, n).log() - log1p_exp(moved)).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        shape = _with_events(self, shape, 1)
        return as_size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Shape) -> Shape:
        shape = _with_events(self, shape, 1)
        return as_size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(ParameterFree):
    """Square matrices to lower triangular ones with a positive diagonal, the exponential of the given one."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(ParameterFree):
    """Square matrices to positive definite ones: the product of :class:`LowerCholeskyTransform` with its transpose."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.transpose(-2, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(gw.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of d(d - 1)/2 numbers to Cholesky factors of d by d correlation matrices, one to one.

    Their hyperbolic tangents are canonical partial correlations, row by row
    [Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines", 2009].
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = precision(x.dtype)[0]
        partial = vec_to_tril_matrix(gw.tanh(x).clamp(-1 + eps, 1 - eps), -1)
        eye = gw.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        # What each entry leaves of the length 1 of its row.
        left = (1 - partial * partial).sqrt().cumprod(-1)
        return (partial + eye) * _shifted(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _shifted((1 - (y * y).cumsum(-1)).clamp(min=precision(y.dtype)[1]).sqrt())
        return gw.atanh(tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = (1 - (y * y).cumsum(-1)).clamp(min=precision(y.dtype)[1])
        scale = 0.5 * tril_matrix_to_vec(left, -2).log().sum(-1)
        slopes = 2 * (x + log1p_exp(-2 * x) - log(2)).sum(-1)
        return scale - slopes

    def forward_shape(self, shape: Shape) -> Shape:
        shape = _with_events(self, shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(f"{shape[-1]} numbers are not below the diagonal of any square matrix")
        return as_size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Shape) -> Shape:
        shape = _with_events(self, shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"the matrices are not square: {list(shape)}")
        n = shape[-1]
        return as_size((*shape[:-2], n * (n - 1) // 2))


def _shifted(matrix: Any) -> Any:
    """Columns moved right by one, with ones at the left."""
    n = matrix.shape[-1]
    ones = gw.ones((*matrix.shape[:-1], 1), dtype=matrix.dtype, device=matrix.device)
    return gw.cat([ones, matrix.narrow(-1, 0, n - 1)], -1)
