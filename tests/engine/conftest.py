"""Fixtures of the engine's tests: an engine on NumPy, and one on the stand-in for CuPy."""

from __future__ import annotations

import pytest

import gradwire_engine.ops  # noqa: F401  (engines run what is registered)
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.backends import Backends
from tests.strict_backend import StrictBackend


@pytest.fixture(params=["numpy", "strict"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine with a fixed seed, once on each of the two array libraries."""
    return Engine(seed=11) if request.param == "numpy" else Engine(backends=Backends(cpu=StrictBackend()), seed=11)
