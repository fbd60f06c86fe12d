"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

from math import log, pi
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .library import gw
from .parameters import broadcast_all, noise, precision

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of ``dim`` by ``dim`` correlation matrices.

    The density of the matrix is in proportion to its determinant to the power ``concentration - 1``: uniform for 1,
    around the identity above it. Samples grow row by row, the "onion" method [Lewandowski, Kurowicka and Joe,
    "Generating random correlation matrices based on vines and extended onion method", 2009].
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched: ClassVar[dict[str, int]] = {"concentration": 0}
    _carried: ClassVar[tuple[str, ...]] = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentValueError(f"LKJCholesky: dim is an int from 2 on, not {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        self._beta = self._squared_lengths()

    def _squared_lengths(self) -> Any:
        """Of the part of each row that is left of the diagonal: Beta distributions; the first one is not used."""
        like = self.concentration
        below = gw.arange(self.dim - 1, dtype=like.dtype, device=like.device)
        before = gw.cat([gw.zeros(1, dtype=like.dtype, device=like.device), below])
        top = like + 0.5 * (self.dim - 2)
        return Beta(0.5 * before + 0.5, top.unsqueeze(-1) - 0.5 * before, validate_args=False)

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Factors of correlation matrices."""
        with gw.no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = tuple(self._extended_shape(sample_shape))
            direction = noise(shape, self.concentration).tril(-1)
            length = direction.square().sum(-1, True).sqrt()
            unit = gw.where(length > 0, direction / length, 0.0)  # the first row has nothing below the diagonal
            rows = squared.sqrt() * unit
            tiny = precision(rows.dtype)[1]
            diagonal = (1 - rows.square().sum(-1)).clamp(min=tiny).sqrt()
            return rows + diagonal.diag_embed()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density of the factor."""
        if self._validate_args:
            self._validate_sample(value)
        n, a = self.dim - 1, self.concentration
        order = gw.arange(2, self.dim + 1, dtype=value.dtype, device=value.device)
        order = (2 * (a - 1)).unsqueeze(-1) + (self.dim - order)
        diagonal = value.diagonal(0, -2, -1).narrow(-1, 1, n)
        top = a + n / 2
        normalizer = n / 2 * log(pi) + gw.mvlgamma(top - 0.5, n) - n * gw.lgamma(top)
        return (order * diagonal.log()).sum(-1) - normalizer
