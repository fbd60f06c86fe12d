"""Frames with every op of the table, and what the engine makes of them.

A frame that is stored is applied again, so only an op without vectors needs its samples (and torch).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from gradwire.cli.conformance.vectors import Vector
from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame, Reply
from gradwire_protocol.table import Op

from . import callbacks  # noqa: F401  (registers acts)
from .acts import ACTS, Act
from .frame_maker import FrameMaker, Ref
from .store import Groups
from .table import all_ops

DIGITS: Final = {"float16": 5, "bfloat16": 5, "float32": 7, "complex64": 7, "float64": 12, "complex128": 12}
"""Significant digits of computed numbers."""
TOLERANCES: Final = {
    "float16": (5e-3, 5e-3), "bfloat16": (3e-2, 3e-2), "float32": (1e-4, 1e-5), "complex64": (1e-4, 1e-5),
    "float64": (1e-7, 1e-8), "complex128": (1e-7, 1e-8),
}  # fmt: skip
UNPROMISED: Final = ("empty", "empty_like")
"""Ops whose values nobody promises."""
SEEDED: Final = ("rand", "randn", "randint", "randperm")
"""Random ops whose numbers follow from the seed on every device, as docs/differences.md says."""
UP_TO_PHASE: Final = {"linalg_eigh": (1,), "linalg_svd": (0, 2)}
"""Results that are unique up to the sign or phase of columns: their absolute values are compared."""
UNORDERED: Final = ("linalg_eig", "linalg_eigvals")
"""Ops that return eigenvalues in an order of LAPACK's: their sum is compared."""
SIZES: Final = (48, 200, 2000)
"""The most elements of a sample's operands, and twice that of its results: more only where all samples have more."""


def derived(stored: Groups) -> Groups:
    """All groups of ops: what is stored, applied again, and what is missing."""
    found: Groups = {}
    for op in all_ops():
        group = f"ops/{op.family}"
        prefix = f"{group}/{op.name}/"
        known = [vector for vector in stored.get(group, []) if vector["id"].startswith(prefix)]
        if not op.internal:  # any more
            known = [vector for vector in known if vector["id"] != f"{prefix}internal"]
        made = [applied(vector) for vector in known] or list(_made(op, prefix))
        found.setdefault(group, []).extend(made)
    return found


def applied(vector: Vector) -> Vector:
    """The vector with what the engine answers now, where its expectation says as much."""
    reply = apply(vector["frame"])
    expected = vector["expect"]
    fresh = expectation(reply)
    if "values" in expected:
        pairs = zip(expected["values"], fresh.get("values", []), strict=False)
        fresh["values"] = [{name: new[name] for name in new if name in old} for old, new in pairs]
    return vector | {"expect": fresh}


def apply(frame: dict[str, Any]) -> Reply:
    """The engine's reply to a frame in JSON form, in a session of its own."""
    session = Session()
    try:
        with np.errstate(all="ignore"):
            return session.apply(_frame(frame), human=True)[0]
    finally:
        session.close()


def _frame(frame: dict[str, Any]) -> Frame:
    return msgspec.json.decode(msgspec.json.encode(frame), type=Frame)


def expectation(reply: Reply) -> dict[str, Any]:
    """What a reply says, as vectors write it."""
    if reply.refused is not None:
        raise ValueError(reply.refused.detail)
    if reply.errors:
        return {"errors": [{"code": e.code, "op": e.op, "index": e.index} for e in reply.errors[:1]]}
    values = [_value(each.dtype, each.shape, each.values) for each in reply.values]
    return {"values": values} if values else {}


def _value(dtype: str, shape: list[int], values: Any) -> dict[str, Any]:
    if not dtype:
        return {"dtype": {"$absent": True}}
    return {"dtype": dtype, "shape": list(shape), "values": _rounded(values, DIGITS.get(dtype))}


def _rounded(value: Any, digits: int | None) -> Any:
    if isinstance(value, list):
        return [_rounded(each, digits) for each in value]
    if isinstance(value, float) and digits is not None and math.isfinite(value):
        return float(f"{value:.{digits}g}")
    return value


# Making what is missing


def _made(op: Op, prefix: str) -> Iterator[Vector]:
    if op.internal:
        frame = {"structure": {"ops": [[op.name, []]], "heard": True}}
        yield _vector(f"{prefix}internal", f"{op.name} is the engine's own: a frame that names it fails", frame, {})
        return
    acts = [act for act in ACTS if act.op == op.name]
    for act in acts:
        yield _acted(f"{prefix}{act.name}", act)
    if acts:
        return
    for size in SIZES:
        found = list(_sampled_vectors(op, prefix, size))
        works = [vector for vector in found if "errors" not in vector["expect"]]
        if works:
            yield from found if size == SIZES[0] else works[:1]
            return


def _sampled_vectors(op: Op, prefix: str, size: int) -> Iterator[Vector]:
    from .sampled_calls import calls

    counts: dict[str, int] = {}
    for call in calls(op, size):
        label = "error" if call.fails else call.label
        number = f"-{counts[label] + 1}" if label in counts else ""
        vector = _sampled(f"{prefix}{label}{number}", call, 2 * size)
        if vector is not None:
            counts[label] = counts.get(label, 0) + 1
            yield vector


def _acted(label: str, act: Act) -> Vector:
    maker = FrameMaker()
    act.make(maker)
    found = _vector(label, act.text, maker.frame(), act.facts)
    if not act.compared:
        _forget_values(found)
    return found


def _vector(label: str, text: str, frame: dict[str, Any], more: dict[str, Any]) -> Vector:
    expected = expectation(apply(frame))
    dtypes = {v["dtype"] for v in expected.get("values", []) if isinstance(v["dtype"], str)}
    found = {"id": label, "text": text, "frame": frame, "expect": expected} | more
    tolerances = [TOLERANCES[dtype] for dtype in dtypes if dtype in TOLERANCES]
    if tolerances:
        found["rtol"] = max(more.get("rtol", 0.0), *(each[0] for each in tolerances))
        found["atol"] = max(more.get("atol", 0.0), *(each[1] for each in tolerances))
    return found


def _forget_values(vector: Vector) -> None:
    for value in vector["expect"].get("values", []):
        value.pop("values", None)


def _sampled(label: str, call: Any, size: int) -> Vector | None:
    """A sample as a vector; ``None`` if the engine does not agree that it works, or that it fails."""
    for places in (3, None):  # numbers of few digits, unless the call needs exact ones
        maker = FrameMaker()
        results = _call(maker, call, places)
        if results is None:
            return None
        reply = apply(maker.frame())
        if bool(reply.errors) == call.fails:
            break
    else:
        return None
    if sum(math.prod(value.shape) for value in reply.values) > size:
        return None
    if call.op.name in UP_TO_PHASE or call.op.name in UNORDERED:
        _make_unique(maker, call.op.name, results)
    gradients = [] if call.fails else _gradients(maker, call, reply)
    text = f"{call.op.name}({', '.join(_described(call.given))})"
    if gradients:
        text += " and gradients"
    frame = maker.frame()
    try:
        vector = _vector(label, text, frame, dict(zip(("rtol", "atol"), call.tolerance, strict=True)))
    except ValueError:
        return None
    if not any(call.tolerance) and "rtol" in vector and not vector["rtol"]:
        del vector["rtol"], vector["atol"]
    if call.op.name in UNPROMISED or (call.op.random and call.op.name not in SEEDED):
        _forget_values(vector)
    elif call.op.name in UNORDERED and not call.fails:
        vector["expect"]["values"][0].pop("values")
    return vector


def _call(maker: FrameMaker, call: Any, places: int | None) -> list[Ref] | None:
    from .sampled_calls import converted, dtype_of, tensors_of, values_of

    refs: dict[int, Ref] = {}
    written = call.op.base is not None or call.op.mutates is not None
    first = next((t for value in call.given.values() for t in tensors_of(value)), None)
    if call.op.random:
        maker.record("manual_seed", 7)
    for value in call.given.values():
        for tensor in tensors_of(value):
            if id(tensor) not in refs:
                dtype = dtype_of(tensor.dtype).name
                refs[id(tensor)] = maker.upload(dtype, list(tensor.shape), values_of(tensor, places))
                if tensor.requires_grad and call.label == "float32" and not written:
                    maker.record("requires_grad_", refs[id(tensor)])
    given = {name: converted(value, lambda t: refs[id(t)]) for name, value in call.given.items()}
    try:
        results = maker.record(call.op.name, results=_count(call), **given)
    except Exception:
        if call.fails:
            return None  # the encoding refuses it already
        raise
    maker.reads = list(map(int, results)) or ([int(refs[id(first)])] if written and first is not None else [])
    return results


def _count(call: Any) -> int | None:
    """How many results a call has where its op leaves that open."""
    from gradwire_protocol.errors import GradwireError
    from gradwire_protocol.meta import meta
    from gradwire_protocol.promotion import ScalarKind
    from gradwire_protocol.table import Kind

    from .sampled_calls import converted, dtype_of

    if call.op.results is not None:
        return None
    values = []
    bound = call.op.bind([], dict(call.given))
    for param, value in zip(call.op.params, bound, strict=True):
        value = converted(value, lambda t: meta(tuple(t.shape), dtype_of(t.dtype), "cpu"))
        values.append(ScalarKind.of(value) or value if param.kind in (Kind.SCALAR, Kind.OPERAND) else value)
    try:
        return len(call.op.infer(values).outs)
    except GradwireError:
        return 1


def _make_unique(maker: FrameMaker, name: str, results: list[Ref]) -> None:
    if name in UNORDERED:
        maker.reads = [int(results[0]), int(maker.record("sum", results[0])[0])]
        return
    for at in UP_TO_PHASE[name]:
        maker.reads[at] = int(maker.record("abs", results[at])[0])


def _gradients(maker: FrameMaker, call: Any, reply: Reply) -> list[Ref]:
    """Add the gradients of all results with respect to the operands, where there are any."""
    op = call.op
    leaves = [Ref(record[1][0]) for record in maker.ops if record[0] == "requires_grad_"]
    if not leaves or not call.gradients or not op.grad_fn or op.name in (*UP_TO_PHASE, *UNORDERED) or op.random:
        return []
    before = (list(maker.ops), list(maker.reads), list(maker.payloads), list(maker.scalars), maker.made)
    outs, seeds = [], []
    for at, value in enumerate(reply.values):
        if value.dtype == "float32" and at not in op.constant:
            count = math.prod(value.shape)
            ramp = np.array([(i % 5 + 1) * 0.25 for i in range(count)]).reshape(value.shape).tolist()
            outs.append(Ref(maker.reads[at]))
            seeds.append(maker.upload("float32", list(value.shape), ramp))
    if outs:
        made = maker.record("grad", outs, leaves, seeds, allow_unused=True, results=len(leaves))
        maker.reads += map(int, made)
        tried = apply(maker.frame())
        if not tried.errors and tried.refused is None:
            return made
    maker.ops, maker.reads, maker.payloads, maker.scalars, maker.made = before
    return []


def _described(given: dict[str, Any]) -> Iterator[str]:
    from .sampled_calls import dtype_of, tensors_of

    for name, value in given.items():
        tensors = tensors_of(value)
        if tensors:
            yield f"{name}: " + " ".join(f"{dtype_of(t.dtype).name}{list(t.shape)}" for t in tensors)
        else:
            yield f"{name}={str(value).removeprefix('torch.'):.60}"
