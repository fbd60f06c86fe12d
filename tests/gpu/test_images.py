"""A session on a GPU continues with the same bits after a snapshot and restore."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gradwire_engine.runtime.backends import cuda_device_count
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import Image, restore, take
from gradwire_protocol.frames import Frame, Structure

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cuda_device_count(), reason="there is no GPU")]

MINE = 1 << 32
START = [
    ["rand", [[64, 33], "float32", "cuda:0"]], ["requires_grad_", [0, True]], ["t", [0]],
    ["matmul", [0, 1]], ["tanh", [2]], ["sum", [3, [0]]], ["rand", [[64], "bfloat16", "cuda:0"]], ["mul", [4, 5]],
]  # fmt: skip
STEP = [
    ["backward", [[-2], [-3]]], ["grad_of", [-1]], ["rand", [[5], "float32", "cuda:0"]], ["set_mode", [0]],
    ["mul_", [-1, 0]], ["sum", [-4]],
]  # fmt: skip


def apply(session: Session, ops: list[Any], reads: list[int], external: list[int]) -> tuple[Any, list[bytes]]:
    structure = msgspec.Raw(msgspec.msgpack.encode(Structure(ops=ops, reads=reads)))
    reply, buffers = session.apply(Frame(client=1, structure=structure, external=external))
    return msgspec.to_builtins(reply), [bytes(b) for b in buffers]


def test_a_session_on_a_gpu_goes_on_bit_by_bit_from_its_image() -> None:
    whole = Session(device="cuda:0", seed=5)
    first, _ = apply(whole, START, [], [])
    assert "errors" not in first, first
    image = take(whole)
    image = Image(msgspec.json.decode(msgspec.json.encode(image.facts)), {n: a.copy() for n, a in image.arrays.items()})
    cut = restore(image)
    external = [MINE + 1, MINE + 7, MINE + 6, MINE + 2]
    expected, actual = (apply(s, STEP, [0, 1, -1, 2], external) for s in (whole, cut))
    assert expected == actual
    assert "errors" not in expected[0], expected[0]
    assert whole.describe()["memory"]["live_bytes"] == cut.describe()["memory"]["live_bytes"]
