"""A call of an op and its gradients as one frame, applied on the tape or by a plan that an earlier frame left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.plan_cache import Plans
from gradwire_engine.session.session import Session
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import Frame, Structure
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import Op
from tests.samples import Sample

from .test_parity import convert, listed, to_dtype, to_ours

LIMITS: Final = Limits(max_tensor_bytes=1 << 24, max_op_work=1 << 26)
FIRST_EXTERNAL: Final = 1 << 20
NEVER: Final = 1 << 60


class Call:
    """The records of a sample: the op (in place on a clone), its gradients, and the gradients of these.

    Attributes:
        operands: the tensors of the sample.
        seeds: the gradients that are given.
        numbers: the numbers of the sample that are data.
        ops: the records.

    Raises:
        GradwireError: where the op refuses the sample.
        LookupError: for a sample with a payload.
    """

    def __init__(self, op: Op, sample: Sample, orders: int = 2) -> None:
        engine = Engine(LIMITS)
        self.operands: list[torch.Tensor] = []
        self.seeds: list[Any] = []
        self.numbers: list[Any] = []
        self.ops: list[list[Any]] = []
        made: dict[int, Tensor] = {}

        def ours(given: torch.Tensor) -> Tensor:
            if id(given) not in made:
                self.operands.append(given)
                made[id(given)] = to_ours(engine, given)
            return made[id(given)]

        args = [convert(a, ours, to_dtype) for a in sample.args]
        values = op.bind(args, {name: convert(a, ours, to_dtype) for name, a in sample.kwargs.items()})
        operands = list(made.values())
        references = {id(tensor): -1 - i for i, tensor in enumerate(operands)}
        if op.mutates is not None:
            self.ops.append(["clone", [references[id(values[0])]]])
            values[0] = engine.call("clone", values[0])
            references[id(values[0])] = 0
        payloads: list[Any] = []
        record = encode_args(
            op, values, lambda v: isinstance(v, Tensor), lambda t: references[id(t)], self.numbers, payloads
        )
        if payloads:
            raise LookupError(f"a sample of {op.name} has a payload")
        results = [r for r in listed(engine.run(row(op.name), values)) if isinstance(r, Tensor)]
        count = len(self.ops)
        self.ops.append([op.name, record] if op.results is not None else [op.name, record, len(results)])
        # The target of an in-place op keeps its number.
        made_here = list(enumerate(results, count)) if op.mutates is None else [(0, values[0])]
        self._differentiate(engine, operands, made_here, orders)

    def _differentiate(
        self, engine: Engine, operands: list[Tensor], made: list[tuple[int, Tensor]], orders: int
    ) -> None:
        leaves = [i for i, t in enumerate(operands) if t.requires_grad]
        random = np.random.default_rng(0)
        for _ in range(orders):
            count = made[-1][0] + 1 if made else 0
            outputs = [(number, t) for number, t in made if t.requires_grad]
            if not outputs or not leaves:
                return
            seeds = [_like(engine, t, random) for _, t in outputs]
            try:
                gradients = engine.call(
                    "grad", [t for _, t in outputs], [operands[i] for i in leaves], seeds,
                    create_graph=True, allow_unused=True,
                )  # fmt: skip
            except GradwireError:
                return  # it has no derivative, or no second one
            first = -1 - len(operands) - len(self.seeds)
            self.seeds += [engine.to_numpy(seed) for seed in seeds]
            given = [first - i for i in range(len(seeds))]
            inputs = [-1 - i for i in leaves]
            self.ops.append(["grad", [[n for n, _ in outputs], inputs, given, None, True, True], len(leaves)])
            made = [(number, g) for number, g in enumerate(gradients, count) if g is not None]


def _like(engine: Engine, tensor: Tensor, random: np.random.Generator) -> Tensor:
    values = random.standard_normal(tensor.shape) + 1j * random.standard_normal(tensor.shape)
    drawn = engine.from_numpy(np.asarray(values if tensor.dtype.is_complex else values.real))
    return engine.call("copy_", engine.call("empty_like", engine.call("detach", tensor)), drawn)


class Side:
    """A session that applies such calls: on the tape, or ``by_plan`` of the first of them alone."""

    def __init__(self, by_plan: bool = False, compiled: bool = False) -> None:
        self.session = Session(LIMITS, seed=3)
        self.session.plans = self.plans = Plans(eager=True) if by_plan else None
        self.session.run_compiled(compiled)

    def hold(self) -> bool:
        """Capture no further frame. Returns whether there is a plan."""
        assert self.plans is not None
        for entry in self.plans.entries.values():
            entry.patience = NEVER
        return any(entry.plans for entry in self.plans.entries.values())

    def apply(self, call: Call, numbers: Sequence[Any], operands: Sequence[torch.Tensor] | None = None) -> list[Any]:
        """All that the call makes of these numbers and operands, comparable with ``==``."""
        session, engine = self.session, self.session.engine
        engine.generator.manual_seed(5)
        session.ids.clear()
        given = [to_ours(engine, t) for t in (call.operands if operands is None else operands)]
        given += [engine.from_numpy(np.array(seed)) for seed in call.seeds]
        external = [FIRST_EXTERNAL + i for i in range(len(given))]
        session.ids.update(zip(external, given, strict=True))
        structure = msgspec.Raw(msgspec.msgpack.encode(Structure(ops=call.ops, heard=True)))
        reply, _ = session.apply(Frame(structure=structure, external=external, scalars=list(numbers)))
        assert reply.refused is None, reply.refused
        found: list[Any] = [("failed", problem.code, problem.index) for problem in reply.errors]
        for number in range(reply.first, reply.first + reply.made):
            held = session.ids.get(number)
            found.append(_facts(held, given) if isinstance(held, Tensor) else type(held).__name__)
        return [*found, *[_facts(tensor, []) for tensor in given]]


def _facts(tensor: Tensor, operands: list[Tensor]) -> Any:
    """What can be told of a tensor; its array must be what its meta says."""
    array, announced = tensor.array, tensor.meta
    assert type(array) is np.ndarray, f"{type(array).__name__} instead of an array"
    assert array.dtype.name == announced.dtype.name, f"{array.dtype} instead of {announced.dtype}"
    assert array.shape == announced.shape, f"shape {array.shape} instead of {announced.shape}"
    if array.size:
        for made, said, extent in zip(array.strides, announced.stride, array.shape, strict=True):
            assert extent == 1 or made == said * array.itemsize, (
                f"strides {array.strides} in bytes instead of {announced.stride}"
            )
    shared = tuple(i for i, t in enumerate(operands) if np.may_share_memory(array, t.storage.array))
    name = None if tensor.grad_fn is None else tensor.grad_fn.name
    return (
        announced.dtype.name, announced.shape, announced.stride, _bytes(array), tensor.requires_grad, name,
        array.flags.writeable, shared, tensor.storage.version,
    )  # fmt: skip


def _bytes(array: Any) -> bytes:
    """The values, whatever the signs of NaNs."""
    if array.dtype.kind in "biu":
        return bytes(array.tobytes())
    flat = np.array(array).reshape(-1)
    parts = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    parts[parts != parts] = np.nan
    return bytes(parts.tobytes())
