"""From a call on proxies to a record in a frame: bind, infer, record, wrap. The client's one pipeline."""

from __future__ import annotations

import operator
import warnings
from typing import Any, Final

from gradwire_protocol import promotion
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, LimitExceeded
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.ops.control import INFERENCE_MODE
from gradwire_protocol.overlap import repeats
from gradwire_protocol.promotion import ScalarKind, fits
from gradwire_protocol.records import too_large, wrong_type
from gradwire_protocol.table import DEFAULT_DTYPE, FLOAT, TABLE, Expanded, Kind, Op, Param, attribute_matches

from ..context.call_sites import user_line
from ..context.modes import MODES, no_grad
from ..context.size import device
from ..graph.forward_levels import OPEN, propagate
from ..graph.graph_mirror import Node, edge_of
from ..graph.inference_operands import is_of_inference_alone
from ..graph.inplace import Rebasing, check_inplace
from ..graph.recorded_call import LISTS as _LISTS
from ..graph.recorded_call import OpBinding, RecordedCall, entry_of
from ..graph.save_policy import KEPT, refuse_derivative
from ..session.current_session import current_session
from ..session.session import Session
from ..tensor.saved_tensors import pack
from ..tensor.tensor import GRAD_ONLY, Tensor
from . import mapped_tensors, overrides
from .fast_path import NOT_APPLICABLE, prepare
from .known_rows import shift
from .signatures import Signature, key_of, known, learn

MEMO_LIMIT: Final = 16_384
GRADS_KEPT: Final = 4096
"""Metas of tensors whose gradients were asked for."""


_memo: dict[tuple[Any, ...], RecordedCall] = {}


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call an op by name with Python-style arguments. Returns a tensor, a tuple of tensors, or None.

    Raises:
        Whatever the op's rule raises, here and now, on the caller's line.
    """
    op = TABLE[name]
    return run(entry_of(op), op.bind(args, kwargs))


def run(entry: OpBinding, values: list[Any]) -> Any:
    """Record an op on bound values."""
    mode = MODES.key
    if mode < 0 or OPEN:
        return _run(entry, values, None)
    form = key_of(entry, values)
    signature = known(form)
    if signature is None:
        return _run(entry, values, form)
    session = signature.session_of(values)
    if (session.lock.joins if signature.joins else session.lock.ready) == mode:
        made = signature.record(signature, session, mode, *values)
        if made is not NOT_APPLICABLE:
            return made
    return _run(entry, values, None)


_tellers: dict[str, Signature] = {}
"""Signatures of ops without results, by name: what their records look like does not depend on metas."""


def tell(name: str, values: list[Any]) -> None:
    """Record an op that only tells the server something. Its calls pass tensors, lists and constants at the same places
    each time."""
    signature = _tellers.get(name)
    if signature is None:
        entry = entry_of(TABLE[name])
        recipe = RecordedCall(entry, [None] * len(values), Inference(()), values)  # it outlives these values
        signature = _tellers[name] = Signature(entry, recipe, prepare)
    session = signature.session_of(values)
    key = MODES.key
    if session.lock.ready != key or signature.record(signature, session, key, *values) is NOT_APPLICABLE:
        session.builder.record(signature.entry.op, values, 0, signature.recipe)


_GRAD_OF: Final = entry_of(TABLE["grad_of"])
_grads: dict[Meta, Signature] = {}


def grad_of(tensor: Tensor) -> Any:
    """A proxy for what ``tensor.grad`` is on the server by now."""
    values = [tensor, None if tensor._chosen is ... else tensor._chosen]
    if values[1] is None and not OPEN:
        signature = _grads.get(tensor._form)
        if signature is not None:
            session, key = tensor._session, MODES.key
            if session.lock.joins == key:
                made = signature.record(signature, session, key, tensor)
                if made is not NOT_APPLICABLE:
                    return made
        elif (signature := known(key_of(_GRAD_OF, values))) is not None:
            if len(_grads) >= GRADS_KEPT:
                _grads.clear()
            _grads[tensor._form] = signature
    return run(_GRAD_OF, values)


def _is_itself(expanded: Tensor, operand: Tensor) -> bool:
    """Whether an expanded tensor and another are the same view of the same memory. The server is asked where they begin
    if all else is equal."""
    if not repeats(expanded._form) or expanded._form != operand._form:
        return False
    if expanded is operand:
        return True
    shared = expanded._versions is not None and expanded._versions is operand._versions
    return shared and expanded.storage_offset() == operand.storage_offset()


def _run(entry: OpBinding, values: list[Any], form: Any) -> Any:
    """The long way. The form of the call, where it has one, is learnt by it."""
    op = entry.op
    if (MODES.classes or MODES.functions) and not op.control:
        made = overrides.left_to_classes(entry, values)
        if made is not NotImplemented:
            return made
    levels: Any = ()
    if MODES.casts is not None:
        values = MODES.casts(entry, values)
    if MODES.maps:
        if op.random and not any(isinstance(values[i], Tensor) for i in entry.tensors):
            return mapped_tensors.draw(entry, values)
        levels = mapped_tensors.prepare(entry, values)
    described, session = _describe(entry, values)
    default = session.builder.default_dtype
    recipe = _recipe(entry, described, values, default)
    warns = op.casts and _loses_imaginary(op, described, recipe)
    if warns:
        form = None  # each time, so that it is never learnt
    if form is not None and default is DEFAULT_DTYPE:
        learn(form, entry, recipe, prepare)
    inferred = recipe.inferred
    if inferred.check is not None:
        inferred.check(*values)
    target = values[0] if op.mutates is not None else None
    flags = MODES.flags
    recording = flags & GRAD_ONLY == 1
    if recording and op.underived:
        entry.keeping.refuse_underived(values)
    requires = recording and op.grad_fn is not None and _any_requires(entry, values)
    if requires and MODES.inference_leaves and is_of_inference_alone(op, entry.tensors, values):
        with no_grad():
            return _run(entry, values, form)
    if target is not None:
        if op.casts and not target._form.dtype.carries_gradient:
            requires = False
        check_inplace(op, values, requires, op.expanded is Expanded.ITSELF and _is_itself(target, values[1]))
        if MODES.mutations is not None:
            MODES.mutations.before_change(target)
    if warns:
        warnings.warn("complex numbers become real ones: their imaginary parts are lost", UserWarning, stacklevel=3)
    if recipe.largest > session.max_tensor_bytes:
        raise LimitExceeded(
            f"{op.name}: the result would take {recipe.largest:,} bytes, a tensor on this server may take "
            f"{session.max_tensor_bytes:,} (GRADWIRE_MAX_TENSOR_BYTES)",
            setting="GRADWIRE_MAX_TENSOR_BYTES", limit=session.max_tensor_bytes, value=recipe.largest,
        )  # fmt: skip
    outs = recipe.visible
    line = user_line()
    # Before the record: a view may refuse, and so does what was made in inference mode. What has no history, a
    # mask say, does not look at that of its operands.
    edges = _edges(entry, values) if requires and (target is not None or recipe.carries) else ()
    kept = _held(entry, edges, recipe, values, target) if requires and (recipe.carries or target is not None) else None
    if target is not None:
        written = _Written(entry, values, recipe, edges, kept, line)
        if recipe.nowhere:
            written.note()
        else:
            _write(session, op, values, recipe, line, written)
    elif recipe.nowhere:
        first = session.builder.nowhere(len(outs) or 1)
    elif target is None:
        first = session.builder.record(op, values, len(outs), recipe, line)
    if target is not None:
        if OPEN:
            propagate(entry, values, [target], recording)
        return target
    node = None
    if kept is not None:
        node = Node(recipe.node, edges, line)
        _keep(entry, node, values, kept)
    results = [Tensor._make(session, first + i, out, node, i) for i, out in enumerate(outs)]
    if op.constant and node is not None:
        for i in op.constant:
            results[i]._node, results[i]._slot = None, 0
    if inferred.offsets is not None and not op.untracked:
        for result in results:
            result._view_of(values[0], op.grad_fn is not None, op.results is None, recording)
    elif flags & INFERENCE_MODE:
        for result in results:
            result._inference = True
    if node is not None and kept is not None:
        places = kept[0]
        if places[1]:
            entry.keeping.keep_results(node, places, results)
        if MODES.packing:
            _pack(node, op, places, values, results, results[0])
    if levels:
        for result in results:
            result._levels = levels
    elif recipe.shifts:
        shift(recipe, values, results[0])
    if OPEN:
        propagate(entry, values, results, recording)
    return results[0] if op.results == 1 else tuple(results)


def _loses_imaginary(op: Op, described: Any, recipe: RecordedCall) -> bool:
    """Whether a cast is one of complex numbers to floats or integers."""
    source, into = (described[1], described[0]) if op.mutates is not None else (described[0], recipe.inferred.outs[0])
    return source.dtype.is_complex and not into.dtype.is_complex and into.dtype.category > 0 and into.numel != 0


def _held(entry: OpBinding, edges: tuple[Any, ...], recipe: RecordedCall, values: list[Any], target: Any) -> Any:
    """The places of all that a node will keep, and what it keeps of its operands."""
    keeping = entry.keeping
    places = keeping.whole or keeping.places(edges, recipe)
    return places, keeping.held(places, values, KEPT if target is None else target) if places[0] else ()


def _keep(entry: OpBinding, node: Node, values: list[Any], kept: Any) -> None:
    """Note what a node keeps of its operands."""
    keeping = entry.keeping
    node.saved = kept[1]
    if keeping.numbers:
        keeping.keep_numbers(node, values)
    if node.recipe.missing is not None:
        refuse_derivative(node)
    if MODES.region is not None:
        MODES.region.note(node)


class _Written:
    """What a write to the first operand changes in the mirror, one that is recorded if something is ``kept``."""

    __slots__ = ("_count", "_entry", "_line", "_node", "_places", "_rebasing", "_saved", "_values")

    def __init__(
        self, entry: OpBinding, values: list[Any], recipe: RecordedCall, edges: tuple[Any, ...], kept: Any, line: Any
    ) -> None:
        target = values[0]
        self._entry, self._values, self._line = entry, values, line
        self._count = target._cell()[0] + 1
        self._node: Node | None = None
        if kept is not None:
            self._node = Node(recipe.node, edges, line)
            self._places = kept[0]
            _keep(entry, self._node, values, kept)
            self._saved = self._node.saved
            self._rebasing = Rebasing(target, self._node)

    def note(self) -> None:
        """Change it. Done twice, it is done once."""
        target, node, entry = self._values[0], self._node, self._entry
        target._cell()[:] = self._count, entry.op.name, self._line
        if node is None:
            return
        node.saved = self._saved
        self._rebasing.carry_out()
        if self._places[1]:
            entry.keeping.keep_results(node, self._places, [target])
        if MODES.packing:
            values = [None if v is target else v for v in self._values]
            _pack(self._rebasing.node, entry.op, self._places, values, [target], self._rebasing.root)


def _write(session: Session, op: Op, values: list[Any], recipe: RecordedCall, line: Any, written: _Written) -> None:
    """Record a write and note it in the mirror: both, or neither, whatever comes in between."""
    with session.lock:
        try:
            session.builder.record(op, values, 0, recipe, line)
            written.note()
        except BaseException:
            if session.builder.holds(line):
                written.note()
            raise


def _pack(node: Node, op: Op, places: Any, values: list[Any], results: list[Any], made: Tensor) -> None:
    pack(node, op, places, values, results, made)


def _describe(entry: OpBinding, values: list[Any]) -> tuple[list[Any], Session]:
    op, params = entry.op, entry.op.params
    session: Session | None = None
    described = list(values)
    for i in entry.tensors:
        value = values[i]
        if isinstance(value, Tensor):
            described[i] = value._form
            if session is None:
                session = value._session
            elif value._session is not session:
                _refuse_mixture(session, value, op)
        elif value is None:
            if not params[i].optional:
                raise wrong_type(op, params[i], value)
        elif params[i].kind in _LISTS:
            items = values[i] = list(value)
            for item in items:
                if isinstance(item, Tensor):
                    if session is None:
                        session = item._session
                    elif item._session is not session:
                        _refuse_mixture(session, item, op)
                elif item is not None or params[i].kind is Kind.TENSORS:
                    raise wrong_type(op, params[i], item)
            described[i] = tuple([None if t is None else t._form for t in items])
        elif params[i].kind is Kind.OPERAND:
            described[i] = _kind(op, params[i], value, values, i)
        else:
            raise wrong_type(op, params[i], value)
    for i in entry.scalars:
        value = values[i]
        if value is None and params[i].optional:
            continue
        if params[i].kind is Kind.POSITION:
            described[i] = values[i] = as_int(value, op, params[i])
        else:
            described[i] = _kind(op, params[i], value, values, i)
    for i in entry.attributes:
        value = values[i]
        if value is not params[i].default and not attribute_matches(value, params[i].check):
            described[i] = values[i] = normalise(op, params[i], value)
        elif type(value) is not tuple and isinstance(value, tuple):
            described[i] = values[i] = tuple(value)
    for i in entry.payloads:
        described[i] = None
    return described, session if session is not None else current_session()


def _refuse_mixture(session: Session, tensor: Tensor, op: Op) -> None:
    raise ArgumentError(f"{op.name}: its tensors belong to different sessions, {session.id} and {tensor._session.id}")


def _kind(op: Op, param: Param, value: Any, values: list[Any], i: int) -> ScalarKind:
    kind = ScalarKind.of(value)
    if kind is None:
        if isinstance(value, Tensor):
            value = values[i] = _item(value, op, param)
        elif hasattr(value, "item") and getattr(value, "shape", None) == ():
            value = values[i] = value.item()  # a NumPy scalar
        kind = ScalarKind.of(value)
        if kind is None:
            raise wrong_type(op, param, value)
    elif type(value) not in (bool, int, float, complex):
        values[i] = {"bool": bool, "int": int, "float": float, "complex": complex}[kind.value](value)
    if kind is ScalarKind.INT and not fits(values[i]):
        if param.numbers != FLOAT:
            raise too_large(op, param)
        values[i] = _as_float(op, param, values[i])
        return ScalarKind.FLOAT
    return kind


def _item(value: Tensor, op: Op, param: Param) -> Any:
    """The number of a tensor that is given for one.

    Raises:
        ArgumentTypeError: for one with dimensions, and for one that a gradient would have to flow to.
    """
    if value.requires_grad or value.ndim:
        raise ArgumentTypeError(
            f"{op.name}: {param.name} is a number; a tensor for it is 0-dim and requires no gradient, got "
            f"{value._form!r}{' that requires grad' if value.requires_grad else ''}"
        )
    return value.item()


def _as_float(op: Op, param: Param, value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise too_large(op, param) from None


def as_int(value: Any, op: Op, param: Param) -> int:
    """An int of 64 bits from anything that can stand for one, a 0-dim integer tensor included."""
    try:
        found = operator.index(value)
    except TypeError:
        raise wrong_type(op, param, value) from None
    if not -(1 << 63) <= found < 1 << 63:
        raise wrong_type(op, param, found)
    return found


def normalise(op: Op, param: Param, value: Any) -> Any:
    """An attribute in its declared form: lists become tuples, integer-likes ints, devices and dtypes their own."""
    if isinstance(value, device):
        value = value.wire
    if isinstance(value, (list, tuple)):
        value = tuple(_plain(v) for v in value)
    elif type(value) is type and DType in param.check:
        value = OF_PYTHON_TYPES.get(value, value)
    elif isinstance(value, str):
        value = str.__str__(value)  # of an enumeration of strings, what is meant
    elif not isinstance(value, DType):
        value = _plain(value)
    if type(value) is int and float in param.check and int not in param.check and not fits(value):
        value = _as_float(op, param, value)
    if attribute_matches(value, param.check):
        return value
    if not isinstance(value, (tuple, str)) and attribute_matches((value,), param.check):
        return (value,)
    raise wrong_type(op, param, value)


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in value)
    if hasattr(value, "__index__"):
        return operator.index(value)
    return value.item() if hasattr(value, "item") else value


def _recipe(entry: OpBinding, described: list[Any], values: list[Any], default: DType) -> RecordedCall:
    params = entry.op.params
    key = (
        entry, default, *described,
        *[type(described[i]) for i in entry.numbers],
        *[values[i] is params[i].default for i in entry.scalars],
    )  # fmt: skip
    found = _memo.get(key)
    if found is None:
        if promotion.DEFAULT_FLOAT.get() is not default:
            promotion.DEFAULT_FLOAT.set(default)
        try:
            inferred = entry.op.infer(described)
        except Exception:
            if not _resolve_shapes(entry, described, values):
                raise
            return _recipe(entry, described, values, default)  # under the extents found, not under the unknown ones
        found = RecordedCall(entry, described, inferred, values)
        if len(_memo) >= MEMO_LIMIT:
            _memo.clear()
        _memo[key] = found
    return found


def _resolve_shapes(entry: OpBinding, described: list[Any], values: list[Any]) -> bool:
    """Look up extents that depend on data, since a rule could not do without. Costs a round trip."""
    changed = False
    for i in entry.tensors:
        value = values[i]
        if isinstance(value, Tensor) and not value._form.known:
            described[i] = value._known_meta()
            changed = True
        elif isinstance(value, list) and any(t is not None and not t._form.known for t in value):
            described[i] = tuple([None if t is None else t._known_meta() for t in value])
            changed = True
    return changed


def _any_requires(entry: OpBinding, values: list[Any]) -> bool:
    for i in entry.differentiable:
        value = values[i]
        if isinstance(value, Tensor):
            if value._requires or (value._node is not None and value._base_tensor is None) or value.requires_grad:
                return True
        elif type(value) is list and any(t is not None and t.requires_grad for t in value):
            return True
    return False


def _edges(entry: OpBinding, values: list[Any]) -> tuple[Any, ...]:
    edges: list[Any] = []
    for i in entry.differentiable:
        value = values[i]
        if isinstance(value, Tensor):
            edges.append(edge_of(value))
        elif type(value) is list:
            edges.extend(None if t is None else edge_of(t) for t in value)
        else:
            edges.append(None)
    return tuple(edges)
