"""What plain pickles (``pickle.dumps``, ``multiprocessing``, joblib) keep of tensors, storages and generators: their
values. Names are PyTorch's: ``torch._utils._rebuild_tensor_v2`` and the like, here ``gradwire._utils``.
"""

from __future__ import annotations

import io
import sys
from collections import OrderedDict
from importlib import import_module
from typing import Any

from gradwire_protocol.errors import Unsupported

from ..modules.parameter import Parameter
from ..surface.generator import Generator
from ..surface.storages import UntypedStorage
from ..surface.typed_storages import STORAGE_NAMES, TypedStorage
from ..tensor.tensor import Tensor
from . import archive
from .writing import Writer, attributes_of


def reduced(value: Any) -> Any:
    """What pickle keeps of a tensor, a storage or a generator. A tensor or storage costs a round trip, a view of a part
    two."""
    if isinstance(value, Generator):
        return _named("_rebuild_generator"), (str(value.device), value._seed, value.get_state())
    if isinstance(value, (UntypedStorage, TypedStorage)):
        return _named("_load_from_bytes", "storage"), (_as_file(value),)
    if isinstance(value, Parameter):
        state = attributes_of(value)
        arguments: tuple[Any, ...] = (value.detach(), value.requires_grad, OrderedDict())
        if type(value) is not Parameter:
            return _named("_rebuild_from_type_v2"), (_named("_rebuild_parameter"), type(value), arguments, state)
        if state:
            return _named("_rebuild_parameter_with_state"), (*arguments, state)
        return _named("_rebuild_parameter"), arguments
    return _reduced_tensor(value)


def _reduced_tensor(value: Tensor) -> Any:
    size, stride = tuple(value.shape), tuple(value.stride())
    if value._id < 0:
        made: Any = _named("_rebuild_meta_tensor_no_storage"), (value.dtype, size, stride, value.requires_grad)
    else:
        shown = value
        try:
            untyped = UntypedStorage._of(value)
        except Unsupported:
            shown = value.detach().clone()
            untyped, stride = UntypedStorage._of(shown), tuple(shown.stride())
        rest: tuple[Any, ...] = (shown.storage_offset(), size, stride, value.requires_grad, OrderedDict())
        if value.dtype in STORAGE_NAMES:
            made = _named("_rebuild_tensor_v2"), (TypedStorage(wrap_storage=untyped, dtype=value.dtype), *rest)
        else:
            made = _named("_rebuild_tensor_v3"), (untyped, *rest, value.dtype)
    state = attributes_of(value)
    if type(value) is Tensor and not state:
        return made
    return _named("_rebuild_from_type_v2"), (made[0], type(value), made[1], state)


def _named(name: str, module: str = "_utils") -> Any:
    """A function that pickle finds by its name: under ``torch`` where that is gradwire, so that both libraries do."""
    stands_for = "gradwire" in str(getattr(sys.modules.get("torch"), "__version__", ""))
    found = getattr(import_module(f"{'torch' if stands_for else 'gradwire'}.{module}"), name)
    found.__module__ = f"{'torch' if stands_for else 'gradwire'}.{module}"
    return found


def _as_file(storage: UntypedStorage | TypedStorage) -> bytes:
    file = io.BytesIO()
    writer = Writer()
    archive.write(file, writer.write(storage), writer.storages)
    return file.getvalue()
