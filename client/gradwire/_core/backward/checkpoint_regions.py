"""Checkpointed stretches of a program: what they record keeps nothing for backward, and is computed again for it.

The program's function runs again in the client, at the line that calls backward, and records its operations as it did
the first time; nothing is waited for. The server hands what the second run saved to the nodes of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from weakref import ref

from gradwire_protocol import dtypes
from gradwire_protocol.errors import CheckpointError, GraphError
from gradwire_protocol.meta import meta
from gradwire_protocol.table import TABLE

from ..context.modes import MODES, enable_grad
from ..dispatch.autocasting import AsNow
from ..graph.graph_mirror import Node
from ..graph.node_hooks import NodeHooks
from ..session.session import Session
from ..tensor.tensor import Tensor


def control(session: Session, op: str, values: list[Any]) -> Any:
    """Record a control op whose result is a tensor that names something."""
    number = session.record(TABLE[op], values, 1)
    return Tensor._make(session, number, meta((0,), dtypes.uint8, "cpu"))


class CheckpointRegion:
    """One call of a checkpointed function, or (with a ``source``) its repetition.

    Attributes:
        parent: the region inside which it was called.
        called: how many regions were called inside it.
        children: of a repetition, those regions.
        inner: regions called inside, whose inputs are known again after a repetition.
        handle: the tensor by which the server knows it.

    Args:
        unpack: gives the positional arguments, where hooks of the program keep them.
    """

    def __init__(
        self, session: Session, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        *, preserve_rng_state: bool = True, compare: bool = True, again: AbstractContextManager[Any] | None = None,
        source: CheckpointRegion | None = None, unpack: Callable[[], tuple[Any, ...]] | None = None,
    ) -> None:  # fmt: skip
        self._session = session
        self._unpack = unpack
        self._function = function
        self._compare = compare
        self._again = again
        self._preserve = preserve_rng_state
        self._casts = _casts_as_now()
        self.source = source
        outside = MODES.region
        self.parent: CheckpointRegion | None = None
        self.number = 0
        self.children: list[CheckpointRegion] = []
        self.called = 0
        if outside is not None and source is None:
            self.parent = outside.source if outside.source is not None else outside
            self.number = outside.called
            outside.called += 1
            if outside.source is not None:
                outside.children.append(self)
        # Inside another region the inputs are that region's to compute again.
        inside = self.parent is not None and outside.source is None
        self.inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None if inside else (args, kwargs)
        self._versions = [(a, a._version) for a in args if _has_version(a)] if source is None else []
        self._state = control(session, "get_rng_state", []) if preserve_rng_state and source is None else None
        self.handle: Any = control(session, "new_region", [None if source is None else source.handle])
        self._nodes: list[Any] = []
        self._described: list[tuple[str, Any]] = []
        self._kept = 0  # how many operands its nodes keep
        self._contexts: list[Any] = []
        self._outside: CheckpointRegion | None = None  # while it runs, the one that ran before
        self._running = False
        # Of a repetition: how many nodes and children the first run has had so far, where that has not ended.
        self._enough: tuple[int, int] | None = None

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], within: AbstractContextManager[Any]) -> Any:
        """Call the function, inside a context of the program's, with what it records noted here."""
        self._outside, packing = MODES.region, MODES.packing
        # The innermost of those that want what operations save has it: this region, and hooks entered inside.
        MODES.region, MODES.packing = self, ()
        self._running = True
        try:
            with within:
                return self._function(*args, **kwargs)
        finally:
            MODES.region, MODES.packing = self._outside, packing
            self._outside, self._running = None, False

    @contextmanager
    def left_for_backward(self) -> Iterator[None]:
        """While a backward runs inside: what that records is kept, as it is outside.

        Raises:
            _Enough: in a repetition for a backward that the first run has called, once that has what it needs.
        """
        region: CheckpointRegion | None = self
        while region is not None:
            if region._enough is not None and (len(region._described), region.called) == region._enough:
                raise _Enough(region)
            region = region._outside
        before, MODES.region = MODES.region, None
        try:
            yield
        finally:
            MODES.region = before

    def note(self, node: Node) -> None:
        """A node was made inside."""
        self._described.append((node.label, node.outs))
        self._kept += len(node.saved or ())
        if self.source is not None:
            self._nodes.append(node)
            return
        if node.part is None:
            node.part = NodeHooks()
        node.part.region = self

    def note_function(self, context: Any) -> None:
        """A custom Function was called inside: what it saved is dropped, or collected when it is run again."""
        self.note(context)
        if self.source is None:
            self._contexts.append(ref(context))
            context.give_up()
        else:
            self._contexts.append(context)

    @property
    def chain(self) -> list[CheckpointRegion]:
        """This region and those around it, the outermost first, as far as they are needed for its inputs."""
        found = [self]
        while found[-1].inputs is None and (parent := found[-1].parent) is not None:
            found.append(parent)
        return found[::-1]

    def compute_again(self, repetitions: dict[CheckpointRegion, CheckpointRegion]) -> None:
        """Run the function once more and hand over what it saves. ``repetitions`` holds those of this backward.

        Raises:
            CheckpointError: when the function did not do the same again.
            GraphError: when an argument was changed in place since.
        """
        for argument, version in self._versions:
            if argument._version != version:
                raise GraphError(
                    f"a {argument._form!r} argument of the checkpointed function has been changed in place since (it "
                    f"is at version {argument._version}, and was passed at {version}): backward would run the "
                    "function on other numbers. Clone it first, or change it out of place"
                )
        if self.inputs is not None:
            args, kwargs = self.inputs
            if self._unpack is not None:
                args = self._unpack()
        else:
            assert self.parent is not None
            children = repetitions[self.parent].children
            if self.number >= len(children):
                raise CheckpointError(
                    f"the checkpointed function called {self.number + 1} or more of its kind the first time, "
                    f"and {len(children)} when backward ran it again"
                )
            found = children[self.number].inputs
            assert found is not None
            args, kwargs = found
        session = self._session
        again = CheckpointRegion(
            session, self._function, args, kwargs, preserve_rng_state=self._preserve, compare=self._compare, source=self
        )
        if self._running:
            again._enough = len(self._described), self.called
        repetitions[self] = again
        now = control(session, "get_rng_state", []) if self._state is not None else None
        if self._state is not None:
            session.record(TABLE["set_rng_state"], [self._state], 0)
        flags, region = MODES.flags, MODES.region
        MODES.region = None
        try:
            with enable_grad(), self._casts:
                again.run(args, kwargs, nullcontext() if self._again is None else self._again)
        except _Enough as enough:
            if enough.region is not again:
                raise
        finally:
            MODES.flags, MODES.region = flags, region
            if now is not None:
                session.record(TABLE["set_rng_state"], [now], 0)
        self._check(again)
        session.record(TABLE["hand_over"], [again.handle], 0)
        for reference, context in zip(self._contexts, again._contexts, strict=True):
            known = reference()
            if known is not None:
                known.take_over(context)
        again._nodes.clear()
        again._contexts.clear()

    def _check(self, again: CheckpointRegion) -> None:
        before, after = self._described, again._described
        if len(before) != len(after):
            raise CheckpointError(
                f"the checkpointed function recorded {len(before)} operations the first time, and {len(after)} when "
                "backward ran it again: it has to do the same each time"
            )
        if self._kept > again._kept:
            raise CheckpointError(
                f"the operations of the checkpointed function kept {self._kept} operands the first time, and "
                f"{again._kept} when backward ran it again: what requires grad has to be the same each time"
            )
        if not self._compare:
            return
        for i, ((name, outs), (name_again, outs_again)) in enumerate(zip(before, after, strict=True)):
            if name != name_again or outs != outs_again:
                raise CheckpointError(
                    f"operation {i} of the checkpointed function was {name} with results {list(outs)!r} at first, "
                    f"and {name_again} with {list(outs_again)!r} when backward ran it again: it has to do the same "
                    "each time"
                )

    def forget(self) -> None:
        """Backward has passed: let go of what was computed again."""
        self._session.record(TABLE["forget_region"], [self.handle], 0)
        for reference in self._contexts:
            context = reference()
            if context is not None:
                context.let_go()


class _Enough(BaseException):
    """Ends a repetition early. No ``Exception``: the program's function is not to catch it."""

    def __init__(self, region: CheckpointRegion) -> None:
        super().__init__()
        self.region = region


def _has_version(value: Any) -> bool:
    return hasattr(value, "_form") and not value._inference


def _casts_as_now() -> AbstractContextManager[None]:
    return AsNow()
