"""From a call on proxies to a record in a frame: bind, infer, record, wrap. The client's one pipeline."""

from __future__ import annotations

import operator
import warnings
from functools import cached_property
from typing import Any, Final

from gradwire_protocol import promotion
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, LimitExceeded
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.promotion import ScalarKind, fits
from gradwire_protocol.records import encode_args, too_large, wrong_type
from gradwire_protocol.table import DEFAULT_DTYPE, FLOAT, TABLE, Kind, Op, Param, attribute_matches

from . import mapping
from .duals import OPEN, propagate
from .forms import Short, key_of, known, learn, ways_of
from .inference_operands import NUMBERS_AS_TENSORS, is_of_inference_alone
from .inplace import Rebasing, check_inplace
from .iterating import can_shift, shift
from .lines import user_line
from .mirror import Node, edge_of
from .modes import MODES, no_grad
from .saved import KEPT, Keeping, refuse_derivative
from .session import Session
from .sessions import current_session
from .short_way import LONG, many, one
from .size import device
from .telling import told
from .tensor import GRAD_ONLY, LATER, Tensor

MEMO_LIMIT: Final = 16_384
GRADS_KEPT: Final = 4096
"""Metas of tensors whose gradients were asked for."""
_LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)


class Entry:
    """What the client precomputes of one op."""

    # All of it is read at the first call, since a program calls few of the ops.

    def __init__(self, op: Op) -> None:
        self.op = op

    def _of(self, *kinds: Kind) -> tuple[int, ...]:
        return tuple(i for i, p in enumerate(self.op.params) if p.kind in kinds)

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        return self._of(Kind.TENSOR, Kind.OPERAND, *_LISTS)

    @cached_property
    def scalars(self) -> tuple[int, ...]:
        return self._of(Kind.SCALAR, Kind.POSITION)

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        return self._of(Kind.ATTRIBUTE)

    @cached_property
    def payloads(self) -> tuple[int, ...]:
        return self._of(Kind.PAYLOAD)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return tuple(i for i in self.attributes if {int, float} <= set(self.op.params[i].check))

    @cached_property
    def differentiable(self) -> tuple[int, ...]:
        return tuple(i for i in self.tensors if self.op.params[i].name in self.op.differentiable)

    @cached_property
    def ways(self) -> tuple[int, ...]:
        """How the arguments count where a form of call is told from others."""
        return ways_of(self.op)

    @cached_property
    def defaults(self) -> tuple[Any, ...]:
        return self.op.defaults

    @cached_property
    def keeping(self) -> Keeping:
        """What its derivative keeps."""
        return Keeping(self.op)


class Recipe:
    """What is memoised of a call: the rule's answer, and the record's arguments but for references and numbers.

    Attributes:
        entry, described: the op, and its arguments as the rule sees them.
        kept: what its derivative keeps, by which operands receive a gradient.
        template: the arguments; ``None`` where they are encoded anew each time.
        largest: bytes of the largest result that is new memory.
        carries: whether some result is of a dtype that gradients can be of.
        node_name: what the recorded node is called.
        nowhere: whether all that it makes or changes is on the meta device, so that there is nothing to compute.
        references, lists: where in the template the reference to a tensor goes, and those to several.
        numbers: the values that go to the frame's table of scalars, in order.
        missing: why there is no derivative, and by which operands (none: by all); ``None`` where there is one.
        shifts: whether it is arithmetic that the client can do as well.
    """

    __slots__ = (
        "carries", "described", "entry", "inferred", "kept", "largest", "lists", "node_name", "nowhere",
        "missing", "numbers", "references", "shifts", "template",
    )  # fmt: skip

    def __init__(self, entry: Entry, described: list[Any], inferred: Inference, values: list[Any]) -> None:
        self.entry = entry
        self.described = described
        self.shifts = can_shift(entry.op.name, described)
        self.kept: dict[Any, Any] = {}
        self.inferred = inferred
        why = entry.op.underivable
        self.missing = inferred.missing if why is None else (why, ())
        constant = entry.op.constant
        self.carries = any(
            out.dtype.category >= 2 and i not in constant for i, out in enumerate(inferred.outs[: entry.op.results])
        )
        self.node_name: str = inferred.grad_fn or entry.op.grad_fn or entry.op.name
        made = inferred.outs if entry.op.mutates is None else described[:1]
        self.nowhere = bool(made) and all(type(out) is Meta and out.device == "meta" for out in made)
        self.largest = 0 if inferred.is_view or self.nowhere else max((out.nbytes for out in inferred.outs), default=0)
        self.template: list[Any] | None = None
        self.references: tuple[int, ...] = ()
        self.numbers: tuple[int, ...] = ()
        self.lists: tuple[int, ...] = ()
        op = entry.op
        if entry.payloads or any(type(v) is complex for v in values):
            return
        scalars: list[Any] = []
        self.template = encode_args(op, values, Tensor.__instancecheck__, lambda tensor: 0, scalars, [])
        sent = range(len(self.template))
        self.references = tuple(i for i in entry.tensors if i in sent and isinstance(values[i], Tensor))
        self.lists = tuple(i for i in entry.tensors if i in sent and type(values[i]) is list)
        taken = [
            i for i in sent
            if (i in entry.scalars or i in entry.tensors) and values[i] is not None
            and i not in self.references and i not in self.lists
        ]  # fmt: skip
        self.numbers = tuple(taken)
        assert len(self.numbers) == len(scalars)

    @property
    def hidden(self) -> tuple[int, ...]:
        """The edges that PyTorch's node lacks, since its form of the op takes a number there."""
        op, params = self.entry.op, self.entry.op.params
        name = (op if op.base is None else op.base).name
        places = [i for i in self.entry.differentiable if params[i].kind is Kind.OPERAND]
        if not places or any(params[i].kind in _LISTS for i in self.entry.differentiable):
            return ()
        tensors = any(type(self.described[i]) is Meta for i in places)
        return tuple(
            at for at, i in enumerate(self.entry.differentiable)
            if i in places and type(self.described[i]) is not Meta and not (tensors and self.described[i] is None)
            and (name, params[i].name) not in NUMBERS_AS_TENSORS
        )  # fmt: skip


ENTRIES: Final[dict[str, Entry]] = {}
_memo: dict[tuple[Any, ...], Recipe] = {}


def entry_of(op: Op) -> Entry:
    found = ENTRIES.get(op.name)
    if found is None:
        found = ENTRIES[op.name] = Entry(op)
    return found


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call an op by name with Python-style arguments. Returns a tensor, a tuple of tensors, or None.

    Raises:
        Whatever the op's rule raises, here and now, on the caller's line.
    """
    op = TABLE[name]
    return run(entry_of(op), op.bind(args, kwargs))


def run(entry: Entry, values: list[Any]) -> Any:
    """Record an op on bound values."""
    mode = MODES.key
    if mode < 0 or OPEN:
        return _run(entry, values, None)
    form = key_of(entry, values)
    short = known(form)
    if short is None:
        return _run(entry, values, form)
    session = short.session_of(values)
    if short.tells:
        out = short.out
        number = told(short, session, values, mode)
        if number < 0:
            number = session.record(entry.op, values, 0 if out is None else 1, short.recipe)
        return () if out is None else Tensor._make(session, number, out)
    if session.lock.ready == mode:
        made = one(short, session, values[0], mode) if short.single else many(short, session, values, mode)
        if made is not LONG:
            return made
    return _run(entry, values, None)


_GRAD_OF: Final = entry_of(TABLE["grad_of"])
_grads: dict[Meta, Short] = {}


def grad_of(tensor: Tensor) -> Any:
    """A proxy for what ``tensor.grad`` is on the server by now."""
    values = [tensor, None if tensor._chosen is ... else tensor._chosen]
    if values[1] is None and not OPEN:
        short = _grads.get(tensor._meta)
        if short is not None:
            number = told(short, tensor._session, values, MODES.key)
            if number >= 0:
                return Tensor._make(tensor._session, number, short.out)
        elif (short := known(key_of(_GRAD_OF, values))) is not None:
            if len(_grads) >= GRADS_KEPT:
                _grads.clear()
            _grads[tensor._meta] = short
    return run(_GRAD_OF, values)


def _run(entry: Entry, values: list[Any], form: Any) -> Any:
    """The long way. The form of the call, where it has one, is learnt by it."""
    op = entry.op
    if (MODES.classes or MODES.functions) and not op.control:
        made = LATER["left_to_classes"](entry, values)
        if made is not NotImplemented:
            return made
    levels: Any = ()
    if MODES.casts is not None:
        values = MODES.casts(entry, values)
    if MODES.maps:
        if op.random and not any(isinstance(values[i], Tensor) for i in entry.tensors):
            return mapping.draw(entry, values)
        levels = mapping.prepare(entry, values)
    described, session = _describe(entry, values)
    recipe = _recipe(entry, described, values, session.default_dtype)
    warns = op.casts and _loses_imaginary(op, described, recipe)
    if warns:
        form = None  # each time, so that it is never learnt
    if form is not None and session.default_dtype is DEFAULT_DTYPE:
        learn(form, entry, recipe)
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
        if op.casts and target._meta.dtype.category < 2:
            requires = False
        check_inplace(op, values, requires)
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
    # What a rule lists beyond the declared results is for backward, and stays on the server.
    outs = inferred.outs if op.results is None else inferred.outs[: op.results]
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
        first = session.nowhere(len(outs) or 1)
    elif target is None:
        first = session.record(op, values, len(outs), recipe, line)
    if target is not None:
        if OPEN:
            propagate(entry, values, [target], recording)
        return target
    node = None
    if kept is not None:
        node = Node(recipe.node_name, edges, inferred.outs, recipe, line)
        _keep(entry, node, values, kept)
    results = [Tensor._make(session, first + i, out, node, i) for i, out in enumerate(outs)]
    if op.constant and node is not None:
        for i in op.constant:
            results[i]._node, results[i]._slot = None, 0
    if inferred.offsets is not None and not op.untracked:
        for result in results:
            result._view_of(values[0], op.grad_fn is not None, op.results is None, recording)
    elif flags & 2:
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


def _loses_imaginary(op: Op, described: Any, recipe: Recipe) -> bool:
    """Whether a cast is one of complex numbers to floats or integers."""
    source, into = (described[1], described[0]) if op.mutates is not None else (described[0], recipe.inferred.outs[0])
    return source.dtype.is_complex and not into.dtype.is_complex and into.dtype.category > 0 and into.numel != 0


def _held(entry: Entry, edges: tuple[Any, ...], recipe: Recipe, values: list[Any], target: Any) -> Any:
    """The places of all that a node will keep, and what it keeps of its operands."""
    keeping = entry.keeping
    places = keeping.whole or keeping.places(edges, recipe)
    return places, keeping.held(places, values, KEPT if target is None else target) if places[0] else ()


def _keep(entry: Entry, node: Node, values: list[Any], kept: Any) -> None:
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
        self, entry: Entry, values: list[Any], recipe: Recipe, edges: tuple[Any, ...], kept: Any, line: Any
    ) -> None:
        target = values[0]
        self._entry, self._values, self._line = entry, values, line
        self._count = target._cell()[0] + 1
        self._node: Node | None = None
        if kept is not None:
            self._node = Node(recipe.node_name, edges, (target._meta,), recipe, line)
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


def _write(session: Session, op: Op, values: list[Any], recipe: Recipe, line: Any, written: _Written) -> None:
    """Record a write and note it in the mirror: both, or neither, whatever comes in between."""
    with session.lock:
        try:
            session.record(op, values, 0, recipe, line)
            written.note()
        except BaseException:
            if session.holds(line):
                written.note()
            raise


def _pack(node: Node, op: Op, places: Any, values: list[Any], results: list[Any], made: Tensor) -> None:
    from .autograd.saved_tensors import pack

    pack(node, op, places, values, results, made)


def _describe(entry: Entry, values: list[Any]) -> tuple[list[Any], Session]:
    op, params = entry.op, entry.op.params
    session: Session | None = None
    described = list(values)
    for i in entry.tensors:
        value = values[i]
        if isinstance(value, Tensor):
            described[i] = value._meta
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
            described[i] = tuple([None if t is None else t._meta for t in items])
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
            f"{value._meta!r}{' that requires grad' if value.requires_grad else ''}"
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
    elif not isinstance(value, (str, DType)):
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


def _recipe(entry: Entry, described: list[Any], values: list[Any], default: DType) -> Recipe:
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
        found = Recipe(entry, described, inferred, values)
        if len(_memo) >= MEMO_LIMIT:
            _memo.clear()
        _memo[key] = found
    return found


def _resolve_shapes(entry: Entry, described: list[Any], values: list[Any]) -> bool:
    """Look up extents that depend on data, since a rule could not do without. Costs a round trip."""
    changed = False
    for i in entry.tensors:
        value = values[i]
        if isinstance(value, Tensor) and not value._meta.known:
            described[i] = value._known_meta()
            changed = True
        elif isinstance(value, list) and any(t is not None and not t._meta.known for t in value):
            described[i] = tuple([None if t is None else t._known_meta() for t in value])
            changed = True
    return changed


def _any_requires(entry: Entry, values: list[Any]) -> bool:
    for i in entry.differentiable:
        value = values[i]
        if isinstance(value, Tensor):
            if value._requires or (value._node is not None and value._base_tensor is None) or value.requires_grad:
                return True
        elif type(value) is list and any(t is not None and t.requires_grad for t in value):
            return True
    return False


def _edges(entry: Entry, values: list[Any]) -> tuple[Any, ...]:
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
