"""Storage and tensor: memory with a version, and a strided view of it with autograd's bookkeeping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from gradwire_protocol.dtypes import DType
from gradwire_protocol.frames import Problem
from gradwire_protocol.history import PLAIN
from gradwire_protocol.meta import Inference, Meta, Shape

from ..runtime.arrays import Array
from ..runtime.backends import Backend
from ..runtime.memory import MemoryAccount
from .lazy_nodes import LazyNodes

if TYPE_CHECKING:
    from .engine_context import EngineContext
    from .tape import AccumulateGrad, GraphNode

Operand: TypeAlias = "Tensor | complex"


class Storage:
    """A stretch of memory. Views of one tensor share it, and its version counter.

    ``version`` counts in-place writes; what was saved for backward remembers it. ``poison`` is set by a session while
    its client does not know yet that a write to this memory failed. ``born`` is the frame that made it
    (``MemoryAccount.frame``).
    """

    __slots__ = ("__weakref__", "_memory", "array", "account", "born", "nbytes", "poison", "version")

    def __init__(self, array: Array, account: MemoryAccount) -> None:
        self.array = array
        self._memory: Array | None = None
        self.account = account
        self.born: int = account.frame
        self.nbytes: int = array.nbytes
        self.version = 0
        self.poison: Problem | None = None
        live = account.live = account.live + self.nbytes
        if live > account.peak:
            account.peak = live

    def __del__(self) -> None:
        self.account.live -= self.nbytes

    def unversioned(self) -> Storage:
        """The same memory under a version of its own (``Tensor.data``). It is accounted for once."""
        alias = object.__new__(Storage)
        alias.array, alias._memory, alias.account = self.array, self._memory, self.account
        alias.nbytes, alias.version, alias.poison, alias.born = 0, 0, None, self.born
        return alias

    def memory(self, backend: Backend) -> Array:
        """The memory as flat uint8, from which strided views are made."""
        if self._memory is None:
            self._memory = backend.memory_of(self.array)
        return self._memory


class Tensor:
    """A strided view of a storage, plus autograd metadata. It belongs to one engine.

    Attributes:
        array: the backend's array over the memory.
        offset: distance in elements from the start of the storage.
        base: for a differentiable view, the tensor that is no view.
        seen_version: for a view, the version at which ``grad_fn`` was last right.
        creation: for a view, one of the constants of ``gradwire_protocol.history``.
        path: for a view that shows complex memory as real or the other way round, the ops that lead to it from the
            base, as names with arguments. Every other view of the base is one ``as_strided`` away.
        slot: which output of ``grad_fn`` this is.
        accumulator: weak reference to the leaf's AccumulateGrad node.
        history: the node that made it; or where that is among nodes that a plan has not made yet.
        grad_dtype: what gradients of a leaf are cast to; None where they keep their own dtype.
        inference: made in inference mode: no version, cannot be saved for backward.
        tangents: derivatives of forward mode, by level.
    """

    __slots__ = (
        "__weakref__", "accumulator", "array", "base", "creation", "engine", "grad", "grad_dtype", "history",
        "inference", "meta", "offset", "path", "requires_grad_flag", "retains_grad", "seen_version", "slot", "storage",
        "tangents",
    )  # fmt: skip

    def __init__(self, engine: EngineContext, array: Array, meta: Meta, storage: Storage, offset: int = 0) -> None:
        self.engine = engine
        self.array = array
        self.meta = meta
        self.storage = storage
        self.offset = offset
        self.requires_grad_flag = False
        self.grad: Tensor | None = None
        self.grad_dtype: DType | None = meta.dtype
        self.history: GraphNode | tuple[LazyNodes, int] | None = None
        self.slot = 0
        self.base: Tensor | None = None
        self.creation = PLAIN
        self.path: tuple[tuple[Any, ...], ...] | None = None
        self.seen_version = 0
        self.retains_grad = False
        self.accumulator: ref[AccumulateGrad] | None = None
        self.inference = False
        self.tangents: Any | None = None

    @property
    def shape(self) -> Shape:
        return self.meta.shape

    @property
    def dtype(self) -> DType:
        return self.meta.dtype

    @property
    def device(self) -> str:
        return self.meta.device

    @property
    def ndim(self) -> int:
        return len(self.meta.shape)

    @property
    def numel(self) -> int:
        return self.meta.numel

    @property
    def requires_grad(self) -> bool:
        if self.requires_grad_flag or self.history is not None:
            return True
        return self.base is not None and self.base.requires_grad

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def _grad_fn(self) -> GraphNode | None:
        """The node that made it, as far as it is known: see :attr:`grad_fn`."""
        history = self.history
        if isinstance(history, tuple):
            history = self.history = history[0].at(history[1])
        return history

    @_grad_fn.setter
    def _grad_fn(self, node: GraphNode | None) -> None:
        self.history = node

    @property
    def history_name(self) -> str | None:
        """The name of that node. Nothing is made for it, so another thread may ask."""
        history = self.history
        if isinstance(history, tuple):
            return history[0].names[history[1]]
        return None if history is None else history.name

    if TYPE_CHECKING:

        def regenerate(self) -> None:
            """See :func:`.inplace.regenerate`, which is attached."""

    @property
    def grad_fn(self) -> GraphNode | None:
        """The node that made it. A view whose base was written to since gets a new one here."""
        if self.base is not None and self.seen_version != self.storage.version:
            self.regenerate()
        return self._grad_fn

    @grad_fn.setter
    def grad_fn(self, node: GraphNode | None) -> None:
        self.history = node

    def __repr__(self) -> str:
        return f"<engine tensor {self.meta!r}>"

    # Derivatives are written with operators. Each goes through the engine's one pipeline.

    def __add__(self, other: Operand) -> Tensor:
        return self.engine.call("add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return self.engine.call("add", self, other)

    def __sub__(self, other: Operand) -> Tensor:
        return self.engine.call("sub", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return self.engine.call("rsub", self, other)

    def __mul__(self, other: Operand) -> Tensor:
        return self.engine.call("mul", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return self.engine.call("mul", self, other)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.engine.call("div", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self.engine.call("mul", self.engine.call("reciprocal", self), other)

    def __pow__(self, other: Operand) -> Tensor:
        return self.engine.call("pow", self, other)

    def __neg__(self) -> Tensor:
        return self.engine.call("neg", self)

    def __matmul__(self, other: Operand) -> Tensor:
        return self.engine.call("matmul", self, other)

    def __eq__(self, other: object) -> Any:
        return self.engine.call("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self.engine.call("ne", self, other)

    def __lt__(self, other: Operand) -> Tensor:
        return self.engine.call("lt", self, other)

    def __le__(self, other: Operand) -> Tensor:
        return self.engine.call("le", self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return self.engine.call("gt", self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return self.engine.call("ge", self, other)

    def __and__(self, other: Operand) -> Tensor:
        return self.engine.call("bitwise_and", self, other)

    def __or__(self, other: Operand) -> Tensor:
        return self.engine.call("bitwise_or", self, other)

    def __invert__(self) -> Tensor:
        return self.engine.call("bitwise_not", self)

    __hash__ = object.__hash__


def wrap(engine: EngineContext, array: Array, inferred: Inference, i: int) -> Tensor:
    """A new tensor around a kernel's result."""
    return Tensor(engine, array, inferred.outs[i], Storage(array, engine.account))
