"""What the engine's tests share: an engine on NumPy, and one on the stand-in for CuPy."""

from __future__ import annotations

import pytest

from gradwire_engine.backends import Backends
from gradwire_engine.engine import Engine
from tests.strict_backend import StrictBackend


@pytest.fixture(params=["numpy", "strict"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine with a fixed seed, once on each of the two array libraries."""
    return Engine(seed=11) if request.param == "numpy" else Engine(backends=Backends(cpu=StrictBackend()), seed=11)
