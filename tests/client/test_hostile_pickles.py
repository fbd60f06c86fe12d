"""Files that were made to do harm: nothing of them runs, and what they describe wrongly is an error."""

from __future__ import annotations

import io
import pickle
import random
import zipfile

import pytest
import torch

import gradwire as gw
from gradwire import nn
from gradwire._core.pickles import archive
from gradwire._core.pickles.allowed import allowed
from gradwire._core.pickles.machine import Machine, RefusedPickle

pytestmark = pytest.mark.usefixtures("session")

LINEAR = b"ctorch.nn.modules.linear\nLinear\n"


def loaded(pickled: bytes):
    file = io.BytesIO()
    archive.write(file, pickled, {"0": b"\0\0\0\0"})
    file.seek(0)
    return gw.load(file, weights_only=False)


@pytest.mark.parametrize(
    "pickled",
    [
        LINEAR + b"(K\x02K\x02tR.",  # calls the class
        LINEAR + b"(K\x02tR.",
        LINEAR + b"K\x02\x85\x81.",  # makes an object with arguments
        LINEAR + b")\x81]b.",  # a list for attributes
        LINEAR + b")\x81}K\x01K\x02sb.",
        LINEAR + b")\x81(K\x01K\x02tb.",
        LINEAR + b")\x81}b}b.",  # a state twice
        b"ctorch.nn.functional\nrelu\n)R.",  # calls a function of the library's
        b"ctorch.nn.functional\nrelu\n)\x81.",
        b"ctorch.nn.functional\nrelu\n}X\x01\x00\x00\x00aNsb.",
        b"ctorch._utils\n_rebuild_generator\n(K\x01K\x02K\x03tR.",
        b"ctorch._utils\n_rebuild_generator\n(X\x03\x00\x00\x00cpuK\x02K\x03tR}b.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nSize\nctorch\nTensor\n)NtR.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n" + LINEAR + b")NtR.",
        b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n(J\xff\xff\xff\xffK\x01t(K\x01K\x01t\x89tR.",
        b"ctorch.nn.modules.linear\nLinear.__init__\n.",
        b"\x80\x04\x8c\x11torch.nn.modules.linear\x8c\x08__init__\x93.",
        b"ctorch.serialization\nadd_safe_globals\n.",
        b"ctorch.nn.functional\n__builtins__\n.",
        b"ctorch.nn.modules.linear\nos\n.",
        b"N)\x81.",
        LINEAR + b"})\x92.",
    ],
)  # fmt: skip
def test_no_instruction_does_more_than_make_objects_of_layers(pickled):
    with pytest.raises((RefusedPickle, TypeError)):
        loaded(pickled)


def test_attributes_of_tensors_that_are_their_own_are_refused():
    value = torch.nn.Parameter(torch.ones(1))
    value._session = "mine"
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    with pytest.raises(RefusedPickle, match="_session"):
        gw.load(file, weights_only=False)


def test_objects_that_lie_deep_inside_each_other_are_refused():
    nested = LINEAR + b")\x81}X\x01\x00\x00\x00a"
    with pytest.raises(RefusedPickle, match="deep"):
        loaded(nested * 5000 + b"N" + b"sb" * 5000 + b".")


def test_an_object_may_hold_itself():
    module = nn.Linear(1, 1)
    object.__setattr__(module, "me", [module])
    file = io.BytesIO()
    gw.save(module, file)
    file.seek(0)
    found = gw.load(file)
    assert found.me[0] is found


def test_a_pickle_that_doubles_takes_no_memory():
    doubling = b"]q\x00" + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(60))
    found = loaded(doubling + b".")
    for _ in range(60):
        found = found[0]
    assert found == []


def test_a_storage_that_claims_to_be_larger_is_refused():
    pickled = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
        b"X\x03\x00\x00\x00cpuJ\xff\xff\xff\x7ftQK\x00J\xff\xff\xff\x7f\x85K\x01\x85\x89NtR."
    )
    with pytest.raises(RefusedPickle, match="beyond the 1 elements"):
        loaded(pickled)
    assert loaded(pickled.replace(b"\x89NtR", b"\x89NtR").replace(b"J\xff\xff\xff\x7f\x85", b"K\x01\x85")).tolist() == [
        0.0
    ]


def test_names_that_a_program_adds_take_no_others_place():
    def linear() -> None:
        raise AssertionError("called")

    with gw.serialization.safe_globals([(linear, "torch.nn.modules.linear.Linear"), (linear, "builtins.set")]):
        names = allowed()
        assert (
            names["torch.nn.modules.linear Linear"].value is nn.Linear and names["builtins set"].name == "builtins set"
        )
        assert Machine(names, lambda identity: None).read(io.BytesIO(b"cbuiltins\nset\n]\x85R.")) == set()


@pytest.mark.parametrize("wrong", [3, "name", ("name", "x"), (len, 3)])
def test_only_classes_and_functions_are_added(wrong):
    with pytest.raises(TypeError):
        gw.serialization.add_safe_globals([wrong])


@pytest.mark.parametrize("seed", range(40))
def test_changed_files_of_modules_give_a_value_or_an_error_and_nothing_else(seed):
    drawn = random.Random(seed)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.LSTM(1, 1))
    file = io.BytesIO()
    torch.save({"model": model, "tied": [model[0].weight]}, file)
    with zipfile.ZipFile(file) as original:
        pickled = bytearray(original.read("archive/data.pkl"))
        storages = {name.rpartition("/")[2]: original.read(name) for name in original.namelist() if "/data/" in name}
    for _ in range(drawn.randrange(1, 4)):
        pickled[drawn.randrange(len(pickled))] = drawn.choice([*b"R\x81b.tsuq\x85)}]h0(", drawn.randrange(256)])
    changed = io.BytesIO()
    archive.write(changed, bytes(pickled), storages)
    changed.seek(0)
    try:
        gw.load(changed, weights_only=False)
    except (ValueError, RuntimeError, NotImplementedError, TypeError, MemoryError, pickle.UnpicklingError):
        pass
