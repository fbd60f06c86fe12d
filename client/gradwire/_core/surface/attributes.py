"""What programs ask a tensor beside its values: where it lives, how it is held; and functions applied element by
element in the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, GraphError
from gradwire_protocol.promotion import ScalarKind

from ..context.late_signatures import called_as
from ..context.layouts import layout, memory_format, strided
from ..context.modes import no_grad
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..graph.inplace import check_expanded
from ..tensor.tensor import Tensor
from .creation import empty, tensor
from .methods import attach, offer
from .storages import is_storage
from .unsupported import AbsentAttribute


def _on(kind: str) -> property:
    def found(self: Tensor) -> bool:
        return self.device.type == kind

    return property(found, doc=f"Whether it lives on a {kind} device of the server.")


def _never(what: str) -> property:
    def never(self: Tensor) -> bool:
        return False

    return property(never, doc=f"Always False: {what}.")


def _is_meta(self: Tensor) -> bool:
    """Whether it is a shape and a dtype without values."""
    return self._id < 0


attach("is_cpu", _on("cpu"))
for _kind in ("mps", "xpu", "xla", "ipu", "maia", "vulkan", "mtia"):
    attach(f"is_{_kind}", _never("gradwire's devices are CPUs and CUDA devices"))
attach("is_meta", property(_is_meta))
attach("is_quantized", _never("there are no quantized dtypes"))
attach("is_nested", _never("there are no nested tensors"))
attach("is_mkldnn", _never("tensors are strided"))
attach("is_sparse_csr", _never("tensors are strided"))


def _layout(self: Tensor) -> layout:
    """``strided``, the only one there is."""
    return strided


attach("layout", property(_layout))


def _undeletable(name: str) -> Callable[[Tensor], None]:
    def refuse(self: Tensor) -> None:
        raise GraphError(f"{name} of a tensor can be set, not deleted")

    return refuse


for _name in ("data", "requires_grad"):
    setattr(Tensor, _name, getattr(Tensor, _name).deleter(_undeletable(_name)))


def _name_of(self: Tensor) -> None:
    """None: tensors of a session are named with ``session.name``."""


attach("name", property(_name_of))


def ndimension(self: Tensor) -> int:
    """The number of dimensions."""
    return self.ndim


def get_device(input: Tensor) -> int:
    """The index of its CUDA device, -1 elsewhere."""
    return -1 if input.device.type != "cuda" else input.device.index or 0


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


def _new_form(
    self: Tensor, *args: Any, size: Any = None, data: Any = None, other: Tensor | None = None, storage: Any = None,
    device: Device | str | int | None = None,
) -> Tensor:  # fmt: skip
    raise NotImplementedError


def _of_storage(self: Tensor, storage: Any) -> Tensor:
    """A tensor that shows all of a storage, in the dtype of another."""
    if getattr(storage, "dtype", self.dtype) is not self.dtype:
        raise ArgumentTypeError(f"new() of a {self.dtype!r} tensor takes no storage of {storage.dtype!r}")
    found: Tensor = storage.untyped()._numbers(self.dtype)
    return found


@called_as(_new_form)
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Uninitialised of a size, or of data, in the tensor's dtype and on its device. PyTorch's old form of
    :meth:`new_empty` and :meth:`new_tensor`.

    Raises:
        ArgumentError: for a tensor and a device, and for a device of another kind.
    """
    if not kwargs.keys() <= {"size", "data", "other", "storage", "device"}:
        raise ArgumentTypeError(f"new() takes size, data, other, storage and device by name, not {sorted(kwargs)}")
    where = kwargs.get("device")
    if where is not None and Device(where).type != self.device.type:
        raise ArgumentError(f"new() makes tensors on {self.device}, not on {where}: use .to()")
    if not args and "size" in kwargs:
        args = (type(self.shape)(kwargs.pop("size")),)
    elif not args and "data" in kwargs:
        args = (kwargs.pop("data"),)
    elif not args:
        args = tuple(kwargs.pop(name) for name in ("other", "storage") if name in kwargs)
    if len(args) == 1 and is_storage(args[0]):
        return _of_storage(self, args[0])
    if kwargs.get("device") is not None and args and isinstance(args[0], Tensor):
        raise ArgumentError("new() of a tensor takes no device: use torch.as_tensor, or .to()")
    data = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray, Tensor)) else None
    if data is not None and not isinstance(data, type(self.shape)):
        return tensor(data, dtype=self.dtype, device=self.device)
    return empty(*(args or (0,)), dtype=self.dtype, device=self.device)


def pin_memory(self: Tensor, device: Device | str | int | None = None) -> Tensor:
    """The tensor itself: its memory is the server's, which pins what it copies."""
    return self


def is_pinned(self: Tensor, device: Device | str | int | None = None) -> bool:
    """False: the memory is the server's."""
    return False


def share_memory_(self: Tensor) -> Tensor:
    """The tensor itself: what shares its session shares it already."""
    return self


def is_shared(self: Tensor) -> bool:
    """True: every client of its session can reach it."""
    return True


def record_stream(self: Tensor, s: object) -> None:
    """Nothing: the server orders its own work."""


def fill_diagonal_(self: Tensor, fill_value: complex, wrap: bool = False) -> Tensor:
    """Write one value onto the main diagonal; with ``wrap`` of a tall matrix, again below each square.

    Raises:
        ArgumentError: for fewer than two dimensions, or more than two of uneven extents.
    """
    if self.ndim < 2:
        raise ArgumentError(f"fill_diagonal_ needs at least two dimensions, got {self.ndim}")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise ArgumentError(f"fill_diagonal_: beyond matrices all extents must be equal, got {list(self.shape)}")
    if self.ndim > 2:
        call("as_strided", self, (self.shape[0],), (sum(self.stride()),), 0).fill_(fill_value)
        return self
    rows, columns = self.shape
    starts = range(0, rows, columns + 1) if wrap else (0,)
    for start in starts:
        call("diagonal", call("slice", self, 0, start, rows, 1)).fill_(fill_value)
    return self


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a function of the program makes of it. One round trip; nothing is recorded."""
    _need_no_grad("apply_", self)
    return _overwrite("apply_", self, (), lambda value, others: callable(value))


def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a function makes of it and the other tensor's, which broadcasts. Like
    :meth:`apply_`."""
    _need_no_grad("map_", self, other)
    return _overwrite("map_", self, (other,), lambda value, others: callable(value, *others))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """:meth:`map_` with a function of three elements."""
    _need_no_grad("map2_", self, x, y)
    return _overwrite("map2_", self, (x, y), lambda value, others: callable(value, *others))


def dim_order(self: Tensor, *, ambiguity_check: bool | Sequence[memory_format] = False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the smallest; 0 strides and extents of one
    element stay where they are.

    Raises:
        ArgumentError: when other orders have the same strides, where ``ambiguity_check``.
    """
    order: list[int] = []  # from the smallest stride on
    for dim in reversed(range(self.ndim)):
        at = here = len(order)
        while at:
            later = _further(self, order[at - 1], dim)
            if later is None and ambiguity_check:
                raise ArgumentError(
                    f"dim_order: dimensions {dim} and {order[at - 1]} of {self._form!r} can be exchanged"
                )
            if later is False:
                break
            at -= 1
            if later:
                here = at
        order.insert(here, dim)
    return tuple(reversed(order))


def _further(self: Tensor, one: int, other: int) -> bool | None:
    """Whether a dimension comes after another one; None where their strides do not tell."""
    near, far = self.stride(one), self.stride(other)
    if not near or not far:
        return None
    if near != far:
        return bool(near > far)
    return True if self.shape[one] > self.shape[other] else None


def _need_no_grad(name: str, self: Tensor, *others: Any) -> None:
    """Refuse what a function of the program cannot do with these tensors.

    Raises:
        GraphError: for one that requires grad, as no derivative of the function is known.
        ArgumentTypeError: for others of another dtype.
    """
    for given in (self, *others):
        if not isinstance(given, Tensor) or given.dtype is not self.dtype:
            shown = given.dtype.name if isinstance(given, Tensor) else type(given).__name__
            raise ArgumentTypeError(f"{name}: all tensors have the dtype {self.dtype.name}, not {shown}")
        if given.requires_grad:
            raise GraphError(f"{name}: a {given._form!r} tensor requires grad, a function of numbers has no derivative")


def _overwrite(name: str, self: Tensor, others: tuple[Tensor, ...], step: Callable[[Any, Any], Any]) -> Any:
    """Write what a function makes of each element, one after the other: of an expanded tensor it takes what it made of
    the elements before that are the same place in memory."""
    shape = tuple(self.shape)
    rows = zip(*[call("expand", t, shape).detach().reshape(-1).tolist() for t in others])
    kept = tuple(slice(0, 1) if not s else slice(None) for s in self._form.stride)
    target = self[kept] if 0 in self._form.stride else self
    check_expanded(target, name)
    held = np.empty(tuple(target.shape), object)
    held.reshape(-1)[:] = target.detach().reshape(-1).tolist()
    for at, row in zip(np.ndindex(shape), rows if others else repeat(())):
        place = tuple(i if i < n else 0 for i, n in zip(at, held.shape))
        value = held[place] = step(held[place], row)
        if ScalarKind.of(value) is None and not isinstance(value, Tensor):
            raise ArgumentTypeError(f"{name}: the function returned {value!r:.60}, which is no number")
    with no_grad():
        target.copy_(tensor(held.reshape(-1).tolist(), dtype=self.dtype, device=self.device).reshape(held.shape))
    return self


for _method in (
    ndimension, new, pin_memory, is_pinned, share_memory_, is_shared, record_stream, fill_diagonal_,
    apply_, dim_order, map2_, map_,
):  # fmt: skip
    attach(_method.__name__, _method)
for _function in (get_device, is_signed, is_same_size):
    offer(_function)

LACKING = (
    "chalf", "index", "slice_inverse",
)  # fmt: skip
"""What PyTorch's tensors have and gradwire's have not."""
for _name in LACKING:
    attach(_name, AbsentAttribute(_name, "Tensor"))


def _names(self: Tensor) -> list[str]:
    """The public attributes of a tensor that gradwire has. Of at most 750, Python suggests one for a typo."""
    names = [name for name in object.__dir__(self) if not name.startswith("_") or name.endswith("__")]
    return [name for name in (*names, *self.__dict__) if name not in LACKING or hasattr(self, name)]


attach("__dir__", _names)
