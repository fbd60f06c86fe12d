"""The saved tensors of every op survive a snapshot between forward and backward."""

from __future__ import annotations

import warnings
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from gradwire_engine.snapshot import restore, take
from gradwire_protocol import envelope
from gradwire_protocol.frames import Frame, Payload, Reply, Structure
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import TABLE
from tests.engine.recordings import Recording, little_to_collect, looks, new_session, travelled
from tests.engine.test_parity import convert, to_dtype
from tests.samples import Sample, load

SAMPLES = load()


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    with little_to_collect():
        yield


def frame(ops: list[Any], reads: list[int], **data: Any) -> bytes:
    structure = msgspec.Raw(msgspec.msgpack.encode(Structure(ops=ops, reads=reads)))
    buffers = data.pop("raw", [])
    return envelope.join(envelope.encode(Frame(structure=structure, client=1, **data), buffers))


class Program:
    """A sample as frames: its tensors, the op on them, and two backwards from every result."""

    def __init__(self, name: str, sample: Sample) -> None:
        self.given: list[torch.Tensor] = []
        op = TABLE[name]
        values = convert(op.bind(list(sample.args), dict(sample.kwargs)), lambda t: t, to_dtype)
        scalars: list[Any] = []
        args = encode_args(op, values, lambda v: isinstance(v, torch.Tensor), self.ref, scalars, [])
        self.record = [op.name, args]
        self.scalars = scalars

    def ref(self, tensor: torch.Tensor) -> int:
        for i, known in enumerate(self.given):
            if known is tensor:
                return -1 - i
        self.given.append(tensor)
        return -len(self.given)

    def uploads(self) -> bytes:
        ops, raw = [], []
        for tensor in self.given:
            name = str(tensor.dtype).removeprefix("torch.")
            plain = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
            ops.append(["upload", ["payload", name, list(tensor.shape), "cpu"]])
            raw.append(memoryview(plain.numpy().tobytes()))
        ops += [["requires_grad_", [i, True]] for i, tensor in enumerate(self.given) if tensor.requires_grad]
        payloads = [Payload(buffer=i) for i in range(len(raw))]
        return frame(ops, [], payloads=payloads, raw=raw)

    def forward(self) -> bytes:
        return frame([self.record], [], external=self.externals(), scalars=self.scalars)

    def externals(self) -> list[int]:
        return [(1 << 32) + 1 + i for i in range(len(self.given))]

    def backward(self, first: int, made: int) -> bytes:
        """Each result's gradients with the graph kept, then all values and the gradients of all operands."""
        external = [*self.externals(), *range(first, first + made)]
        results = [-1 - len(self.given) - k for k in range(made)]
        ops: list[Any] = [["backward", [[r], [None], None, True]] for r in results]
        ops += [["sum", [r]] for r in results]
        ops += [["backward", [[i], [None], None, True]] for i in range(made)]
        ops += [["grad_of", [-1 - i]] for i in range(len(self.given))]
        reads = [*results, *range(made, made + len(self.given)), *(-1 - i for i in range(len(self.given)))]
        return frame(ops, reads, external=external)


@pytest.mark.parametrize("name", SAMPLES)
def test_an_op_differentiates_as_before_after_an_image_was_taken(name):
    declared = SAMPLES[name][0]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for kind in sorted(declared.dtypes, key=lambda name: name not in ("float32", "complex64")):
            drawn = [sample for sample in declared.draw(kind, 5) if not sample.expects_error]
            if drawn:
                break
        for sample in {id(s): s for s in (*drawn[:1], *drawn[-1:])}.values():
            _check(Program(name, sample))


def _check(program: Program) -> None:
    whole, cut, applied = new_session(), new_session(), Recording()
    for message in (program.uploads(), program.forward()):
        answer = applied.apply_to(whole, message)
        assert applied.apply_to(cut, message) == answer
    made, _ = envelope.decode(answer)
    assert isinstance(made, Reply)
    for _ in range(2):
        cut = restore(travelled(take(cut)))
        assert looks(cut) == looks(whole)
        message = program.backward(made.first, made.made)
        assert applied.apply_to(cut, message) == applied.apply_to(whole, message)
