"""In-place ops whose operands are views of the written memory, against torch.

gradwire refuses what torch refuses. Without shared elements the values are torch's. Where torch reads elements that
it has already written, gradwire's values are those of an operand that was copied first.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import pytest
import torch
from tests.side_by_side import built_in, close, same, settle

import gradwire

pytestmark = pytest.mark.usefixtures("session")


def _numbers(lib: Any, *shape: int) -> Any:
    found = lib.arange(1.0, 1.0 + int(torch.Size(shape).numel())).reshape(shape)
    return found * 0.75


class Views(NamedTuple):
    """Two views of a memory of some shape: the one to write to, and the operand."""

    shape: tuple[int, ...]
    both: Callable[[Any], tuple[Any, Any]]

    def __call__(self, lib: Any, memory: Any = None) -> tuple[Any, Any, Any]:
        if memory is None:
            memory = _numbers(lib, *self.shape)
        return memory, *self.both(memory)


def _of(shape: tuple[int, ...], written: Callable[[Any], Any], read: Callable[[Any], Any]) -> Views:
    return Views(shape, lambda memory: (written(memory), read(memory)))


PLACES: dict[str, Views] = {
    "every other element": _of((8,), lambda m: m[::2], lambda m: m[1::2]),
    "neighbours, part by part": _of((8,), lambda m: m[:4], lambda m: m[4:]),
    "neighbours that meet": _of((5,), lambda m: m[:4], lambda m: m[1:]),
    "every other element, shifted": _of((12,), lambda m: m[0:8:2], lambda m: m[2:10:2]),
    "columns": _of((4, 4), lambda m: m[:, 0], lambda m: m[:, 1]),
    "halves of rows": _of((4, 4), lambda m: m[:, :2], lambda m: m[:, 2:]),
    "parts of rows that meet": _of((4, 4), lambda m: m[:, :2], lambda m: m[:, 1:3]),
    "chunks": _of((4, 4), lambda m: m.chunk(2, -1)[0], lambda m: m.chunk(2, -1)[1]),
    "rows that meet": _of((5, 4), lambda m: m[:4], lambda m: m[1:]),
    "a whole and its row": _of((4, 4), lambda m: m, lambda m: m[0]),
    "a row and the whole": _of((4, 4), lambda m: m[0], lambda m: m[0].expand(1, 4)[0]),
    "a diagonal and a row": _of((4, 4), lambda m: m.diagonal(), lambda m: m[0]),
    "a matrix and its transpose": _of((4, 4), lambda m: m, lambda m: m.t()),
    "the same view": _of((4,), lambda m: m[:], lambda m: m[:]),
    "the same tensor": _of((4,), lambda m: m, lambda m: m),
    "the same by data": _of((4,), lambda m: m, lambda m: m.data),
    "a part of it by data": _of((5,), lambda m: m[:4], lambda m: m.data[1:]),
    "an expanded tensor": _of((8,), lambda m: m[:1].expand(4), lambda m: m[4:]),
    "an expanded matrix": _of((8,), lambda m: m[:4].expand(4, 4), lambda m: m[4:]),
    "the same expanded view": _of((8,), lambda m: m[2:3].expand(4), lambda m: m[2:3].expand(4)),
    "the same expanded matrix": _of((4,), lambda m: m.expand(4, 4), lambda m: m.expand(4, 4)),
    "two elements, expanded alike": _of((8,), lambda m: m[2:3].expand(4), lambda m: m[3:4].expand(4)),
    "an expanded operand": _of((8,), lambda m: m[4:], lambda m: m[:1].expand(4)),
    "an empty part": _of((4,), lambda m: m[2:2], lambda m: m[2:2]),
}


def _mask(lib: Any, x: Any) -> Any:
    return (lib.tensor([True, False, True, True] * 4)[: x.shape[-1]]) if x.dim() else lib.tensor(True)


def _reversed(lib: Any, x: Any) -> Any:
    return lib.arange(x.shape[0]).flip(0)


def _named(lib: Any, x: Any) -> Any:
    index = _reversed(lib, x)
    return index if x.dim() == 1 else index.reshape(-1, 1).expand(tuple(x.shape)).clone()


def _flat(lib: Any, x: Any) -> Any:
    return lib.arange(x.numel()).reshape(tuple(x.shape)).flip(0)


Write = Callable[[Any, Any, Any], Any]

ELEMENTWISE = (
    "add_", "sub_", "mul_", "div_", "pow_", "atan2_", "hypot_", "remainder_", "copysign_", "xlogy_", "lt_", "copy_",
    "logical_and_", "clamp_", "clamp_min_", "ldexp_",
)  # fmt: skip
WRITES: dict[str, Write] = {name: (lambda n: lambda lib, x, o: getattr(x, n)(o))(name) for name in ELEMENTWISE} | {
    "lerp_": lambda lib, x, o: x.lerp_(o, 0.25),
    "lerp_ by a tensor": lambda lib, x, o: x.lerp_(lib.ones(()), o),
    "addcmul_": lambda lib, x, o: x.addcmul_(o, o, value=2.0),
    "addcdiv_": lambda lib, x, o: x.addcdiv_(lib.ones(()), o),
    "relu_": lambda lib, x, o: x.relu_(),
    "exp_": lambda lib, x, o: x.exp_(),
    "add_ of a number": lambda lib, x, o: x.add_(1),
    "fill_": lambda lib, x, o: x.fill_(2.0),
    "fill_ with a tensor": lambda lib, x, o: x.fill_(o.reshape(-1)[0]),
    "zero_": lambda lib, x, o: x.zero_(),
    "threshold_": lambda lib, x, o: lib.nn.functional.threshold_(x, 2.0, -1.0),
    "tril_": lambda lib, x, o: x.tril_(),
    "cumsum_": lambda lib, x, o: x.cumsum_(0),
    "masked_fill_": lambda lib, x, o: x.masked_fill_(_mask(lib, x), 0.5),
    "masked_fill_ with a tensor": lambda lib, x, o: x.masked_fill_(_mask(lib, x), o.reshape(-1)[-1]),
    "masked_scatter_": lambda lib, x, o: x.masked_scatter_(_mask(lib, x), o),
    "index_fill_": lambda lib, x, o: x.index_fill_(0, lib.tensor([0, 1]), 3.0),
    "index_fill_ with a tensor": lambda lib, x, o: x.index_fill_(0, lib.tensor([0, 1]), o.reshape(-1)[-1]),
    "index_add_": lambda lib, x, o: x.index_add_(0, _reversed(lib, o), o),
    "index_copy_": lambda lib, x, o: x.index_copy_(0, _reversed(lib, o), o),
    "index_put_": lambda lib, x, o: x.index_put_((_reversed(lib, o),), o),
    "index_put_ that adds": lambda lib, x, o: x.index_put_((_reversed(lib, o),), o, accumulate=True),
    "index by integers": lambda lib, x, o: x.__setitem__(_reversed(lib, x), o),
    "index by a mask": lambda lib, x, o: x.__setitem__(_mask(lib, x)[: x.shape[0]], o[0]),
    "index by a slice": lambda lib, x, o: x.__setitem__(slice(None), o),
    "scatter_": lambda lib, x, o: x.scatter_(0, _named(lib, o), o),
    "scatter_ of a number": lambda lib, x, o: x.scatter_(0, _named(lib, x), 2.0),
    "scatter_add_": lambda lib, x, o: x.scatter_add_(0, _named(lib, o), o),
    "scatter_reduce_": lambda lib, x, o: x.scatter_reduce_(0, _named(lib, o), o, "prod"),
    "put_": lambda lib, x, o: x.put_(_flat(lib, o), o),
    "put_ that adds": lambda lib, x, o: x.put_(_flat(lib, o), o, accumulate=True),
    "addmm_": lambda lib, x, o: x.addmm_(o[: x.shape[0]], lib.ones(o.shape[1], x.shape[1])),
    "addmv_": lambda lib, x, o: x.addmv_(lib.ones(4, 4), o),
    "addr_": lambda lib, x, o: x.addr_(o[:, 0], lib.ones(x.shape[1])),
    "baddbmm_": lambda lib, x, o: x[None].baddbmm_(o[None], lib.ones(1, o.shape[1], x.shape[1])),
}

REFUSED_BY_DESIGN = {
    ("addmv_", "an expanded tensor"): "adds up what it has written, so that the sum depends on the order",
    ("addmv_", "an expanded matrix"): "the same",
    ("addmv_", "the same expanded view"): "the same",
    ("addmv_", "the same expanded matrix"): "the same",
    ("addmv_", "two elements, expanded alike"): "the same",
    ("baddbmm_", "the same expanded matrix"): "the same",
    ("index_fill_", "an empty part"): "both refuse; PyTorch's class depends on how much memory lies behind the part",
}


def attempt(lib: Any, views: Views, write: Write, apart: bool = False) -> tuple[Any, list[str]]:
    """The memory after the write, or the class of what was raised, and the warnings. ``apart``: of a copied operand."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            memory, written, read = views(lib)
            write(lib, written, read.clone() if apart else read)
            result = memory.tolist()
            if lib is gradwire:
                settle()
        except Exception as error:
            result = built_in(error)
    return result, sorted({w.category.__name__ for w in caught})


def compare(views: Views, write: Write, said: str) -> bool:
    """Whether the write was made."""
    expected, warned = attempt(torch, views, write)
    actual, told = attempt(gradwire, views, write)
    assert told == warned, f"{said}: {warned} {told}"
    if not close(expected, actual):
        defined, _ = attempt(torch, views, write, apart=True)
        assert isinstance(expected, list), f"{said}: torch raises {expected}, gradwire gives {actual}"
        assert close(defined, actual), f"{said}: torch {expected}, with a copied operand {defined}, gradwire {actual}"
        _, written, read = views(torch)
        assert set(places(written)) & set(places(read)), f"{said}: torch {expected}, gradwire {actual}"
    return isinstance(expected, list)


def places(view: torch.Tensor) -> list[int]:
    """Where in memory the elements are."""
    extent = max(view.untyped_storage().nbytes() // view.element_size(), 1)
    return torch.arange(extent).as_strided(view.shape, view.stride(), view.storage_offset()).reshape(-1).tolist()


@pytest.mark.parametrize("how", WRITES)
def test_a_write_beside_its_operand(how: str) -> None:
    made = [
        compare(views, WRITES[how], f"{how}, {where}")
        for where, views in PLACES.items()
        if (how, where) not in REFUSED_BY_DESIGN
    ]
    assert any(made)


# Views drawn at random


def drawn(numbers: random.Random) -> tuple[Views, str]:
    """Two views of one shape somewhere in one memory, by one chain of cuts each."""
    shape = numbers.choice([(12,), (6, 6), (4, 6), (3, 4, 4)])
    chains = [_chain(numbers, len(shape)) for _ in range(2)]

    def both(memory: Any) -> tuple[Any, Any]:
        cut = []
        for chain in chains:
            view = memory
            for step in chain:
                view = step(view)
            cut.append(view)
        ndim = min(view.dim() for view in cut)
        cut = [view.select(0, 0) if view.dim() > ndim else view for view in cut]
        extents = [min(sizes) for sizes in zip(*[tuple(view.shape) for view in cut], strict=True)]
        for dim, extent in enumerate(extents):
            cut = [view.narrow(dim, 0, extent) for view in cut]
        return cut[0], cut[1]

    return Views(shape, both), str(shape)


def _chain(numbers: random.Random, ndim: int) -> list[Callable[[Any], Any]]:
    chain: list[Callable[[Any], Any]] = []
    for _ in range(numbers.randint(1, 3)):
        dim, start, step = numbers.randrange(ndim), numbers.randint(0, 2), numbers.randint(1, 2)
        chain.append(
            numbers.choice(
                [
                    lambda x, d=dim, s=start, n=step: x[(slice(None),) * d + (slice(s, None, n),)],
                    lambda x, d=dim: x.transpose(0, d),
                    lambda x, d=dim, s=start: x.narrow(d, 0, max(x.shape[d] - s, 1)),
                ]
            )
        )
    return chain


DRAWN = (
    "add_", "mul_", "copy_", "lerp_", "addcmul_", "masked_fill_", "index_add_", "index_copy_", "index_put_",
    "scatter_add_", "put_", "index by a slice",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_writes_beside_views_drawn_at_random(seed: int) -> None:
    numbers = random.Random(seed)
    made = 0
    for turn in range(60):
        views, shape = drawn(numbers)
        how = numbers.choice(DRAWN)
        made += compare(views, WRITES[how], f"seed {seed}, turn {turn}: {how} in {shape}")
    assert made > 20


# History and plans

RECORDED = ("add_", "mul_", "div_", "copy_", "lerp_", "addcmul_", "index_put_", "index by a slice")
APART = (
    "every other element", "columns", "halves of rows", "chunks", "a diagonal and a row", "a part of it by data",
    "the same view", "neighbours, part by part", "an expanded tensor",
)  # fmt: skip


@pytest.mark.parametrize("how", RECORDED)
@pytest.mark.parametrize("where", APART)
def test_gradients_of_a_write_beside_its_operand(how: str, where: str) -> None:
    def write_and_differentiate(lib: Any) -> Any:
        views = PLACES[where]
        leaf = _numbers(lib, *views.shape).detach().requires_grad_()
        memory, written, read = views(lib, leaf * 2)
        WRITES[how](lib, written, read)
        (memory * _numbers(lib, *views.shape)).sum().backward()
        return memory, leaf.grad

    same(write_and_differentiate)


@pytest.mark.parametrize("how", ["index_add_", "copy_", "add_", "index_put_", "masked_scatter_"])
def test_a_write_that_repeats_elsewhere_is_right_each_time(how: str) -> None:
    memory, expected = (_numbers(lib, 6, 12) for lib in (gradwire, torch))
    for i, j in [(0, 4), (0, 4), (0, 4), (1, 5), (2, 3), (3, 2), (4, 4), (5, 1), (8, 9), (0, 4), (1, 0)] * 2:
        WRITES[how](gradwire, memory[:, i : i + 2], memory[:, j : j + 2])
        gradwire.current_session().synchronize()
        WRITES[how](torch, expected[:, i : i + 2], expected[:, j : j + 2].clone())
        memory, expected = memory / 2 + 1, expected / 2 + 1
        assert close(expected.tolist(), memory.tolist()), (how, i, j)


# out=

INTO: dict[str, Write] = {
    name: (lambda n: lambda lib, x, o: _named_in(lib, n)(*[o] * (2 if n in BINARY else 1), out=x))(name)
    for name in (
        "add", "mul", "atan2", "maximum", "fmin", "logaddexp", "abs", "exp", "neg", "sigmoid", "sqrt", "tril",
        "special.i0e", "special.erfcx", "special.zeta", "special.ndtr", "angle",
    )
} | {
    "add of a number": lambda lib, x, o: lib.add(o, 1, out=x),
    "lerp": lambda lib, x, o: lib.lerp(o, o, 0.5, out=x),
    "cumsum": lambda lib, x, o: lib.cumsum(o, 0, out=x),
    "msort": lambda lib, x, o: lib.msort(o, out=x),
    "softmax": lambda lib, x, o: lib.softmax(o, 0, out=x),
    "mm": lambda lib, x, o: lib.mm(o, o, out=x),
    "addmm": lambda lib, x, o: lib.addmm(o, lib.ones(o.shape[0], 4), lib.ones(4, o.shape[1]), out=x),
    "index_select": lambda lib, x, o: lib.index_select(o, 0, _reversed(lib, o), out=x),
    "index_add": lambda lib, x, o: lib.index_add(lib.zeros(tuple(o.shape)), 0, _reversed(lib, o), o, out=x),
    "where": lambda lib, x, o: lib.where(lib.tensor(True), o, o, out=x),
}  # fmt: skip
BINARY = ("add", "mul", "atan2", "maximum", "fmin", "logaddexp", "special.zeta")


def _named_in(lib: Any, name: str) -> Any:
    return reduce(getattr, name.split("."), lib)


@pytest.mark.parametrize("how", INTO)
def test_a_result_written_beside_its_operand(how: str) -> None:
    made = 0
    for where, views in PLACES.items():
        written, read = views.both(_numbers(torch, *views.shape))
        if written.shape != read.shape or "data" in where:
            continue  # out would be resized; only the server knows that data shares memory
        if how in ("tril", "mm", "addmm") and (read.dim() != 2 or (how == "mm" and read.shape[0] != read.shape[1])):
            continue
        if how in ("tril", "softmax", "special.ndtr") and "expanded" in where:
            continue  # torch writes the same places several times
        if how == "index_select" and where == "parts of rows that meet":
            continue  # torch looks at single columns there, and refuses
        made += compare(views, INTO[how], f"{how}, {where}")
    assert made
