"""``x[...]`` and ``x[...] = v``: each becomes the chain of view and index ops that PyTorch makes of it."""

from __future__ import annotations

import operator
import warnings
from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, IndexOutOfRange, ShapeError
from gradwire_protocol.meta import Meta
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE

from ..context.modes import MODES
from ..dispatch.dispatch import call, run
from ..dispatch.fast_path import NOT_APPLICABLE
from ..dispatch.signatures import Signature, key_of, known
from ..graph.forward_levels import OPEN
from ..graph.inplace import check_expanded
from ..graph.recorded_call import entry_of
from ..tensor.tensor import Tensor
from .creation import tensor

_SELECT: Final = entry_of(TABLE["select"])
_UNSQUEEZE: Final = entry_of(TABLE["unsqueeze"])
_SLICE: Final = entry_of(TABLE["slice"])
SELECTS_KEPT: Final = 4096
_selects: dict[tuple[Meta, int], tuple[Signature, int]] = {}
"""What is known of selections, by the tensor's meta and the dimension: their signature, and the extent there. Programs
that go through a sequence select all the time."""

_NARROW: Final = (dtypes.int8, dtypes.int16)
"""Integers that index as numbers, arrays and lists do, but not as tensors with dimensions."""
_PARTS: Final = (list, tuple, range, slice, type(None), type(Ellipsis), Tensor, np.ndarray)
"""What in a list makes it a tuple of indices, as PyTorch still has it."""


def getitem(self: Tensor, key: Any) -> Tensor:
    """The elements that ``key`` names: a view for ints, slices, None and Ellipsis, a copy for tensors and masks."""
    if self._form.shape:
        if type(key) is int:
            return _select(self, 0, key)
        if type(key) is tuple and (made := _viewed(self, key)) is not None:
            return made if made is not self else call("alias", self)
        if type(key) is slice:  # alone it is an op even where it takes everything; inside a tuple it is not
            return _slice(self, 0, key, whole=True)
    viewed, indices = _walk(self, key)
    if any(i is not None for i in indices):
        return call("index", viewed, indices)
    return viewed if viewed is not self else call("alias", self)


def _viewed(self: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """What :func:`_walk` makes of a key of ints, slices and None, which most are; ``None`` for any other."""
    dims = len(self._form.shape)
    for part in key:
        if type(part) is int or type(part) is slice:
            dims -= 1
        elif part is not None:
            return None
    if dims < 0:
        return None
    made, dim = self, 0
    for part in key:
        if type(part) is int:
            made = _select(made, dim, part)
            continue
        made = run(_UNSQUEEZE, [made, dim]) if part is None else _slice(made, dim, part)
        dim += 1
    return made


def _select(self: Tensor, dim: int, index: int) -> Tensor:
    """The elements at one index of a dimension."""
    session, key = self._session, MODES.key
    if session.lock.ready == key and not OPEN and type(index) is int:
        form = self._form, dim
        known_form = _selects.get(form)
        if known_form is not None:
            signature, extent = known_form
            if -extent <= index < extent:
                made = signature.record(signature, session, key, self, dim, index)
                if made is not NOT_APPLICABLE:
                    return made
        elif (found := known(key_of(_SELECT, [self, dim, index]))) is not None:
            if len(_selects) >= SELECTS_KEPT:
                _selects.clear()
            _selects[form] = found, self._form.shape[dim]
    selected: Tensor = run(_SELECT, [self, dim, index])
    return selected


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write into the elements that ``key`` names."""
    viewed, indices = _walk(self, key)
    if any(i is not None for i in indices):
        call("index_put_", viewed, indices, _written(value, viewed, indices))
        return
    if isinstance(value, Tensor):
        while value.ndim > viewed.ndim and value.shape[0] == 1:
            value = call("select", value, 0, 0)
        if viewed.ndim and not value.ndim and (viewed.is_complex() or not value.is_complex()):
            call("fill_", viewed, value)
            return
        if value._form.shape != viewed._form.shape:
            value = _stretched(value, viewed)
        call("copy_", viewed, value)
    elif ScalarKind.of(value) is not None:
        if 0 in viewed._form.stride:
            check_expanded(viewed, "an assignment")
        call("fill_", viewed, value)
    else:
        call("copy_", viewed, _filled(value, viewed))


def _stretched(value: Tensor, viewed: Tensor) -> Any:
    """The tensor in the shape of the elements that it is written to. What it repeats may be a part of what is written.

    Raises:
        ShapeError: when it does not broadcast.
    """
    try:
        return call("expand", value, viewed._form.shape)
    except ShapeError:
        raise ShapeError(
            f"a {value._form!r} tensor cannot be assigned to elements of shape {list(viewed.shape)}: it does not "
            "broadcast to it"
        ) from None


def _written(value: Any, viewed: Tensor, indices: list[Tensor | None]) -> Tensor:
    """What is written to indexed elements: a number takes the dtype of the tensor, and so does a single element that a
    mask's elements are filled with. Any other tensor must have that dtype already."""
    written: Tensor = value if isinstance(value, Tensor) else _filled(value, viewed)
    if (
        written.dtype is not viewed.dtype
        and written.numel() == 1
        and all(i is None or i.dtype is dtypes.bool_ for i in indices)
    ):
        written = written.to(dtype=viewed.dtype)
    if written.device != viewed.device and written.ndim == 0:
        written = written.to(device=viewed.device)
    if written.ndim and written.shape[0] == 1:
        written = written.view(_without_leading_ones(written.shape))
    return written


def _without_leading_ones(shape: Any) -> tuple[int, ...]:
    first = next((i for i, extent in enumerate(shape) if extent != 1), len(shape))
    return tuple(shape[first:])


def _filled(value: Any, like: Tensor) -> Tensor:
    made: Tensor = tensor(value, dtype=like.dtype, device=like.device)
    return made


def _walk(self: Tensor, key: Any) -> tuple[Tensor, list[Tensor | None]]:
    """Apply the parts of the key that make views, and gather the tensors that index what remains."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if isinstance(key, list) and len(key) < 32 and any(isinstance(k, _PARTS) for k in key):
        warnings.warn(
            f"a list with {next(type(k).__name__ for k in key if isinstance(k, _PARTS))} in it is taken as a tuple of "
            "indices: write x[tuple(list)], or x[tensor(list)] for an index of several dimensions",
            stacklevel=3,
        )
        parts = list(key)
    parts = list(map(_as_index, parts))
    taken = sum(_dims_taken(p) for p in parts)
    ndim = self.ndim
    if taken > ndim:
        raise IndexOutOfRange(f"{taken} indices are too many for a tensor of {ndim} dimensions")
    result = self
    indices: list[Tensor | None] = []
    dim = 0
    for part in parts:
        if part is None:
            result = call("unsqueeze", result, dim)
            indices.append(None)
            dim += 1
        elif part is Ellipsis:
            skipped = ndim - taken
            indices.extend([None] * skipped)
            dim += skipped
        elif isinstance(part, slice):
            result = _slice(result, dim, part)
            indices.append(None)
            dim += 1
        elif isinstance(part, bool):
            result = call("unsqueeze", result, dim)
            indices.append(_filled_bool(part, self))
            dim += 1
        elif isinstance(part, int):
            result = _select(result, dim, part)
        else:
            if part.dtype is dtypes.bool_ and part.ndim == 0:
                result, part = call("unsqueeze", result, dim), call("unsqueeze", part, 0)
            indices.append(part)
            dim += part.ndim if part.dtype is dtypes.bool_ else 1
    return result, indices


def delitem(self: Tensor, key: Any) -> None:
    """Refuse ``del x[...]``: a tensor's shape is fixed."""
    raise ArgumentTypeError(f"elements of a {self._form!r} tensor cannot be deleted: select the others, or use a mask")


def _filled_bool(value: bool, like: Tensor) -> Tensor:
    made: Tensor = tensor([value], device=like.device)
    return made


def _dims_taken(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype is dtypes.bool_:
        return part.ndim
    return 1


def _as_index(part: Any, level: int = 4) -> Any:
    """An index entry in one of the forms handled: None, Ellipsis, slice, bool, int, tensor. ``level`` is how far up the
    stack the user's line is."""
    if part is None or part is Ellipsis or isinstance(part, (slice, bool)):
        return part
    if isinstance(part, Tensor):
        if part.dtype.carries_gradient:
            raise IndexOutOfRange(f"a tensor used as an index must be of integers or bools, not {part.dtype.name}")
        if part.dtype is dtypes.uint8:
            warnings.warn(
                f"a uint8 tensor of shape {list(part.shape)} as an index is taken as a mask: convert it with bool(), "
                "or with long() if it holds positions",
                stacklevel=level,
            )
            return call("to", part, dtypes.bool_)
        return call("to", part, dtypes.int64) if part.dtype in _NARROW and part.ndim == 0 else part
    if isinstance(part, (list, tuple, range, np.ndarray)):
        if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and part.dtype != np.uint8:
            part = part.astype(np.int64)
        made = tensor(part if isinstance(part, np.ndarray) else list(part))
        if made.numel() == 0 or made.dtype in _NARROW:
            made = call("to", made, dtypes.int64)
        return _as_index(made, level + 1)
    try:
        return operator.index(part)
    except TypeError:
        kind = ArgumentTypeError if isinstance(part, str) else IndexOutOfRange
        raise kind(
            f"an index is an int, a slice, None, ..., a mask or integers, not {part!r:.40} of type "
            f"{type(part).__name__}"
        ) from None


def _slice(self: Tensor, dim: int, part: slice, whole: bool = False) -> Tensor:
    """The elements of a slice; the tensor itself where these are all, unless ``whole`` asks for a view of them."""
    start, stop, step = part.start, part.stop, part.step
    if type(start) is not int or type(stop) is not int or step is not None:
        start, stop, step = _bound(start), _bound(stop), _bound(step)
    if step is not None and step <= 0:
        raise ArgumentValueError(f"a slice's step must be positive, not {step}: use flip for a reversed order")
    extent = self._form.shape[dim]
    from_start = (start is None or start == 0) and step in (None, 1)
    if from_start and not whole and (stop is None or 0 <= extent <= stop):
        return self
    made: Tensor = run(_SLICE, [self, dim, start, stop, 1 if step is None else step])
    return made


def _bound(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"a slice's bounds are ints, not {value!r:.40}") from None
