"""What the modules below the engine use of it: its parts, its modes, how it runs an op, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakValueDictionary, ref

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import OutOfMemory
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.table import Op

from ..runtime.arrays import Array, Native
from ..runtime.backends import Backend, Backends
from ..runtime.deadline import Clock
from ..runtime.groups import Group
from ..runtime.memory import MemoryAccount
from ..runtime.random import Generator
from .registry import Kernel, Row
from .tape import Node, Saved
from .tensor import Tensor


class FrameTracer(Protocol):
    """What an engine tells whoever watches a frame run on the tape: of every array that is made or written to."""

    def stop(self, reason: str) -> None:
        """Something cannot be watched: the frame is not captured."""

    def record(self, op: Op, args: list[Any], values: list[Any]) -> None:
        """A record begins, with these decoded arguments."""

    def payload(self, op: Op, values: list[Any], at: int) -> None:
        """A payload of the frame is about to be given to an op."""

    def took(self, values: list[Any]) -> bool:
        """Whether :meth:`run` hands these on to the engine."""

    def run(self, row: Row, values: list[Any]) -> Any:
        """``Engine.run``, watched."""

    def numbers_checked(self) -> None:
        """The numbers of the op being run were looked at: another one may have to be refused."""

    def placed(self, tensor: Tensor) -> None:
        """Where this tensor begins in its memory is about to be used in another way than to make a view of it."""

    def called(
        self, row: Row, compiled: Kernel | None, values: list[Any], arguments: list[Any],
        casts: tuple[Native | None, Native | None], inferred: Inference, result: Any, fused: bool = False,
        applies: bool = False,
    ) -> None:  # fmt: skip
        """A kernel ran."""

    def laid_out(self, i: int, raw: Array, data: Array, out: Meta, operands: list[Tensor]) -> None:
        """The ``i``-th result of the kernel that ran last became ``data``."""

    def written(self, target: Array, raw: Array) -> None:
        """The result of the kernel that ran last was written over this array."""

    def viewed(
        self, row: Row, source: Tensor, rule_args: list[Any], inferred: Inference, results: list[Tensor]
    ) -> None:
        """These views of a tensor were made."""

    def computed(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        """Something other than a kernel ran on arrays; where it returned nothing, it wrote into the first one."""

    def constant(self, host: Array, array: Array, backend: Backend) -> None:
        """An array was made of values that follow from the structure of the frame."""

    def noded(self, node: Node) -> None:
        """The op being run made this node."""

    def saved(self, node: Node, needed: list[bool]) -> Saved:
        """What a derivative sees."""


class ChangeLog(Protocol):
    """What an engine tells whoever may have to take a frame back (:class:`.undo_log.UndoLog`)."""

    def write(self, tensor: Tensor) -> None:
        """The memory of a tensor is about to be written to."""

    def note(self, tensor: Tensor) -> None:
        """What is known of a tensor, beside its values, is about to change."""

    def overwrite(self, tensor: Tensor) -> None:
        """A tensor is about to be written to, and so is what autograd knows of it and of its base."""

    def expect_writes(self, values: list[Any], gradients: bool) -> None:
        """A control op is about to write to the tensors that it is given, or to their gradients."""

    def later(self, restore: Callable[[], object]) -> None:
        """Something else is about to change, which ``restore`` takes back."""

    def use(self, handle: int) -> None:
        """A backward that began in an earlier frame goes on."""

    def give_up(self) -> None:
        """The frame cannot be taken back any more."""


class GradientWatcher(Protocol):
    """Told by a backward of the gradients of leaves as soon as they are complete, before the leaves have them."""

    def begin(self, leaves: list[Tensor]) -> None:
        """A backward begins, which may give these leaves a gradient."""

    def arrived(self, leaf: Tensor, gradient: Tensor | None) -> None:
        """What this backward adds to the gradient of a leaf is complete."""

    def finish(self) -> None:
        """All have arrived. No gradient is held any more from here on."""


class NodeObserver(Protocol):
    """Told of every node while a region is open (:class:`.regions.RecomputedRegion`)."""

    def note(self, node: Node) -> None:
        """This node was just made."""

    def settle(self) -> None:
        """The results of the latest node are known."""


class ResultObserver(Protocol):
    """Sees what a replay computes."""

    def results(self, op: str, index: int, tensors: list[Any]) -> None:
        """A record made or changed these tensors."""

    def gradients(self, node: Any, gradients: Sequence[Any]) -> None:
        """A node's derivative returned these gradients."""


class EngineContext(Protocol):
    """An engine; see :class:`.engine.Engine` for its attributes."""

    account: MemoryAccount
    backends: Backends
    generator: Generator
    default_dtype: DType
    coarse_products: bool
    grad_enabled: bool
    inference: bool
    anomaly: bool
    batched: int
    names: dict[str, Tensor]
    groups: dict[str, Group]
    compiled: bool
    handles: dict[int, tuple[ref[Tensor], Any]]
    region: NodeObserver | None
    dual_levels: tuple[int, ...]
    duals: dict[int, WeakValueDictionary[int, Any]]
    position: int
    timeline: list[tuple[int, str, int, int, int]] | None
    tracer: FrameTracer | None
    watcher: GradientWatcher | None
    observer: ResultObserver | None
    undo: ChangeLog | None
    clock: Clock
    takes_short_ways: bool
    _seq: int

    @property
    def differentiates(self) -> bool:
        """Whether what is computed now is differentiated in turn."""

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Run an op by name."""

    def run(self, entry: Row, values: list[Any]) -> Any:
        """Run an op on bound values."""

    def on_arrays(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function of arrays that is no op."""

    def from_numpy(self, array: Any, requires_grad: bool = False, device: str = "cpu") -> Tensor:
        """A leaf with the values of a NumPy array."""

    def to_numpy(self, tensor: Tensor) -> Array:
        """A tensor's values."""

    def out_of_memory(self, name: str, error: MemoryError) -> OutOfMemory:
        """The error to raise where memory did not suffice."""

    def _infer(self, entry: Row, rule_args: list[Any]) -> Inference:
        """What the op's rule says."""

    def view(self, entry: Row, source: Tensor, out: Meta, delta: int) -> Tensor:
        """One view that an op makes of a tensor, without its node."""

    def creation_of(self, entry: Row, source: Tensor) -> int:
        """What a view of this tensor may take part in, as it is made now."""

    def is_plain(self, entry: Row, values: list[Any]) -> bool:
        """Whether a call of an op has the short way."""

    def forget_rules(self) -> None:
        """Forget what rules have answered."""

    def new_node_seq(self) -> int:
        """The number of the next node."""
