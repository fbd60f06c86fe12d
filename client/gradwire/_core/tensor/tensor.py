"""``Tensor``: a small proxy for a tensor on the server, with PyTorch's attributes, conversions and printing.

Methods that are ops of the table are attached in :mod:`..surface.methods`; indexing lives in
:mod:`..surface.indexing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, overload
from weakref import ref

from gradwire_protocol.dtypes import DType, int64
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, GraphError, IndexOutOfRange
from gradwire_protocol.history import MADE_IN_INFERENCE, MADE_IN_NO_GRAD, ONE_OF_SEVERAL, PLAIN
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.ops.control import GRAD_MODE, INFERENCE_MODE, check_can_require_grad
from gradwire_protocol.table import TABLE

from ..context import handles
from ..context.hook_handles import RemovableHandle
from ..context.layouts import lies_in, memory_format
from ..context.modes import MODES
from ..context.size import Size, device, shape_of
from ..graph.graph_mirror import AccumulateGrad, Node, became_leaf, next_seq, shown
from ..graph.inplace import Path, note_renewed, path_of, regenerate, settle_views
from ..graph.node_hooks import (
    NodeHooks,
    register_accumulated_hook,
    register_tensor_hook,
    remember_accumulator,
    remember_origin,
)
from .attached import Attached
from .memory import ITSELF, memory_of, origin_of
from .own_attributes import Everything, OwnAttributes, everything
from .reading import Readable

if TYPE_CHECKING:
    from ..context.call_sites import Line

GRAD_ONLY: Final = GRAD_MODE | INFERENCE_MODE
NO_GRAD, PRESENT, UNKNOWN_GRAD = 0, 1, 2


class InferenceCell(list[Any]):
    """The version of memory made in inference mode, which no node may keep. It is false, so that whoever looks for a
    version to keep asks the tensor (:meth:`Tensor._kept_cell`)."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


class Tensor(Readable, Everything, Attached):
    """A tensor on the server. Created by :func:`gradwire.tensor` and by operations, never by its constructor alone."""

    # What every tensor has of its own. Making one is on the path of every op.
    __slots__ = ("__weakref__", "_base_tensor", "_id", "_form", "_node", "_session", "_slot", "_versions")

    _session: Any  # a Session, which stands on this
    _id: int
    _form: Meta  # not `_meta`, which subclasses of libraries have as their own
    _node: Node | None
    _slot: int
    _base_tensor: Any  # of a view
    _versions: list[Any] | None  # what tells how often its memory was written to, once somebody may ask

    # What few tensors ever change.
    _has_shape: bool = True  # False for parameters that take theirs from the first input
    _requires: bool = False
    _grad_state: int = NO_GRAD
    _grad_proxy: Any = None
    _chosen: Any = ...  # the dtype chosen for gradients, if one was
    _accumulator: ref[Any] | None = None
    _seen: int = 0
    _creation: int = PLAIN
    _path: Path | None = None
    _inference: bool = False
    _retains: bool = False
    _renewed: tuple[int, list[Any]] | None = None  # views that got a new history at a version
    _grad_history: Any = None
    _grad_inference: bool = False  # whether its gradient was made in inference mode
    _grad_known: int = 0  # after which error the server was asked whether there is one
    _duals: Any = None
    _scope: Any = None
    _levels: tuple[int, ...] = ()  # the vmaps that it is mapped in
    _part: NodeHooks | None = None
    _row_of: tuple[Any, int] | None = None  # the iteration that handed it out
    _uploaded: Any = None  # the values of a small integer tensor, as the program gave them
    _memory: list[Any] | None = None  # the cell of its memory, where that is not its own: see memory.py
    _origin: Any = None  # the tensor whose memory it shows a part of, where that is not its base
    _offset: int | None = None  # where its memory begins, once that was asked for
    _last_read: tuple[int, float, Any] | None = None  # how much was recorded then, until when it holds, the values

    @property
    def __dict__(self) -> Any:
        """What the program attached."""
        return OwnAttributes(everything(self), Tensor.__annotations__)

    @__dict__.setter
    def __dict__(self, attributes: Any) -> None:
        own = self.__dict__
        attributes = dict(attributes)
        own.clear()
        own.update(attributes)

    @__dict__.deleter
    def __dict__(self) -> None:
        self.__dict__.clear()

    @classmethod
    def _make(cls, session: Any, number: int, described: Meta, node: Node | None = None, slot: int = 0) -> Any:
        self = object.__new__(cls)
        self._session = session
        self._id = number
        self._form = described
        if node is not None and described.dtype.carries_gradient:
            self._node, self._slot = node, slot
        else:
            self._node, self._slot = None, 0
        self._base_tensor = self._versions = None
        return self

    def __del__(self) -> None:
        try:
            self._session.dropped.append(self._id)
        except AttributeError:
            pass  # it was never made, or the interpreter is ending

    # Description

    @property
    def shape(self) -> Size:
        """The extents. Where one depends on data not looked at yet, asking costs a round trip."""
        if not self._form.known:
            self._known_meta()
        return shape_of(self._form.shape)

    def _known_meta(self) -> Meta:
        if not self._form.known:
            session = self._session
            probe = Tensor._make(session, session.record(TABLE["shape_of"], [self], 1), meta((self.ndim,), int64))
            extents = session.read([probe])[0]
            assert extents is not None
            self._form = meta(tuple(extents.tolist()), self._form.dtype, self._form.device)
        return self._form

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...

    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or one extent of it."""
        if dim is None:
            return self.shape
        shape = self.shape
        if not -max(len(shape), 1) <= dim < max(len(shape), 1) or not shape:
            raise IndexOutOfRange(f"dimension {dim} is out of range for a tensor of {len(shape)} dimensions")
        return shape[dim]

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._form.dtype

    @property
    def device(self) -> device:
        """The device of the server that holds it."""
        return device(self._form.device)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._form.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._form.shape)

    def numel(self) -> int:
        """The number of elements."""
        return self._known_meta().numel

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element."""
        return self._form.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._form.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._known_meta().nbytes

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """The strides in elements, or one of them."""
        found = self._known_meta().stride
        return found if dim is None else found[dim]

    def is_contiguous(self, memory_format: memory_format | None = None) -> bool:
        """Whether the elements lie in row-major order, or in another that is named."""
        described = self._known_meta()
        return described.contiguous if memory_format is None else lies_in(described, memory_format, bool(self._levels))

    def is_floating_point(self) -> bool:
        """Whether the dtype is float16, bfloat16, float32 or float64."""
        return self._form.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex64 or complex128."""
        return self._form.dtype.is_complex

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a GPU of the server."""
        return self._form.device.startswith("cuda")

    @property
    def is_sparse(self) -> bool:
        """Always False: sparse layouts are not offered."""
        return False

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._inference

    def __len__(self) -> int:
        shape = tuple(self.shape)
        if not shape:
            raise ArgumentTypeError("len() of a 0-dim tensor")
        return shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ArgumentError(
                f"a tensor of shape {list(self.shape)} is neither true nor false: use .any() or .all(), or look at one "
                "element"
            )
        return bool(self.item())

    # Autograd

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for it."""
        if self._requires or self._node is not None:
            return True
        return self._base_tensor is not None and bool(self._base_tensor.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not self.is_leaf:
            raise GraphError("requires_grad is set for leaves: the result of an operation follows its operands")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Start (or stop) recording for a leaf.

        Raises:
            DTypeError: for integers and bools.
            GraphError: when it is not a leaf and recording should stop.
        """
        check_can_require_grad(self._form, requires_grad)
        if self._grad_node() is not None:
            if not requires_grad:
                raise GraphError(
                    "requires_grad can be turned off only for a leaf; use detach() for a tensor without history"
                )
            return self
        if requires_grad and self._inference and not MODES.flags & INFERENCE_MODE:
            raise GraphError(
                "a tensor created in inference mode cannot require a gradient outside of it; clone it first"
            )
        if self._requires != requires_grad:
            if not requires_grad:
                remember_accumulator(self)
                settle_views(self)
            else:
                became_leaf(self)
                if self._inference:
                    MODES.expect_inference_leaves()
            self._requires = requires_grad
            self._tell("requires_grad_", requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was not made by a recorded operation.

        Raises:
            GraphError: for a view whose history was lost in a write to its base.
        """
        return self._grad_node() is None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made it."""
        node = self._grad_node()
        if node is None:
            return None
        remember_origin(node, self)
        return shown(node)

    def _grad_node(self) -> Node | None:
        if self._base_tensor is not None and self._seen != self._version:
            regenerate(self)
            if self._node is not None:
                note_renewed(self)
        return self._node

    @property
    def output_nr(self) -> int:
        """Which result of its ``grad_fn`` it is."""
        return self._slot

    @property
    def _version(self) -> int:
        """How often its memory was written to in place."""
        if self._inference:
            raise GraphError("a tensor made in inference mode has no version: its writes are not counted")
        return self._versions[0] if self._versions is not None else 0

    @property
    def _base(self) -> Tensor | None:
        """For a view, the tensor it is a view of."""
        return self._base_tensor

    def _is_view(self) -> bool:
        return self._base_tensor is not None

    def _cell(self) -> list[Any]:
        if self._versions is None:
            self._versions = InferenceCell([0]) if self._inference else [0]
        return self._versions

    def _kept_cell(self) -> list[Any]:
        """The same, of a tensor that a node is about to keep for backward.

        Raises:
            GraphError: for one made in inference mode, which has no version.
        """
        if self._inference:
            raise GraphError("a tensor created in inference mode cannot be saved for backward; clone it outside first")
        return self._cell()

    def _bump(self, op: str | None = None, line: Line | None = None) -> None:
        """Note a write to its memory; by which op and where, for the error that may come of it."""
        cell = self._cell()
        cell[0] += 1
        cell[1:] = () if op is None else (op, line)

    def _view_of(self, source: Any, differentiable: bool, several: bool, recording: bool) -> None:
        # What is as the class has it is not written: views are made all the time.
        cell = self._versions = source._versions or source._cell()
        if (memory := source._memory) is not None:
            self._memory = memory
        if (origin := source._origin) is not None:
            self._origin = source if origin is ITSELF else origin
        base = source._base_tensor
        if source._inference:
            self._inference = True
            if origin is None:
                self._origin = source
            return
        if not differentiable:
            if base is not None and origin is None:
                self._origin = base
            return
        self._base_tensor = source if base is None else base
        if cell[0]:
            self._seen = cell[0]
        path = path_of(source, self._form)
        if path is not None:
            self._path = path
        if MODES.flags & INFERENCE_MODE:
            self._creation = MADE_IN_INFERENCE
        elif source._base_tensor is not None and source._creation != PLAIN:
            self._creation = source._creation
        elif not recording:
            self._creation = MADE_IN_NO_GRAD
        elif several:
            self._creation = ONE_OF_SEVERAL

    @property
    def grad_dtype(self) -> DType | None:
        """The dtype that gradients of this leaf are cast to, by default its own; None lets them keep theirs.

        Raises:
            GraphError: for the result of an operation; on assignment also when there is a gradient of another dtype.
        """
        if not self.is_leaf:
            raise GraphError("grad_dtype is known for leaves, this tensor is the result of an operation")
        return self._dtype_of_grad()

    @grad_dtype.setter
    def grad_dtype(self, dtype: DType | None) -> None:
        if not self.is_leaf:
            raise GraphError("grad_dtype is set for leaves, this tensor is the result of an operation")
        if dtype is not None and not isinstance(dtype, DType):
            raise GraphError(f"grad_dtype is a dtype or None, not {type(dtype).__name__}")
        if dtype is not None and (there := self.grad) is not None and there.dtype is not dtype:
            raise GraphError(
                f"grad_dtype cannot become {dtype.name} while there is a {there.dtype.name} gradient: set grad to None"
            )
        self._session.record(TABLE["set_grad_dtype"], [self, dtype], 0)
        self._chosen = dtype

    def _dtype_of_grad(self) -> DType | None:
        found: DType | None = self._form.dtype if self._chosen is ... else self._chosen
        return found

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(gradient)`` in every backward that computes a gradient for this tensor, once it is complete.

        What the hook returns, if anything, takes the gradient's place. The hook of a tensor that is not a leaf stays
        with the operation that made it, also when the tensor is changed in place later.

        Raises:
            GraphError: when the tensor does not require grad.
        """
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(self)`` after each backward step that has added to this leaf's ``grad``.

        Raises:
            GraphError: when it is no leaf that requires grad.
        """
        return register_accumulated_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf, too."""
        if not self.requires_grad:
            raise GraphError("retain_grad() needs a tensor that requires grad")
        node = self._grad_node()
        if node is None or self._retains:
            return
        self._retains = True
        if node.retained is None:
            node.retained = {}
        node.retained[self._slot] = ref(self)
        self._tell("retain_grad")

    @property
    def retains_grad(self) -> bool:
        """Whether the gradient of this tensor, which is not a leaf, will be kept."""
        return self._retains and not self.is_leaf

    def detach_(self) -> Tensor:
        """Cut it from its history, in place. Where nothing can be recorded, in inference mode, nothing is cut."""
        if self._inference or MODES.flags & INFERENCE_MODE:
            return self
        if self._base_tensor is not None:
            raise GraphError("a view cannot be detached in place; use detach()")
        remember_accumulator(self)
        settle_views(self)
        self._tell("detach_")
        if self._node is not None:
            self._session.note_detached(self._id, next_seq())
        self._node, self._requires, self._slot = None, False, 0
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history; in-place writes to it go unnoticed by autograd."""
        self._uploaded = None  # writes to the other go unnoticed
        made = Tensor._make(self._session, self._tell("data_of", results=1), self._known_meta())
        made._inference = self._inference
        made._levels = self._levels
        self._share_memory_with(made)
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"data must be a tensor, not {type(value).__name__}")
        if not value.dtype.carries_gradient and self.requires_grad:
            raise ArgumentError(f"data of dtype {value.dtype.name} cannot be the data of a tensor that requires grad")
        if self._id >= 0 or value._id >= 0:  # between two on the meta device there is nothing to tell the server
            self._session.record(TABLE["set_data"], [self, value], 0)
        self._form, self._uploaded = value._form, None
        value._share_memory_with(self)

    def _share_memory_with(self, other: Tensor) -> None:
        """Note that another tensor shows the very part of memory that this one shows."""
        other._memory, other._offset = memory_of(self), self._offset
        origin = origin_of(self)
        other._origin = ITSELF if origin is None and other._base_tensor is not None else origin

    def _shows_part_of(self, other: Tensor) -> None:
        """Note that this tensor shows memory of another one, which neither its base nor its version tells."""
        origin = origin_of(other)
        self._memory, self._offset = memory_of(other), None
        self._origin = other if origin is None or origin is ITSELF else origin

    def _tell(self, op: str, *args: Any, results: int = 0) -> int:
        """Let the server know of a change of this tensor, unless it is on the meta device, where it has no part."""
        session = self._session
        number: int = session.builder.nowhere() if self._id < 0 else session.record(TABLE[op], [self, *args], results)
        return number

    # Names

    def set_name(self, name: str) -> Tensor:
        """Let any client of the session find this tensor as ``session.tensor(name)``."""
        self._session.record(TABLE["set_name"], [self, name], 0)
        self._session.names[name] = self._id
        return self


def hand_over(made: Tensor, to: Tensor) -> None:
    """Let a proxy stand for another tensor from now on, usually a view of what it stood for. What the program attached
    to it stays."""
    before = Tensor._make(to._session, to._id, to._form, to._node, to._slot)
    kept = everything(to)
    own = {k: v for k, v in kept.items() if k in Tensor.__annotations__}
    everything(before).update(own)
    before._base_tensor, before._versions = to._base_tensor, to._versions
    for key in own:
        del kept[key]
    to._id, to._form, to._node, to._slot = made._id, made._form, made._node, made._slot
    to._base_tensor, to._versions = before if made._base_tensor is to else made._base_tensor, made._versions
    kept.update({k: before if v is to else v for k, v in everything(made).items()})
    made.__class__ = Moved


class Moved(Tensor):
    """A proxy whose id another proxy has taken over: it releases nothing."""

    __slots__ = ()

    def __del__(self) -> None:
        """Nothing to release."""


handles.register_class(Tensor)

__all__ = ["AccumulateGrad", "Tensor"]
