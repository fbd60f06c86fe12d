"""What a frame has changed of what was there before it, so that a cancelled frame can be taken back.

Only what is older than the frame is noted: its own results are dropped with it. Memory is copied before it is written
to, one view at a time; nothing else of the session lives longer for being noted. Copies do not count as the session's
memory, but are made only while they would fit into it. A frame that does not fit is not taken back, and so not
cancelled from there on (see :class:`..runtime.deadline.Clock`).

One thing is not taken back: what a backward has freed stays freed.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from gradwire_protocol.errors import Cancelled
from gradwire_protocol.frames import Problem

from .tensor import Storage, Tensor

if TYPE_CHECKING:
    from .engine import Engine

_FIELDS: Final = (
    "accumulator", "grad_dtype", "history", "requires_grad_flag", "retains_grad", "seen_version", "slot", "tangents",
)  # fmt: skip
_fields: Final = attrgetter(*_FIELDS)


class _Gradient:
    """A gradient that a tensor had: its memory, but not the tensor, whose end shall be counted when it comes."""

    __slots__ = ("_array", "_differentiable", "_meta", "_offset", "_owner", "_storage", "_tensor", "_version")

    def __init__(self, gradient: Tensor) -> None:
        self._tensor, self._storage = ref(gradient), ref(gradient.storage)
        self._array, self._meta, self._offset = gradient.array, gradient.meta, gradient.offset
        self._owner, self._version = gradient.storage.array, gradient.storage.version
        self._differentiable = gradient.history is not None

    def restored(self, engine: Engine) -> Tensor:
        found = self._tensor()
        if found is None:
            storage = self._storage()
            if storage is None:
                storage = Storage(self._owner, engine.account)
                storage.version = self._version
            found = Tensor(engine, self._array, self._meta, storage, self._offset)
            if self._differentiable:
                gone = Cancelled("a cancelled frame has dropped the graph of this gradient")
                storage.poison = Problem(gone.code, gone.message)
        return found


class UndoLog:
    """The changes of one frame, newest last.

    Attributes:
        entries: what :attr:`..runtime.deadline.Clock.undo` is; a single ``None`` once the frame cannot be taken back.
    """

    def __init__(self, engine: Engine) -> None:
        self.entries: list[Any] = []
        self._engine = engine
        self._born = engine.account.frame
        self._noted: dict[int, ref[Tensor]] = {}
        self._copied: set[tuple[Any, ...]] = set()
        self._nbytes = 0
        self._random = engine.generator.seed, engine.generator.offset
        self._numbers = engine._seq, engine.position
        self._modes = engine.default_dtype, engine.coarse_products, engine.dual_levels
        self._handles = dict(engine.handles)
        self._duals = dict(engine.duals)

    def give_up(self) -> None:
        """Let the frame not be taken back any more."""
        self.entries[:] = [None]
        self._noted.clear()
        self._copied.clear()

    @property
    def lost(self) -> bool:
        """Whether the frame cannot be taken back any more."""
        return bool(self.entries) and self.entries[-1] is None

    def write(self, tensor: Tensor) -> None:
        """The memory of a tensor is about to be written to."""
        storage = tensor.storage
        if storage.born == self._born or self.lost:
            return
        owner, array = storage.array, tensor.array
        if array.nbytes > owner.nbytes:  # expanded
            array = owner
        key = id(owner), tensor.offset if array is not owner else None, array.shape, array.strides, array.dtype
        if key in self._copied:
            return
        account = self._engine.account
        self._nbytes += array.nbytes
        if account.live + self._nbytes > account.limits.max_session_bytes:
            self.give_up()
            return
        try:
            copy = array.copy()
        except MemoryError:
            self.give_up()
            return
        self._copied.add(key)
        version, held = storage.version, ref(storage)

        def restore() -> None:
            array[...] = copy
            if (there := held()) is not None:
                there.version = version

        self.entries.append(restore)

    def note(self, tensor: Tensor) -> None:
        """What is known of a tensor, beside its values, is about to change."""
        known = self._noted.get(id(tensor))
        if (known is not None and known() is tensor) or self.lost:
            return
        node = tensor._grad_fn if tensor.retains_grad else None
        fields = [*_fields(tensor), None if node is None else (node, node.watchers and dict(node.watchers))]
        engine = self._engine  # the log itself would be a cycle, and what it holds would outlive the frame
        held = self._noted[id(tensor)] = ref(tensor, lambda _: fields.clear())
        gradient = None if tensor.grad is None else _Gradient(tensor.grad)

        def restore() -> None:
            if (there := held()) is None:
                return
            *values, watched = fields
            for name, value in zip(_FIELDS, values, strict=True):
                setattr(there, name, value)
            if watched is not None:
                watched[0].watchers = watched[1]
            there.grad = None if gradient is None else gradient.restored(engine)

        self.entries.append(restore)

    def overwrite(self, tensor: Tensor) -> None:
        """A tensor is about to be written to, and so is what autograd knows of it and of its base."""
        self.write(tensor)
        self.note(tensor)
        if tensor.base is not None:
            self.note(tensor.base)

    def expect_writes(self, values: list[Any], gradients: bool) -> None:
        """A control op is about to write to the tensors that it is given, or to their gradients."""
        for value in values:
            for tensor in value if type(value) in (list, tuple) else (value,):
                if type(tensor) is Tensor and not gradients:
                    self.overwrite(tensor)
                elif type(tensor) is Tensor and tensor.grad is not None:
                    self.write(tensor.grad)

    def forget(self) -> None:
        """The frame is over, and stays."""
        self.entries.clear()
        self._noted.clear()
        self._copied.clear()
        self._handles.clear()
        self._duals.clear()

    def later(self, restore: Callable[[], object]) -> None:
        """Something else is about to change, which ``restore`` takes back."""
        if not self.lost:
            self.entries.append(restore)

    def use(self, handle: int) -> None:
        """A backward that began in an earlier frame goes on. It cannot go back: with this frame, it ends."""
        self._handles.pop(handle, None)

    def undo(self) -> None:
        """Let everything be as it was before the frame."""
        engine = self._engine
        for restore in reversed(self.entries):
            restore()
        if engine.default_dtype is not self._modes[0]:
            engine.forget_rules()
        engine.default_dtype, engine.coarse_products, engine.dual_levels = self._modes
        for number, (_, named) in list(engine.handles.items()):
            if number not in self._handles:
                del engine.handles[number]
                if hasattr(named, "close"):
                    named.close()
        engine.duals = dict(self._duals)
        engine.region = None
        engine._seq, engine.position = self._numbers
        self.forget()
        engine.generator.set_state(self._random)
