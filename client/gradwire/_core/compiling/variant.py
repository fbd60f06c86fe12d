"""One recorded call, and how it is done again without the function's body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.records import mentioned, with_references
from gradwire_protocol.table import TABLE

from ..context.modes import MODES
from ..optimizers.optimizer import Optimizer
from ..tensor.memory import ITSELF, memory_of
from ..tensor.own_attributes import everything
from ..tensor.tensor import Tensor
from .capture import Capture, CapturedFrame, CapturedStep, merged, structure_of
from .graph import GraphInstance, GraphTemplate, GraphTemplateBuilder
from .input_tensors import InputTensors, shared_memory
from .replay_sender import FrameTemplate, send, skip_ids, trial
from .state import CONSTANTS, MISSING, Facts, NotReplayable, ReachableState, facts

if TYPE_CHECKING:
    from ..session.session import Session

MOST_PAYLOAD_BYTES: Final = 4 << 20
MISS: Final = object()
"""What :meth:`Variant.replay` gives where it turns out that the recorded call is another one."""

_MOST_RECORDS: Final = 1 << 19


@dataclass(slots=True)
class OptimizerReplay:
    """An optimizer's step in a replay: its records as they must come out, and where their numbers go.

    ``expected``: by record the op and its arguments, with tensors as numbers of externals.
    """

    optimizer: Optimizer
    flags: int
    grad_states: list[int]
    expected: list[Any]
    part: int
    at: int
    count: int


@dataclass(slots=True)
class GradientEffect:
    """What becomes of an external: its gradient's state and proxy (("keep", 0), or ("made" or "external", n))."""

    external: int
    grad_state: int
    grad: tuple[str, int] | None


class Variant:
    """A call that was recorded, for as long as all that its body may look at is as it was.

    Raises:
        Unfit: for one that cannot be replayed.
    """

    def __init__(
        self,
        session: Session,
        capture: Capture,
        state: ReachableState,
        arguments: list[Tensor],
        before: InputTensors,
        result: Any,
        base: int,
        made: int,
    ) -> None:
        limit = session.link.limits.get("max_ops_per_frame", 0)
        if len(capture.frames) > 1 and sum(len(frame.lines) for frame in capture.frames) < limit:
            capture.frames = [merged(capture.frames, capture.steps, base)]
        self.session = session
        self.state = state
        self.made = made
        self.repeatable: str | None = None
        externals, roles = before.used(capture, base)
        self._roles = roles
        weaver = GraphTemplateBuilder(
            externals, [before.edges[id(t)] for t in externals], [before.versions[id(t)] for t in externals], base,
            before.seq,
        )  # fmt: skip
        self._result = _template(result, weaver, state)
        self._set: list[tuple[Any, Any, tuple[str, int]]] = []
        self._slots: list[tuple[Any, Any, Facts]] = []
        self._changes(weaver, state, before, externals)
        numbers = {t._id: k for k, t in reversed(list(enumerate(externals)))}
        self._parts = [_part(frame, base, numbers) for frame in capture.frames]
        self._steps = [self._step(step) for step in capture.steps]
        self._leftover = sorted(n - base for n in session.builder.dropped if n >= base)
        dropped = {n - base for frame in capture.frames for n in frame.releases if n >= base} | set(self._leftover)
        for frame in capture.frames:
            dropped |= {frame.first - base + n for n in structure_of(frame).drops}
        if kept := set(range(made)) - dropped - weaver.offsets:
            raise NotReplayable(
                f"{len(kept)} of the tensors that it makes are kept where a replay would not put them (result "
                f"{min(kept)} is one)"
            )
        if any(p.records > _MOST_RECORDS for p in self._parts):
            raise NotReplayable(f"it records more than {_MOST_RECORDS:,} operations")
        self.weave: GraphTemplate = weaver.weave
        self._bumps = before.bumped(externals)
        self._cells = shared_memory(externals)
        state.settle()
        self._fixed = list(state.tensors.values())
        self._fixed_ids = frozenset(state.tensors)
        self._payload_bytes = sum(p.nbytes for part in self._parts for p in part.payloads)
        if self._payload_bytes > MOST_PAYLOAD_BYTES:
            raise NotReplayable(f"it uploads {self._payload_bytes:,} bytes of its own: make tensors of them before")

    # Recording

    def _changes(
        self, weaver: GraphTemplateBuilder, state: ReachableState, before: InputTensors, externals: list[Tensor]
    ) -> None:
        """What the call has changed, as effects of a replay."""
        self._changed: list[GradientEffect] = []
        for k, tensor in enumerate(externals):
            old, new = before.facts[id(tensor)], facts(tensor)
            if (old[:4], old[6:]) != (new[:4], new[6:]):
                raise NotReplayable(f"it changes what {before.path(tensor)} is (its history, requires_grad or data)")
            owner = tensor._base_tensor
            if tensor._node is not before.nodes[id(tensor)] or (
                owner is not None and owner._node is not before.nodes[id(owner)]
            ):
                raise NotReplayable(f"it writes to {before.path(tensor)}, and gradients go through that")
            if tensor._grad_history or tensor._part is not None:
                raise NotReplayable(f"{before.path(tensor)} has hooks, or a gradient with a history")
            grad = before.grads[id(tensor)]
            if tensor._grad_proxy is not grad or tensor._grad_state != old[4]:
                to = None if tensor._grad_proxy is None else weaver.reference(tensor._grad_proxy)
                self._changed.append(GradientEffect(k, tensor._grad_state, to))
                if to is not None or tensor._grad_state != old[4]:
                    self.repeatable = f"it leaves the gradient of {before.path(tensor)} otherwise than it found it"
        used = {id(t) for t in externals}
        for found, old, path in state.tensors.values():
            if id(found) not in used and facts(found) != old:
                raise NotReplayable(f"it changes {path} without an operation")
        for holder, key, path in list(state.changed()):
            value = holder.get(key) if type(holder) is dict and key is not MISSING else None
            if not isinstance(value, Tensor) or value._id < weaver.base:
                raise NotReplayable(f"it changes {path}")
            self._set.append((holder, key, weaver.reference(value)))
            self.repeatable = f"it sets {path}"
            self._follow(holder, key, path, before, externals)

    def _follow(self, holder: Any, key: Any, path: str, before: InputTensors, externals: list[Tensor]) -> None:
        """A place that the call fills with another tensor: from now on what counts is what is there."""
        place = next(p for p in self.state.places if p.holder is holder and p.key == key)
        self.state.places.remove(place)
        if isinstance(place.value, Tensor):
            self._slots.append((holder, key, before.facts[id(place.value)]))
            self.state.tensors.pop(id(place.value), None)
            for k, tensor in enumerate(externals):
                if tensor is place.value:
                    self._roles[k] = ("slot", len(self._slots) - 1)
        elif place.value is not None:
            raise NotReplayable(f"it changes {path}")
        else:
            self.state.places.append(place)

    def _step(self, step: CapturedStep) -> OptimizerReplay:
        """Where in the frames the records of a step are."""
        optimizer = step.optimizer
        if not type(optimizer).__module__.startswith("gradwire.") or optimizer._pre_hooks or optimizer._post_hooks:
            raise NotReplayable(f"{type(optimizer).__name__} is the program's own, or has hooks")
        begin = 0
        for number, part in enumerate(self._parts):
            if begin <= step.begin and step.end <= begin + part.records:
                ops = structure_of(part).ops
                first, last = step.begin - begin, step.end - begin
                at = sum(mentioned(r[0], r[1])[0] for r in ops[:first])
                count = sum(mentioned(r[0], r[1])[0] for r in ops[first:last])
                expected = list(_resolved(ops[first:last], lambda ref, part=part: _external(part, ref)))  # type: ignore[misc]
                return OptimizerReplay(optimizer, step.flags, step.grad_states, expected, number, at, count)
            begin += part.records
        raise NotReplayable("an optimizer's step was sent in two frames")

    # Asking

    def differs(self, arguments: list[Tensor]) -> str | None:
        """What is not as it was when the call was recorded; ``None`` if all is. The arguments' own facts are known to
        be the same."""
        if not self.state.holds():
            return "something that the function can reach has changed"
        for tensor, known, path in self._fixed:
            if facts(tensor) != known:
                return f"{path} has changed (its metadata, or whether there is a gradient)"
        for holder, key, known in self._slots:
            found = holder.get(key)
            if not isinstance(found, Tensor) or facts(found) != known:
                return f"the tensor at {key!r} has changed"
        if not self._fixed_ids.isdisjoint([id(t) for t in arguments]):
            return "an argument is also reached otherwise"
        return None

    # Replaying

    def replay(self, arguments: list[Tensor]) -> Any:
        """Send the frames again, with what is there now in place of what was; returns what the function would return,
        or :data:`MISS`, with nothing changed."""
        session = self.session
        builder = session.builder
        with builder.lock:
            builder.begin()
            builder.flush(must=True)  # else what waits to be sent would come after it
            session.link.make_room(self._payload_bytes)  # or raise, while nothing has changed
            externals = self.resolve(arguments)
            if externals is None:
                return MISS
            versions = [0 if t._versions is None else t._versions[0] for t in externals]
            numbers = self.numbers(externals)
            if numbers is None:
                return MISS
            base = builder.next_id
            woven = GraphInstance(self.weave, externals, versions, base)
            skip_ids(session, self.made)  # first: whatever comes in between, no id is given twice
            for part, scalars in zip(self._parts, numbers, strict=True):
                external = [externals[n]._id if n >= 0 else base + (-1 - n) for n in part.external]
                send(session, part, base, external, scalars)
            result = self._take_effect(externals, versions, woven, base)
            builder.dropped += [base + n for n in self._leftover]
            return result

    def resolve(self, arguments: list[Tensor]) -> list[Tensor] | None:
        """The tensors that stand now where the externals stood; ``None`` where they share memory in another way."""
        externals: list[Tensor] = []
        for kind, where in self._roles:
            if kind == "fixed":
                externals.append(where)
            elif kind == "argument":
                externals.append(arguments[where])
            elif kind == "slot":
                holder, key, _ = self._slots[where]
                externals.append(holder[key])
            else:
                found = externals[where]._grad_proxy
                if found is None:
                    return None
                externals.append(found)
        return externals if not self._bumps or shared_memory(externals) == self._cells else None

    def numbers(self, externals: list[Tensor]) -> list[list[Any]] | None:
        """Each frame's scalars. Optimizers are asked for theirs; ``None`` where they do something else than before."""
        found = [part.scalars for part in self._parts]
        if not self._steps:
            return found
        found = [list(each) for each in found]
        ids = {t._id: k for k, t in reversed(list(enumerate(externals)))}
        cells = [(t._versions, list(t._versions)) for t in externals if t._versions is not None]
        kept: list[Callable[[], None]] = []
        whole = False
        try:
            for step in self._steps:
                optimizer = step.optimizer
                kept.append(_memory(optimizer))
                scalars = self._asked(step, ids)
                if scalars is None:
                    return None
                found[step.part][step.at : step.at + step.count] = scalars
            whole = True
        finally:
            for cell, before in cells:  # whatever has been bumped, the replay bumps by itself
                cell[:] = before
            if not whole:
                for restore in kept[::-1]:
                    restore()
        return found

    def _asked(self, step: OptimizerReplay, ids: dict[int, int]) -> list[Any] | None:
        flags, MODES.flags = MODES.flags, step.flags
        states = [(p, p._grad_state) for group in step.optimizer.param_groups for p in group["params"]]
        try:
            for (param, _), state in zip(states, step.grad_states, strict=False):
                param._grad_state = state
            with trial(self.session) as tried:
                step.optimizer.step()
        finally:
            MODES.flags = flags
            for param, state in states:
                param._grad_state = state
        try:
            records = list(_resolved(tried.ops, lambda ref: ids[tried.external[-1 - ref]] if ref < 0 else -1 - ref))
        except (KeyError, IndexError):
            return None
        scalars: list[Any] = tried.scalars
        return scalars if records == step.expected and len(scalars) == step.count else None

    def _take_effect(self, externals: list[Tensor], versions: list[int], woven: GraphInstance, base: int) -> Any:
        """Let the mirror be as after the call; returns its result."""
        for k, by, tail in self._bumps:
            cell = externals[k]._cell()
            cell[0] = versions[k] + by
            cell[1:] = tail
        made = self._tensors(externals, woven, base)

        def find(reference: tuple[str, int]) -> Any:
            return (made if reference[0] == "made" else externals)[reference[1]]

        for change in self._changed:
            tensor = externals[change.external]
            tensor._grad_state = change.grad_state
            tensor._grad_proxy = None if change.grad is None else find(change.grad)
            if tensor._grad_history:
                tensor._grad_history = None
        for holder, key, reference in self._set:
            holder[key] = find(reference)
        return self._result(find)

    def _tensors(self, externals: list[Tensor], woven: GraphInstance, base: int) -> list[Tensor]:
        session = self.session
        made: list[Tensor] = []
        for template in self.weave.tensors:
            node = None if template.node is None else woven.node(template.node)
            tensor = template.cls._make(session, base + template.offset, template.meta, node, template.slot)
            if template.attributes:
                everything(tensor).update(template.attributes)
            if template.cell is not None:
                tensor._versions = (
                    woven.cells[template.cell] if template.cell >= 0 else externals[-1 - template.cell]._cell()
                )
            if template.memory is not None:
                tensor._memory = (
                    woven.cells[template.memory] if template.memory >= 0 else memory_of(externals[-1 - template.memory])
                )
            made.append(tensor)
        for template, tensor in zip(self.weave.tensors, made, strict=True):
            if template.origin is ITSELF:
                tensor._origin = ITSELF
            for name, reference in (
                ("_base_tensor", template.base), ("_grad_proxy", template.grad), ("_origin", template.origin),
            ):  # fmt: skip
                if reference is not None and reference is not ITSELF:
                    setattr(tensor, name, (made if reference[0] == "made" else externals)[reference[1]])
            if template.base is not None and template.cell is not None and template.cell < 0:
                tensor._seen = externals[-1 - template.cell]._cell()[0]
        return made

    def result(self, find: Callable[[tuple[str, int]], Any]) -> Any:
        """The result, of tensors that ``find`` gives for references: ("made", number) or ("external", number)."""
        return self._result(find)

    def later(self, versions: list[int], calls: int) -> list[int]:
        """Externals' versions once the call was done so many times."""
        found = list(versions)
        for k, by, _ in self._bumps:
            for i, owner in enumerate(self._cells):
                if owner == self._cells[k]:
                    found[i] += by * calls
        return found

    @contextmanager
    def optimizers_kept(self) -> Iterator[Callable[[], None]]:
        """What optimizers remember is as before at the end, unless the function that is given was called."""
        kept: list[Callable[[], None]] = []
        before = [_memory(step.optimizer) for step in self._steps]
        try:
            yield lambda: kept.append(_nothing)
        finally:
            if not kept:
                for restore in before[::-1]:
                    restore()

    @property
    def parts(self) -> list[FrameTemplate]:
        """The frames."""
        return self._parts

    def finish(self, externals: list[Tensor], versions: list[int], base: int) -> Any:
        """Let the mirror be as after the call whose first result has the id ``base``; returns its result."""
        woven = GraphInstance(self.weave, externals, versions, base)
        return self._take_effect(externals, versions, woven, base)


def _part(frame: CapturedFrame, base: int, numbers: dict[int, int]) -> FrameTemplate:
    """A frame as it is sent again. ``numbers``: of the externals, by id."""
    external = [-1 - (n - base) if n >= base else numbers[n] for n in frame.external]
    return FrameTemplate(
        frame.structure, frame.key, frame.first - base, external, frame.scalars,
        [memoryview(p) for p in frame.payloads], [n - base for n in frame.releases if n >= base], frame.lines,
        len(structure_of(frame).ops),
    )  # fmt: skip


def _memory(optimizer: Optimizer) -> Callable[[], None]:
    """A function that lets an optimizer remember what it remembers now."""
    state = {param: dict(held) for param, held in optimizer.state.items()}

    def restore() -> None:
        for param in [p for p in optimizer.state if p not in state]:
            del optimizer.state[param]
        for param, held in state.items():
            optimizer.state[param].clear()
            optimizer.state[param].update(held)

    return restore


def _nothing() -> None:
    """Marks that something is to be kept."""


def _external(part: FrameTemplate, ref: int) -> int:
    """The number of an external, and no other number for a result of this or an earlier frame."""
    if ref >= 0:
        raise NotReplayable("an optimizer's step uses what was computed just before")
    number = part.external[-1 - ref]
    if number < 0:
        raise NotReplayable("an optimizer makes its memory: the next call may be replayed")
    return number


def _resolved(ops: list[Any], resolve: Callable[[int], int]) -> Iterator[Any]:
    """Records with references resolved, but for changes of the mode."""
    for record in ops:
        if record[0] == "set_mode":
            continue
        args = with_references(TABLE[record[0]], record[1], resolve)
        yield record[0], [list(arg) if type(arg) is tuple else arg for arg in args]


Build = Callable[[Callable[[tuple[str, int]], Any]], Any]


def _template(value: Any, weaver: GraphTemplateBuilder, state: ReachableState) -> Build:
    """A function that makes the result of a replay, given one that finds tensors."""
    if isinstance(value, Tensor):
        reference = weaver.reference(value)
        return lambda find: find(reference)
    if isinstance(value, CONSTANTS) or (id(value) in state.kept and not isinstance(value, (list, tuple, dict))):
        return lambda find: value
    if type(value) in (list, tuple):
        items = [_template(item, weaver, state) for item in value]
        kind = type(value)
        return lambda find: kind([item(find) for item in items])
    if isinstance(value, tuple) and hasattr(value, "_make"):
        fields = [_template(item, weaver, state) for item in value]
        named: Any = type(value)
        return lambda find: named._make([item(find) for item in fields])
    if type(value) is dict and all(isinstance(key, CONSTANTS) for key in value):
        entries = [(key, _template(item, weaver, state)) for key, item in value.items()]
        return lambda find: {key: item(find) for key, item in entries}
    raise NotReplayable(f"it returns a {type(value).__name__}, which a replay cannot make")
