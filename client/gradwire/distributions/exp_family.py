"""Exponential families: entropy from the derivative of the log normaliser."""

from __future__ import annotations

from typing import Any

from .distribution import Distribution
from .library import gw

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities ``exp(<t(x), theta> - F(theta) + k(x))``, of natural parameters theta and log normaliser F."""

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise self._lacks("_natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("_mean_carrier_measure")

    def _tangent(self) -> tuple[Any, Any, Any]:
        """Natural parameters, the log normaliser there, and its derivatives; all detached from what they came from."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with gw.enable_grad():
            normalizer = self._log_normalizer(*params)
            slopes = gw.autograd.grad(normalizer.sum(), params, create_graph=True)
        return params, normalizer, slopes

    def entropy(self) -> Any:
        """``F(theta) - <theta, F'(theta)> - E k(x)``."""
        carried = self._mean_carrier_measure
        params, normalizer, slopes = self._tangent()
        result = normalizer - carried
        for param, slope in zip(params, slopes, strict=True):
            along = (param * slope).reshape(*self._batch_shape, -1).sum(-1)
            result = result - along
        return result
