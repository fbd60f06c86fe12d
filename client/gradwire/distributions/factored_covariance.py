"""What distributions of a covariance share that keep its Cholesky factor."""

from __future__ import annotations

from typing import Any

from .covariance import transposed
from .distribution import Distribution
from .library import gw
from .parameters import lazy_property


class FactoredCovariance(Distribution):
    """The covariance of vectors in three forms: the one that was given, and the others, computed when asked for."""

    _unbroadcasted_scale_tril: Any

    def _square(self, matrix: Any) -> Any:
        n = self._event_shape[-1]
        return matrix.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._square(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._square(factor @ transposed(factor))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._square(gw.cholesky_inverse(self._unbroadcasted_scale_tril))
