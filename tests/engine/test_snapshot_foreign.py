"""Exchanged snapshots: their content, and that nothing in a foreign one is trusted."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import Image, detached, restore_foreign
from gradwire_protocol.errors import LimitExceeded, MalformedFrame
from tests.engine.recordings import travelled
from tests.engine.test_snapshot import apply, value

SMALL = Limits(max_tensor_bytes=1 << 16, max_session_bytes=1 << 17, max_tensors=50)


def some_session() -> Session:
    """A leaf with a gradient, a view of it, a name, a failed result, an undefined one, and a moved generator."""
    session = Session(SMALL, seed=9, default_dtype="float64")
    ops = [
        ["ones", [[3, 2], "float32"]], ["requires_grad_", [0, True]], ["mul", [0, 0]], ["sum", [1]],
        ["backward", [[2], [None], None, True]], ["set_name", [0, "weights"]], ["detach", [0]],
        ["select", [3, 1, "int"]], ["rand", [[5]]], ["ones", [[2], "int64"]], ["ones", [[2], "bool"]],
    ]  # fmt: skip
    apply(session, ops, scalars=[1])
    apply(session, [["cholesky", [-1]]], external=[(1 << 32) + 1])
    return session


def exported() -> Image:
    return travelled(detached(some_session()))


def test_what_was_exported_is_there_again_without_its_graph():
    session = some_session()
    made = restore_foreign(travelled(detached(session)), SMALL)
    ids = {i: t for i, t in session.ids.items() if isinstance(t, Tensor)}
    assert list(made.ids) == list(ids)
    for tensor_id, tensor in ids.items():
        found = made.ids[tensor_id]
        assert found.array.tobytes() == tensor.array.tobytes()
        assert found.meta is tensor.meta
        assert found.is_leaf
    leaf = made.engine.names["weights"]
    assert leaf.requires_grad
    assert leaf.grad.array.tolist() == [[2, 2]] * 3
    assert made.engine.generator.get_state() == session.engine.generator.get_state()
    assert made.engine.default_dtype.name == "float64"
    assert made.describe()["graph_nodes"] == 0


def test_views_of_one_memory_still_share_it():
    made = restore_foreign(exported(), SMALL)
    leaf = made.engine.names["weights"]
    shared = [t for t in made.ids.values() if t.storage is leaf.storage]
    assert len(shared) == 3
    apply(made, [["set_mode", [0]], ["fill_", [-1, "float"]]], external=[next(iter(made.ids))], scalars=[7.0])
    assert all((t.array == 7).all() for t in shared)


def test_ids_of_newcomers_do_not_meet_those_of_the_image():
    made = restore_foreign(exported(), SMALL)
    reply = apply(made, [["ones", [[1]]]])
    assert reply.first == max(made.ids) and len(made.ids) == len(set(made.ids))
    assert made.join(0, "new", 0)[0] == 2


def test_an_image_over_the_limits_is_refused_before_its_arrays_are_copied():
    image = exported()
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_TENSORS"):
        restore_foreign(image, Limits(max_tensors=3))
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_TENSOR_BYTES"):
        restore_foreign(image, Limits(max_tensor_bytes=8))
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_SESSION_BYTES"):
        restore_foreign(image, Limits(max_session_bytes=64))


TENSOR = {"memory": 0, "shape": 1, "stride": 2, "offset": 3, "dtype": 4, "device": 5, "requires_grad": 6, "grad": 7}


@pytest.mark.parametrize(
    ("field", "wrong", "said"),
    [
        ("memory", 99, "memory 99"), ("memory", -1, "memory -1"), ("shape", [4, 2], "elements 0 to 8"),
        ("shape", [3], "1 extents and 2 strides"), ("shape", [-1, 2], "negative"), ("stride", [2, -1], "negative"),
        ("stride", [4, 1], "elements 0 to 10"), ("offset", 1, "elements 1 to 7"), ("offset", -1, "negative"),
        ("shape", [2**40, 2**40], "64 bits"), ("dtype", "float64", "float64 elements"), ("dtype", "object", "object"),
        ("dtype", "int32", "cannot require"), ("dtype", "bool", "other than 0 and 1|cannot require"),
        ("device", "cuda:77", "another|its memory is not|cuda:77"), ("grad", 400, "gradient"),
        ("offset", 2**200, "too large"), ("shape", [1] * 99, "extents"), ("shape", "32", "invalid image"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_named(field, wrong, said):
    image = exported()
    image.facts["tensors"][0][TENSOR[field]] = wrong
    with pytest.raises(MalformedFrame, match=said):
        restore_foreign(image, SMALL)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f["ids"].append([0, 0]), "duplicate tensor id"),
        (lambda f: f["ids"].append(f["ids"][0]), "duplicate"),
        (lambda f: f["ids"].append([2**53, 0]), "duplicate tensor id"),
        (lambda f: f["ids"].append([7, 1000]), "refers to tensor 1000"),
        (lambda f: f["ids"].append([2**53 - 1, 0]), "clients"), (lambda f: f["names"].append(["", 0]), "invalid name"),
        (lambda f: f["names"].append(["n" * 201, 0]), "invalid name"),
        (lambda f: f["names"].append(["n", -1]), "nonexistent"),
        (lambda f: f.update(generator=[2**64, 0]), "random state"), (lambda f: f.update(default_dtype="int8"), "int8"),
        (lambda f: f.update(format=2), "format 2"), (lambda f: f.update(device="tpu"), "tpu"),
        (lambda f: f.update(nodes=[]), "nodes"), (lambda f: f.pop("tensors"), "tensors"),
        (lambda f: f.update(memories=[10**30]), "no array m0"), (lambda f: f.update(device="cuda:²"), "machine"),
    ],
)  # fmt: skip
def test_whatever_else_does_not_fit_is_named(change, said):
    image = exported()
    change(image.facts)
    with pytest.raises(MalformedFrame, match=said):
        restore_foreign(image, SMALL)


def test_an_array_of_another_form_is_refused():
    for wrong in (np.zeros(24, np.int8), np.zeros((24, 1), np.uint8), np.zeros(23, np.uint8), None):
        image = exported()
        image.arrays["m0"] = wrong
        with pytest.raises(MalformedFrame, match="m0"):
            restore_foreign(image, SMALL)


def test_the_tensors_go_to_the_device_that_is_asked_for():
    image = exported()
    for row in image.facts["tensors"]:
        row[TENSOR["device"]] = "cuda:5"
    image.facts["device"] = "cuda:5"
    assert {t.device for t in restore_foreign(image, SMALL, device="cpu").ids.values()} == {"cpu"}


def _inside(session: Session) -> None:
    """Every tensor shows memory of its storage only."""
    for tensor in session.ids.values():
        assert isinstance(tensor, Tensor)
        if tensor.numel:
            low, high = np.lib.array_utils.byte_bounds(tensor.array)
            start, end = np.lib.array_utils.byte_bounds(tensor.storage.array)
            assert start <= low and high <= end
            assert tensor.numel > 10**6 or value(tensor) is not None


def _try(image: Image) -> bool:
    try:
        _inside(restore_foreign(image, SMALL))
    except (MalformedFrame, LimitExceeded):
        return False
    return True


ODD: list[Any] = [
    0, 1, -1, 2, 3, 7, 24, 2**31, 2**32, 2**53, 2**63, 2**64, 2**100, -(2**63), 0.5, float("nan"), "", "cpu", "float32",
    "bool", "complex128", "cuda:0", "m0", "²", None, True, [], [0], [3, 2], [2**62, 2**62, 0], [[]], {}, {"format": 1},
]  # fmt: skip


def _places(value: Any, found: list[tuple[Any, Any]]) -> None:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        found.append((value, key))
        _places(inner, found)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_facts_are_refused_or_make_a_sound_session(seed):
    draw, image, survived = random.Random(seed), exported(), 0
    for _ in range(150):
        facts = copy.deepcopy(image.facts)
        for _ in range(draw.choice((1, 1, 2, 4))):
            places: list[tuple[Any, Any]] = []
            _places(facts, places)
            if not places:
                break
            holder, key = draw.choice(places)
            kind = draw.randrange(4)
            if kind == 0 and isinstance(holder, list):
                del holder[key]
            elif kind == 1 and isinstance(holder[key], int):
                holder[key] += draw.choice((-1, 1, 8))
            elif kind == 2 and isinstance(holder, list):
                holder.insert(key, copy.deepcopy(draw.choice(places)[0]))
            else:
                holder[key] = copy.deepcopy(draw.choice(ODD))
        survived += _try(Image(facts, image.arrays))
    assert 0 < survived < 150


NUMBER = st.one_of(st.integers(-3, 30), st.integers(), st.sampled_from([2**31, 2**53, 2**62, 2**63, 2**64]))
ROW = st.tuples(
    st.integers(-1, 2), st.lists(NUMBER, max_size=3), st.lists(NUMBER, max_size=3), NUMBER,
    st.sampled_from(["float32", "bool", "complex128", "uint8", "float99"]), st.sampled_from(["cpu", "cuda:0", "x"]),
    st.booleans(), st.one_of(st.none(), st.integers(-1, 3)),
)  # fmt: skip


@settings(max_examples=300)
@given(rows=st.lists(ROW, min_size=1, max_size=4), ids=st.lists(st.tuples(NUMBER, st.integers(-1, 4)), max_size=4))
def test_any_rows_of_tensors_are_refused_or_make_a_sound_session(rows, ids):
    facts = {
        "format": 1, "device": "cpu", "default_dtype": "float32", "generator": [0, 0], "memories": [64], "names": [],
        "tensors": [list(row) for row in rows], "ids": [list(pair) for pair in ids],
    }  # fmt: skip
    _try(Image(facts, {"m0": np.zeros(64, np.uint8)}))


@settings(max_examples=200)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
        max_leaves=12,
    )
)
def test_anything_at_all_is_refused(facts):
    with pytest.raises(MalformedFrame):
        restore_foreign(Image(facts, {}), SMALL)
