"""The engine's description of the machine's devices."""

from __future__ import annotations

import pytest

from gradwire_engine.runtime.backends import available_devices
from gradwire_engine.runtime.devices import describe_devices


def test_devices_are_described_in_the_order_in_which_they_are_listed():
    rows = describe_devices()
    assert [row["name"] for row in rows] == available_devices()
    assert rows[0]["capability"] is None and rows[0]["total_bytes"] >= rows[0]["free_bytes"] >= 0


@pytest.mark.gpu
@pytest.mark.skipif(len(available_devices()) == 1, reason="there is no GPU")
def test_a_gpu_tells_its_model_its_memory_and_what_it_can():
    row = describe_devices()[1]
    assert row["model"] and row["total_bytes"] > row["free_bytes"] > 0
    assert row["capability"][0] >= 5 and row["multiprocessors"] > 0
