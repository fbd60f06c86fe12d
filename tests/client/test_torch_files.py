"""Files written by ``torch.save``: what is read, what is refused, and that nothing in them is executed."""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest
import torch
from tests.side_by_side import described

import gradwire
from gradwire import nn, optim
from gradwire._core.pickles.allowed import NAMES
from gradwire._core.pickles.machine import Machine, RefusedPickle
from gradwire_protocol import dtypes

pytestmark = pytest.mark.usefixtures("session")

FORMS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
DTYPES = [dtype.name for dtype in dtypes.ALL]


def written(value: object, zipped: bool = True) -> io.BytesIO:
    """A file that PyTorch wrote."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    return file


@FORMS
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype_arrive_bit_for_bit(dtype, zipped):
    values = torch.randn(3, 4).mul(50).to(getattr(torch, dtype))
    found = gradwire.load(written(values, zipped))
    assert found.dtype is getattr(gradwire, dtype)
    assert described(found) == described(values)


def test_tensors_keep_their_strides():
    values = {
        "transposed": torch.arange(6.0).reshape(2, 3).t(), "stepped": torch.arange(8)[1::2],
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(torch.randn(3, 2).t()), "expanded": torch.ones(3, 1).expand(3, 4),
    }  # fmt: skip
    assert described(gradwire.load(written(values))) == described(values)


@FORMS
def test_a_state_dict_arrives_in_a_model(zipped):
    theirs = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Linear(4, 2))
    theirs(torch.randn(2, 2, 6, 6))
    ours = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Linear(4, 2))
    state = gradwire.load(written(theirs.state_dict(), zipped), weights_only=True)
    assert isinstance(state, OrderedDict) and state._metadata.keys() == theirs.state_dict()._metadata.keys()
    ours.load_state_dict(state)
    for (name, expected), (other, actual) in zip(theirs.state_dict().items(), ours.state_dict().items(), strict=True):
        assert name == other
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_a_checkpoint_goes_on_where_pytorch_stopped():
    start = torch.randn(3, 2)
    theirs = torch.nn.Linear(2, 3)
    theirs.weight.data.copy_(start)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        theirs(torch.ones(1, 2)).square().sum().backward()
        optimizer.step()
    file = written({"model": theirs.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.5})
    checkpoint = gradwire.load(file)
    assert checkpoint["epoch"] == 3 and checkpoint["loss"] == 0.5
    ours = nn.Linear(2, 3)
    ours.load_state_dict(checkpoint["model"])
    resumed = optim.Adam(ours.parameters(), lr=9.0)
    resumed.load_state_dict(checkpoint["optimizer"])
    for model, step, ones in ((theirs, optimizer, torch.ones), (ours, resumed, gradwire.ones)):
        step.zero_grad()
        model(ones(1, 2)).square().sum().backward()
        step.step()
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-5)


@FORMS
def test_views_arrive_with_their_shapes_and_what_shared_memory_shares_it(zipped):
    base = torch.arange(12.0)
    tied = base.view(3, 4)
    found = gradwire.load(written({"a": tied, "b": tied.t(), "c": base[2:7:2], "alone": torch.eye(4)[1:, 2]}, zipped))
    assert found["b"].tolist() == tied.t().tolist() and found["b"].stride() == tied.t().stride()
    assert found["c"].tolist() == [2.0, 4.0, 6.0] and found["alone"].tolist() == [0.0, 1.0, 0.0]
    found["a"].mul_(10)
    assert found["c"].tolist() == [20.0, 40.0, 60.0]
    assert not found["a"]._is_view()


def test_the_same_tensor_twice_is_one_object():
    value = torch.ones(2)
    first, second = gradwire.load(written([value, value]))
    assert first is second


def test_parameters_and_leaves_keep_what_they_are():
    parameter, leaf = gradwire.load(
        written((torch.nn.Parameter(torch.ones(2)), torch.ones(3, requires_grad=True))), weights_only=False
    )
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad
    assert leaf.requires_grad and not isinstance(leaf, nn.Parameter)


@FORMS
def test_containers_numbers_and_strings_arrive(zipped):
    value = {
        "list": [1, 2.5, None, True, "text", b"bytes", 3 + 4j], "tuple": (1, (2, 3)), "set": {1, 2}, 7: -(2**70),
        "dtype": torch.float16, "size": torch.Size([2, 3]), "device": torch.device("cpu"), "empty": torch.empty(0, 3),
        "ordered": OrderedDict(a=1), "counter": Counter("hello"), "default": defaultdict(list, x=[1]),
        "scalar": torch.tensor(3), "number": np.float64(1.25), "array": np.arange(6.0).reshape(2, 3).T,
        "bytearray": bytearray(b"ab"), (1, "a"): "tuple key",
    }  # fmt: skip
    found = gradwire.load(written(value, zipped), weights_only=False)
    assert list(found) == list(value)
    for key in ("list", "tuple", "set", 7, "ordered", "counter", "default", "number", "bytearray", (1, "a")):
        assert found[key] == value[key] and type(found[key]) in (type(value[key]), float), key
    assert found["dtype"] is gradwire.float16 and found["size"] == gradwire.Size([2, 3])
    assert found["device"] == gradwire.device("cpu") and found["empty"].shape == (0, 3)
    assert found["scalar"].item() == 3 and np.array_equal(found["array"], value["array"])


def test_map_location_takes_every_form(tmp_path):
    path = tmp_path / "file.pt"
    torch.save({"x": torch.ones(2)}, path)
    for where in (None, "cpu", gradwire.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage,
                  lambda storage, place: None, lambda storage, place: storage.cpu()):  # fmt: skip
        assert gradwire.load(path, map_location=where)["x"].device.type == "cpu"
    with pytest.raises(TypeError, match="map_location"):
        gradwire.load(path, map_location=3.5)


def test_a_tensor_of_a_gpu_needs_one_or_a_map():
    with zipfile.ZipFile(written(torch.ones(2))) as original:
        pickled = original.read("archive/data.pkl").replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
        numbers = original.read("archive/data/0")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as changed:
        changed.writestr("archive/data.pkl", pickled)
        changed.writestr("archive/data/0", numbers)
    file.seek(0)
    with pytest.raises(RuntimeError, match="no device cuda:0"):
        gradwire.load(file)
    for where in ("cpu", {"cuda:0": "cpu"}, lambda storage, place: storage):
        file.seek(0)
        assert gradwire.load(file, map_location=where).tolist() == [1.0, 1.0]


# What is refused

ran: list[str] = []


def _run(what: str) -> str:
    ran.append(what)
    return what


class Bomb:
    """Pickled so that unpickling would call a function of this module."""

    def __reduce__(self):
        return _run, ("it ran",)


@FORMS
@pytest.mark.parametrize("trusted", [True, False])
def test_a_file_that_names_a_function_is_refused_by_that_name_and_the_function_is_not_called(zipped, trusted):
    with pytest.raises(RefusedPickle, match=r"test_torch_files\._run") as caught:
        gradwire.load(written({"x": torch.ones(1), "bomb": Bomb()}, zipped), weights_only=trusted)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, pickle.UnpicklingError)
    assert ran == []


@pytest.mark.parametrize(
    "names",
    ["os system", "builtins eval", "builtins exec", "builtins getattr", "builtins __import__", "operator attrgetter",
     "torch load", "torch._utils __builtins__", "subprocess Popen", "collections namedtuple"],
)  # fmt: skip
def test_no_way_leads_out_of_the_table(names):
    module, name = names.split()
    for text in (f"c{module}\n{name}\n(S'1'\ntR.", f"(S'1'\ni{module}\n{name}\n."):
        with pytest.raises(RefusedPickle):
            Machine(NAMES, lambda identity: None).read(io.BytesIO(text.encode()))


def test_values_are_not_called_and_get_no_state():
    for text in (b"]N\x85R.", b"\x8c\x01ac\x85R.", b"]}\x8c\x01aNsb.", b"ccollections\nOrderedDict\n)R}\x8c\x01aNsb."):
        with pytest.raises(RefusedPickle):
            Machine(NAMES, lambda identity: None).read(io.BytesIO(text))


def test_keys_that_take_forever_to_hash_are_refused():
    nested = b"K\x01\x85" + b"2\x86" * 60
    with pytest.raises(RefusedPickle, match="key"):
        Machine(NAMES, lambda identity: None).read(io.BytesIO(b"}" + nested + b"Ns."))


def test_damaged_files_are_refused():
    whole = written({"x": torch.ones(100)}).getvalue()
    legacy = written({"x": torch.ones(100)}, False).getvalue()
    for data in (whole[:200], legacy[:-30], legacy[:60], b"PK\x03\x04" + bytes(50), b"\x80\x02K\x01."):
        with pytest.raises(ValueError):
            gradwire.load(io.BytesIO(data))


@pytest.mark.parametrize("at", range(0, 400, 13))
def test_a_changed_byte_gives_a_value_or_an_error_and_nothing_else(at):
    data = bytearray(written({"x": torch.ones(2), "n": [1, 2.5]}, False).getvalue())
    data[at % len(data)] ^= 0x5A
    try:
        gradwire.load(io.BytesIO(bytes(data)))
    except (ValueError, RuntimeError, NotImplementedError, MemoryError):
        pass


def test_a_tensor_that_reaches_beyond_its_storage_is_refused():
    with zipfile.ZipFile(written(torch.ones(2))) as original:
        pickled, numbers = original.read("archive/data.pkl"), original.read("archive/data/0")
    assert b"K\x02\x85" in pickled, pickletools.dis(pickled)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as changed:
        changed.writestr("archive/data.pkl", pickled.replace(b"K\x02\x85", b"K\x09\x85"))
        changed.writestr("archive/data/0", numbers)
    file.seek(0)
    with pytest.raises(RefusedPickle, match="beyond the 2 elements"):
        gradwire.load(file)


def test_a_scripted_module_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02N.")
        archive.writestr("a/constants.pkl", b"\x80\x02N.")
    file.seek(0)
    with pytest.raises(RefusedPickle, match="TorchScript"):
        gradwire.load(file)


def test_loading_many_tensors_costs_no_round_trip(round_trips):
    file = written({str(i): torch.randn(3, 3) for i in range(50)})
    round_trips()
    found = gradwire.load(file)
    assert round_trips() == 0
    assert len(found) == 50


def test_what_gradwire_saved_is_still_read_whatever_pytorchs_arguments():
    file = io.BytesIO()
    gradwire.save({"x": gradwire.ones(2)}, file, pickle_protocol=4)
    file.seek(0)
    assert gradwire.load(file, map_location=lambda storage, place: storage, weights_only=True)["x"].tolist() == [1, 1]


def test_an_optimizers_counts_are_read_in_one_round_trip(round_trips):
    theirs = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(5)])
    optimizer = torch.optim.Adam(theirs.parameters())
    theirs(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    file = written(optimizer.state_dict())
    ours = optim.Adam(nn.Sequential(*[nn.Linear(2, 2) for _ in range(5)]).parameters())
    round_trips()
    ours.load_state_dict(gradwire.load(file))
    assert round_trips() == 1
    assert [kept["step"] for kept in ours.state.values()] == [1] * 10
