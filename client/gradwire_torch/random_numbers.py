"""Random numbers beyond those of functions with the same name: gradwire draws its own."""

from __future__ import annotations

from typing import Any

from gradwire._core.dispatch.dispatch import call

from .dispatch import computes


@computes("_standard_gamma")
def standard_gamma(self: Any, generator: Any = None) -> Any:
    return call("standard_gamma", self)


@computes("_standard_gamma_grad")
def standard_gamma_grad(self: Any, output: Any) -> Any:
    return call("standard_gamma_grad", self, output)


@computes("_sample_dirichlet")
def sample_dirichlet(self: Any, generator: Any = None) -> Any:
    return call("sample_dirichlet", self)


@computes("_dirichlet_grad")
def dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    return call("dirichlet_grad", x, alpha, total)
