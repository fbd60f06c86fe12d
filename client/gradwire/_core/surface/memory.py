"""What programs ask of a tensor's memory: where it begins, who else shows it; and tensors that are given other memory.

The memory is the server's. An address is a number that tells one memory from another and one place in it from the next:
there is nothing at that address in the program's own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, GraphError
from gradwire_protocol.ops.control import GRAD_MODE, INFERENCE_MODE

from ..context.modes import MODES, no_grad
from ..dispatch.dispatch import call
from ..tensor.memory import address_of, begins_its_memory, memory_of
from ..tensor.tensor import Tensor
from .creation import empty
from .methods import attach
from .storages import UntypedStorage, check_view_of, is_storage
from .typed_storages import TypedStorage


def storage_offset(self: Tensor) -> int:
    """How many elements before its first one its memory begins. One round trip, once, for a view of a part."""
    if self._offset is None:
        if self._id < 0 or (begins_its_memory(self) and not self._levels):
            return 0
        self._offset = int(call("offset_of", self).item())
    return self._offset


def data_ptr(self: Tensor) -> int:
    """The address of its first element: equal for tensors that begin at the same place in memory. 0 for a tensor
    without elements or on the meta device. No round trip, unless it is a view of a part (:func:`storage_offset`)."""
    if self._id < 0 or not self._known_meta().numel:
        return 0
    return address_of(self) + storage_offset(self) * self.itemsize


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Its memory as bytes."""
    return UntypedStorage._of(self)


def storage(self: Tensor) -> TypedStorage:
    """Its memory as numbers of its dtype."""
    return TypedStorage(wrap_storage=UntypedStorage._of(self), dtype=self.dtype)


def _storage_type(self: Tensor) -> Any:
    """The class of its storage: ``torch.FloatStorage``."""
    from .typed_storages import CUDA_LEGACY, LEGACY, STORAGE_NAMES

    return (CUDA_LEGACY if self.is_cuda else LEGACY).get(STORAGE_NAMES.get(self.dtype, ""), UntypedStorage)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same part of the same memory with the same strides."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"is_set_to takes a tensor, not {type(tensor).__name__}")
    alike = self._known_meta() == tensor._known_meta() and memory_of(self) is memory_of(tensor)
    return alike and (self is tensor or storage_offset(self) == storage_offset(tensor))


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let the tensor show other memory: that of a tensor, as it shows it; or a storage, of its dtype, from an offset
    on; or, without a source, none.

    Raises:
        GraphError: for a tensor whose history would be lost: one that requires grad, unless it is a leaf and gradients
            are off.
        ArgumentError: for another dtype or device, or a size beyond the storage's end.
    """
    if self._inference and not MODES.flags & INFERENCE_MODE:
        raise GraphError("set_: a tensor created in inference mode cannot be given other memory outside of it")
    if self.requires_grad and (MODES.flags & GRAD_MODE or not self.is_leaf):
        raise GraphError("set_: a tensor that requires grad cannot be given other memory, its history would be lost")
    self.data = _shown(self, source, storage_offset, size, stride)
    self._bump("set_")
    return self


def _shown(self: Tensor, source: Any, offset: int, size: Any, stride: Any) -> Any:
    """What ``set_`` lets a tensor show."""
    if source is None:
        return empty(0, dtype=self.dtype, device=self.device)
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise ArgumentError(f"set_: a {self.dtype.name} tensor cannot show memory of {source.dtype.name}")
        memory: Any = UntypedStorage._of(source) if size is not None else None
    elif is_storage(source):
        if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
            raise ArgumentError(f"set_: a {self.dtype.name} tensor cannot show a storage of {source.dtype.name}")
        memory = source.untyped()
    else:
        raise ArgumentTypeError(f"set_ takes a tensor or a storage, not {type(source).__name__}")
    if source.device != self.device:
        raise ArgumentError(f"set_: a tensor on {self.device} cannot show memory on {source.device}")
    if memory is None:
        with no_grad():
            return source.data
    if size is None:
        size = (memory.nbytes() // self.itemsize - offset,)
    if stride is None:
        stride = _row_major(size)
    check_view_of(memory, offset, tuple(size), tuple(stride), self.dtype)
    with no_grad():
        shown: Tensor = call("as_strided", memory._numbers(self.dtype), tuple(size), tuple(stride), offset)
    if not memory._begin:
        shown._offset = offset
    return shown


def _row_major(size: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    step = 1
    for extent in reversed(size):
        found.insert(0, step)
        step *= max(extent, 1)
    return tuple(found)


for _method in (storage_offset, data_ptr, untyped_storage, storage, is_set_to, set_):
    attach(_method.__name__, _method)
attach("const_data_ptr", data_ptr)
attach("_typed_storage", storage)
attach("storage_type", _storage_type)
