"""``out=`` of every function that has it: right and wrong shapes, several kinds of memory, under torch and gradwire."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.op_db.bridge import Bridge
from tests.op_db.entries import all_entries
from tests.op_db.trial import Lacking, operator_of, tensors_in
from tests.side_by_side import built_in, close, described, settle

import gradwire

pytestmark = [pytest.mark.usefixtures("session"), pytest.mark.filterwarnings("ignore")]

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
WIDER = {"float32": "float64", "float64": "complex128", "int64": "float32", "bool": "int64", "complex64": "complex128"}
BROKEN_IN_TORCH = {
    "lu_unpack", "linalg.lu", "linalg.ldl_factor", "linalg.ldl_factor_ex",  # corrupt memory
    "narrow_copy", "nn.functional.avg_pool3d", "nn.functional.gelu", "nn.functional.linear",  # wrong in strided memory
}  # fmt: skip
"""Functions that torch itself computes wrongly, or not without harm, in some of these outs."""
ELSEWHERE = {
    "normal/number_mean": "torch resizes in silence, only here",
    "index_reduce": "torch warns that it is new", "native_batch_norm": "no out here", "qr": "torch warns",
    "cholesky": "torch warns", "split_with_sizes_copy": "torch returns None", "unbind_copy": "torch returns None",
    "triangular_solve": "torch warns", "nonzero": "row-major here", "svd": "other signs", "linalg.svd": "other signs",
    "cholesky_inverse": "row-major here", "cholesky_solve": "row-major here", "ormqr": "row-major here",
    "linalg.householder_product": "row-major here", "linalg.solve": "row-major here", "fft.ihfft2": "other order",
    "linalg.solve_triangular": "row-major here", "fft.ihfftn": "other order", "linalg.eig": "other phases",
    "linalg.eigh": "other signs", "geqrf": "other signs", "linalg.lstsq": "by SVD",
}  # fmt: skip
"""Functions whose results or warnings differ for reasons that have nothing to do with ``out``."""
UNDIFFERENTIATED = ("special.", "histc")
MOST = 120
"""Elements of the results that are compared."""


def filled(lib: Any, shape: tuple[int, ...], like: torch.Tensor) -> Any:
    dtype = getattr(lib, str(like.dtype).removeprefix("torch."))
    return lib.ones(shape, dtype=dtype)


def _flat(shape: torch.Size, more: int = 0) -> tuple[int, ...]:
    return (shape.numel() + more,) if len(shape) != 1 or more else (1, shape.numel())


ARRANGEMENTS: dict[str, Callable[[Any, torch.Tensor], tuple[Any, Any]]] = {}
"""By what they are called: functions from a result to ``out`` and the memory that it lies in."""


def arrangement(make: Callable[[Any, torch.Tensor], Any]) -> Callable[[Any, torch.Tensor], Any]:
    ARRANGEMENTS[make.__name__] = lambda lib, r: (lambda made: made if isinstance(made, tuple) else (made, made))(
        make(lib, r)
    )
    return make


@arrangement
def right(lib, r):
    return filled(lib, tuple(r.shape), r)


@arrangement
def permuted(lib, r):
    memory = filled(lib, tuple(reversed(r.shape)), r)
    return memory.permute(tuple(range(r.ndim - 1, -1, -1))), memory


@arrangement
def strided(lib, r):
    memory = filled(lib, (*r.shape, 2), r)
    return memory[..., 1], memory


@arrangement
def of_as_many_elements(lib, r):
    return filled(lib, _flat(r.shape), r)


@arrangement
def of_as_many_elements_apart(lib, r):
    memory = filled(lib, (*_flat(r.shape), 2), r)
    return memory[..., 0], memory


@arrangement
def larger(lib, r):
    return filled(lib, _flat(r.shape, 3), r)


@arrangement
def smaller(lib, r):
    return filled(lib, (max(1, r.numel() - 1),), r)


@arrangement
def smaller_with_room_behind(lib, r):
    memory = filled(lib, (r.numel() + 6,), r)
    return memory[2 : 2 + max(1, r.numel() - 1)], memory


@arrangement
def larger_within_others(lib, r):
    memory = filled(lib, (r.numel() + 6,), r)
    return memory[2 : 3 + r.numel()], memory


@arrangement
def empty(lib, r):
    return filled(lib, (0,), r)


@arrangement
def of_int16(lib, r):
    return lib.ones(tuple(r.shape), dtype=lib.int16)


@arrangement
def that_requires_grad(lib, r):
    made = filled(lib, tuple(r.shape), r)
    return made.requires_grad_() if r.is_floating_point() or r.is_complex() else made


def sample_of(entry: Any) -> tuple[Any, Any] | None:
    """The sample of most dimensions with elements and not too many, and torch's result."""
    dtype = next((d for d in DTYPES if d in entry.dtypes), None)
    best, found = -1, None
    for sample in entry.sample_inputs("cpu", dtype, requires_grad=False) if dtype else ():
        try:
            result = entry.op(sample.input, *sample.args, **sample.kwargs)
        except Exception:
            continue
        made = tensors_in(result, torch.Tensor)
        usable = all(isinstance(t, torch.Tensor) and str(t.dtype).removeprefix("torch.") in WIDER for t in made)
        if made and usable and all(0 < t.numel() <= MOST for t in made):
            rank = max(t.ndim for t in made)
            if rank > best:
                best, found = rank, (sample, result)
    return found


ENTRIES = [
    label for label, entry in all_entries().items()
    if entry.supports_out and label not in BROKEN_IN_TORCH and not {label, label.split("/")[0]} & ELSEWHERE.keys()
]  # fmt: skip


def course(lib: Any, function: Any, sample: Any, result: Any, arrange: Callable[[Any, Any], Any]) -> Any:
    """What is there after a call: the result, ``out``, its memory, and warnings; or the class of an exception."""
    bridge = Bridge(lib)
    memories: list[Any] = []

    def out_for(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(out_for(v) for v in value)
        made, memory = arrange(lib, value)
        memories.append(memory)
        return made

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = out_for(result)
            torch.manual_seed(0)
            given = function(bridge(sample.input), *bridge(tuple(sample.args)), **bridge(dict(sample.kwargs)), out=out)
            outs, results = tensors_in(out, object), tensors_in(given, object)
            found: Any = [[a is b for a, b in zip(outs, results)], described(outs), described(memories)]
            if lib is gradwire:
                settle()
        except Exception as error:
            found = built_in(error)
            if lib is gradwire:
                assert not isinstance(error, AssertionError)
    resized = any("resize" in str(w.message) or "takes the shape" in str(w.message) for w in caught)
    return [found, resized]


@pytest.mark.parametrize("label", ENTRIES)
def test_out_is_written_to_as_torch_does(label):
    entry = all_entries()[label]
    try:
        function = operator_of(entry, gradwire)
    except Lacking:
        pytest.skip("there is no such function")
    chosen = sample_of(entry)
    if chosen is None:
        pytest.skip("no sample of a size that can be compared")
    random = any(part in label for part in ("rand", "empty", "normal", "bernoulli", "multinomial"))
    different = []
    for name, arrange in ARRANGEMENTS.items():
        if name == "that_requires_grad" and label.startswith(UNDIFFERENTIATED):
            continue  # torch writes into it as it has no derivative, gradwire has one
        expected = course(torch, entry.op, *chosen, arrange)
        found = course(gradwire, function, *chosen, arrange)
        if random and not isinstance(expected[0], str) and not isinstance(found[0], str):
            expected[0], found[0] = ([v[0], [t["shape"] for t in v[1]]] for v in (expected[0], found[0]))
        if {expected[0], found[0]} <= {"RuntimeError", "NotImplementedError"} if (
            isinstance(expected[0], str) and isinstance(found[0], str)
        ) else False:  # fmt: skip
            found[0] = expected[0]
        if not close(expected, found, 2e-4):
            different.append(f"{name}:\n  torch    {expected}\n  gradwire {found}"[:1500])
    assert not different, "\n".join(different)
