"""Calls of ops, drawn from the samples that the tests compare with PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from tests.samples import Sample, Samples, load

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.table import Op

from .table import spelled

SEED: Final = 16
KINDS: Final = (
    ("float32", "float64"), ("int64", "int32", "uint8"), ("bool",), ("complex64", "complex128"),
    ("bfloat16", "float16"),
)  # fmt: skip
"""One dtype of each kind is drawn: the first that the samples have."""


@dataclass(frozen=True)
class Call:
    """A call of an op.

    Attributes:
        label: its dtype, for ids.
        given: arguments by name, with torch tensors, dtypes and plain values.
        tolerance: rtol and atol that its samples ask for.
        fails: it is an error.
        gradients: whether its gradients follow from its values.
    """

    op: Op
    label: str
    given: dict[str, Any]
    tolerance: tuple[float, float]
    fails: bool
    gradients: bool


def calls(op: Op, size: int) -> Iterator[Call]:
    """Calls of an op, of an in-place form by the samples of its base: two in the first dtype, one in the others, one
    that fails; of operands with so many elements at most."""
    declared = load().get(op.name) or (load().get(op.base.name, []) if op.base is not None else [])
    failing: Call | None = None
    for kind in KINDS:
        wanted = 2 if kind == KINDS[0] else 1
        for samples, dtype in _of_kind(declared, kind):
            for sample in _drawn(samples, dtype):
                call = _call(op, samples, sample, dtype, size)
                if call is None:
                    continue
                if call.fails:
                    failing = failing or call
                elif wanted:
                    wanted -= 1
                    yield call
    if failing is not None:
        yield failing


def _of_kind(declared: list[Samples], kind: tuple[str, ...]) -> list[tuple[Samples, str]]:
    found = [(samples, next((d for d in kind if d in samples.dtypes), "")) for samples in declared]
    return [(samples, dtype) for samples, dtype in found if dtype]


def _drawn(samples: Samples, dtype: str) -> list[Sample]:
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return samples.draw(dtype, SEED)
        except (RuntimeError, TypeError, NotImplementedError):  # torch does not make this sample in this dtype
            return []


def _call(op: Op, samples: Samples, sample: Sample, dtype: str, size: int) -> Call | None:
    """The sample as a call, unless it is too large or JSON cannot carry it."""
    names = [param.name for param in op.params]
    if len(sample.args) > len(names):
        return None
    given = dict(zip(names, sample.args, strict=False)) | sample.kwargs
    tensors = [t for value in given.values() for t in tensors_of(value)]
    if sum(t.numel() for t in tensors) > size or not all(map(_plain, given.values())):
        return None
    gradients = samples.grad is True and sample.gradients and samples.ref is not None
    return Call(op, dtype, given, samples.tol or (0.0, 0.0), sample.expects_error, gradients)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in an argument."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for each in value for t in tensors_of(each)] if isinstance(value, list | tuple) else []


def _plain(value: Any) -> bool:
    """Whether a frame in JSON can have this argument."""
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    if isinstance(value, int) and type(value) is not bool:
        return -(1 << 63) <= value < 1 << 63
    return value is None or isinstance(value, str | bool | float | complex | torch.dtype | torch.Tensor)


def converted(value: Any, tensor: Callable[[torch.Tensor], Any]) -> Any:
    """The argument with its tensors replaced, and torch's dtypes by the protocol's."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, list | tuple):
        return type(value)(converted(each, tensor) for each in value)
    return value


def dtype_of(dtype: torch.dtype) -> DType:
    """The protocol's dtype of a torch dtype."""
    return dtypes.BY_NAME[str(dtype).removeprefix("torch.")]


def values_of(tensor: torch.Tensor, places: int | None = 3) -> Any:
    """A tensor's values in JSON form, with so many decimal places."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.detach().resolve_conj())
    return _spelled(tensor.detach().tolist(), places)


def _spelled(value: Any, places: int | None) -> Any:
    if isinstance(value, list):
        return [_spelled(each, places) for each in value]
    if isinstance(value, float):
        return spelled(value if places is None or not math.isfinite(value) else round(value, places))
    return str(value) if type(value) is int and abs(value) >= 2**53 else value
