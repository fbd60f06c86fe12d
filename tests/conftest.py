"""Fixtures of all tests: one embedded server for the client's tests, and deterministic threads."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

# Kernels that come in when they are ready would make results depend on the moment. GRADWIRE_TEST_COMPILED=1 runs any
# test with the compiled ones from the beginning.
if os.environ.get("GRADWIRE_TEST_COMPILED"):
    from gradwire_engine.autograd.engine import Engine
    from gradwire_engine.kernels.cpu import toolchain

    os.environ["GRADWIRE_COMPILED_KERNELS"] = "wait"
    toolchain.configure("wait")
    if not toolchain.wait():
        raise pytest.UsageError(f"there are no compiled kernels: {toolchain.describe()['reason']}")
    Engine.compiled = True
else:
    os.environ.setdefault("GRADWIRE_COMPILED_KERNELS", "off")

# GRADWIRE_TEST_PLANS=shadow runs every frame of any test on the tape and by a plan, and compares the two sessions.
if os.environ.get("GRADWIRE_TEST_PLANS"):
    pytest_plugins = ["tests.shadowed.plugin"]

# With a seed, hypothesis draws the same examples each time, so that a failure in CI comes from the change. There are no
# deadlines, since machines can be slow.
settings.register_profile(
    "gradwire",
    deadline=None,
    derandomize="GRADWIRE_TEST_SEED" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gradwire")

# Shells start jobs in the background with the interrupt ignored, which programs that the tests start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of garbage collection, which would look at it for seconds each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_inference_leaves():
    """Nothing that a test has made in inference mode lets the operations of later tests go the long way."""
    yield
    modes = sys.modules.get("gradwire._core.context.modes")
    if modes is not None and (modes.MODES.inference_leaves or modes.MODES.inference_gradients):
        kept = type(modes.MODES)
        kept.inference_leaves = kept.inference_gradients = False
        modes.MODES.flags = modes.MODES.flags


@pytest.fixture
def session():
    """The session of the embedded server, with its random numbers restarted."""
    import gradwire

    current = gradwire.current_session()
    gradwire.manual_seed(0)
    return current


@pytest.fixture
def alone():
    """A session of its own: no structure is known in it, and nobody else records in it."""
    import gradwire

    before = gradwire.current_session()
    with gradwire.connect() as session:
        yield session
    gradwire._core.session.current_session._current = before


@pytest.fixture
def uncut(monkeypatch):
    """A slow machine does not cut frames of its own accord while a test makes them."""
    import gradwire

    monkeypatch.setattr(gradwire._core.session.session, "QUIET_S", 5.0)


@pytest.fixture
def round_trips(session):
    """A function that tells how many round trips were made since it was last called."""
    session.synchronize()
    last = [session.link.round_trips]

    def count() -> int:
        before, last[0] = last[0], session.link.round_trips
        return last[0] - before

    return count
