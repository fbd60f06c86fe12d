"""``save`` writes PyTorch's format or safetensors, and ``load`` restores what was saved."""

from __future__ import annotations

import io
import json
import math
import os
from collections import OrderedDict

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

import gradwire as gw

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


FORMS = ["PyTorch's", "safetensors"]


@pytest.fixture(params=FORMS)
def through_a_file(request, tmp_path):
    """What comes back of an object that was saved in either format."""

    def through(obj, **options):
        if request.param == "safetensors":
            gw.save(obj, tmp_path / "file.safetensors")
            return gw.load(tmp_path / "file.safetensors", **options)
        buffer = io.BytesIO()
        gw.save(obj, buffer)
        buffer.seek(0)
        return gw.load(buffer, **options)

    return through


@pytest.fixture
def net():
    return gw.nn.Sequential(gw.nn.Linear(3, 4), gw.nn.BatchNorm1d(4), gw.nn.Linear(4, 2, bias=False))


def test_a_module_is_restored_from_a_path(tmp_path, net):
    path = tmp_path / "net.safetensors"
    gw.save(net.state_dict(), path)
    other = gw.nn.Sequential(gw.nn.Linear(3, 4), gw.nn.BatchNorm1d(4), gw.nn.Linear(4, 2, bias=False))
    state = gw.load(str(path))
    assert list(state) == list(net.state_dict())
    other.load_state_dict(state)
    for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("library", [safetensors.numpy, safetensors.torch])
def test_the_safetensors_library_reads_a_saved_module(tmp_path, net, library):
    path = tmp_path / "net.safetensors"
    gw.save(net.state_dict(), path)
    found = library.load_file(path)
    assert set(found) == set(net.state_dict())
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(np.asarray(found[name]), tensor.numpy())


def test_a_torch_module_loads_what_gradwire_saved_and_the_other_way_round(tmp_path, net):
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2, bias=False))
    gw.save(net.state_dict(), tmp_path / "ours.safetensors")
    theirs.load_state_dict(safetensors.torch.load_file(tmp_path / "ours.safetensors"))
    np.testing.assert_array_equal(theirs[0].weight.detach().numpy(), net[0].weight.detach().numpy())
    safetensors.torch.save_file({k: v * 2 for k, v in theirs.state_dict().items()}, tmp_path / "theirs.safetensors")
    net.load_state_dict(gw.load(tmp_path / "theirs.safetensors"))
    np.testing.assert_array_equal(theirs[2].weight.detach().numpy() * 2, net[2].weight.detach().numpy())


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_survives(tmp_path, name, through_a_file):
    tensor = gw.tensor([[0, 1, 0], [1, 1, 0]]).to(getattr(gw, name))
    for found in (through_a_file({"x": tensor})["x"], through_a_file(tensor)):
        assert found.dtype is tensor.dtype and found.tolist() == tensor.tolist()
    gw.save({"x": tensor}, tmp_path / "x.safetensors")
    assert safetensors.torch.load_file(tmp_path / "x.safetensors")["x"].dtype is getattr(torch, name)
    assert gw.load(tmp_path / "x.safetensors")["x"].dtype is tensor.dtype


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_tensors_survive(tmp_path, name, through_a_file):
    tensor = gw.tensor([[1 + 2j, -3j]], dtype=getattr(gw, name))
    gw.save(tensor, tmp_path / "x.safetensors")
    for found in (through_a_file(tensor), gw.load(tmp_path / "x.safetensors")):
        assert found.dtype is tensor.dtype and found.tolist() == tensor.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)])
def test_empty_and_0_dim_tensors_survive(shape, through_a_file):
    found = through_a_file({"x": gw.ones(shape)})["x"]
    assert tuple(found.shape) == shape and found.dtype is gw.float32


def test_a_view_is_saved_as_what_it_shows(through_a_file):
    x = gw.arange(12).reshape(3, 4)
    assert through_a_file(x.T[1:, ::2]).tolist() == x.T[1:, ::2].tolist()


def test_nested_objects_come_back_as_they_were(through_a_file):
    saved = {
        "epoch": 3,
        "loss": 0.25,
        "bad": [math.inf, -math.inf],
        "name": "net",
        "done": False,
        "nothing": None,
        "shape": gw.ones(2, 3).shape,
        "dtype": gw.float16,
        "device": gw.device("cpu"),
        "z": 1 + 2j,
        "betas": (0.9, 0.999),
        "$odd": [],
        "tensors": [gw.ones(1), (gw.zeros(2), "x")],
        "by number": {0: {"buf": gw.ones(2)}, (1, 2): 5},
        "ordered": OrderedDict(b=1, a=gw.ones(1)),
    }
    found = through_a_file(saved)
    plain = [k for k in saved if k not in ("tensors", "by number", "ordered")]
    assert list(found) == list(saved)
    assert {k: found[k] for k in plain} == {k: saved[k] for k in plain}
    assert [type(found[k]) for k in plain] == [type(saved[k]) for k in plain]
    assert found["tensors"][1][0].tolist() == [0.0, 0.0] and isinstance(found["tensors"][1], tuple)
    assert found["by number"][0]["buf"].tolist() == [1.0, 1.0] and found["by number"][1, 2] == 5
    assert list(found["ordered"]) == ["b", "a"] and isinstance(found["ordered"], OrderedDict)


def test_nan_survives(through_a_file):
    assert math.isnan(through_a_file({"x": math.nan})["x"])


def test_numpy_values_survive(through_a_file):
    found = through_a_file({"a": np.arange(3.0), "b": np.float32(1.5), "c": np.int64(2)})
    assert isinstance(found["a"], np.ndarray) and found["a"].tolist() == [0, 1, 2]
    assert found["b"] == 1.5 and found["c"] == 2


def test_a_parameter_stays_one(through_a_file):
    found = through_a_file({"p": gw.nn.Parameter(gw.ones(2)), "q": gw.nn.Parameter(gw.ones(2), requires_grad=False)})
    assert isinstance(found["p"], gw.nn.Parameter) and found["p"].requires_grad
    assert isinstance(found["q"], gw.nn.Parameter) and not found["q"].requires_grad


def test_tensors_with_equal_paths_are_kept_apart(through_a_file):
    found = through_a_file({"a": {"b": gw.ones(1)}, "a.b": gw.zeros(1)})
    assert found["a"]["b"].tolist() == [1.0] and found["a.b"].tolist() == [0.0]


def test_training_goes_on_from_a_checkpoint(tmp_path):
    def run(net, optimizer, steps):
        for step in steps:
            net(gw.full((2, 3), float(step))).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    gw.manual_seed(1)
    net = gw.nn.Linear(3, 2)
    optimizer = gw.optim.Adam(net.parameters(), lr=0.1, amsgrad=True)
    run(net, optimizer, range(3))
    gw.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, tmp_path / "checkpoint")
    run(net, optimizer, range(3, 6))

    other = gw.nn.Linear(3, 2)
    resumed = gw.optim.Adam(other.parameters(), lr=9.0)
    checkpoint = gw.load(tmp_path / "checkpoint")
    other.load_state_dict(checkpoint["net"])
    resumed.load_state_dict(checkpoint["optimizer"])
    run(other, resumed, range(checkpoint["step"], 6))
    assert other.weight.tolist() == net.weight.tolist() and other.bias.tolist() == net.bias.tolist()


def test_saving_costs_one_round_trip(round_trips, net):
    gw.save(net.state_dict(), io.BytesIO())
    assert round_trips() == 1


def test_a_foreign_file_loads_as_a_dictionary(tmp_path):
    safetensors.numpy.save_file({"w": np.ones((2, 2), ml_dtypes.bfloat16), "n": np.arange(2)}, tmp_path / "f")
    for source in (tmp_path / "f", io.BytesIO((tmp_path / "f").read_bytes())):
        found = gw.load(source)
        assert set(found) == {"w", "n"} and found["w"].dtype is gw.bfloat16 and found["n"].tolist() == [0, 1]


def test_a_foreign_dtype_is_refused(tmp_path):
    header = b'{"w":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}}'
    (tmp_path / "f").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    for source in (tmp_path / "f", io.BytesIO((tmp_path / "f").read_bytes())):
        with pytest.raises(NotImplementedError, match="w is of"):
            gw.load(source)


@pytest.mark.parametrize("data", [b"", b"hello", b"\xff" * 100, (5).to_bytes(8, "little") + b"{}abc"])
def test_a_broken_file_is_refused(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    for source in (tmp_path / "f", io.BytesIO(data)):
        with pytest.raises(ValueError, match="safetensors"):
            gw.load(source)


@pytest.mark.parametrize(
    "description",
    [
        {"version": 2, "tree": None},
        {"version": 1, "tree": {"$tensor": "absent"}},
        {"version": 1, "tree": {"$run": "rm"}},
        {"version": 1, "tree": {"$dtype": "float99"}},
        {"version": 1, "tree": {"$dict": [1, 2]}},
        [],
    ],
)
def test_a_description_that_was_tampered_with_is_refused(description):
    data = safetensors.numpy.save({"w": np.ones(1)}, metadata={"gradwire": json.dumps(description)})
    with pytest.raises((ValueError, NotImplementedError)):
        gw.load(io.BytesIO(data))


def test_an_absent_file_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        gw.load(tmp_path / "absent")


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 0, {"a": [b"bytes"]}, {object(): 1}])
def test_what_is_no_data_does_not_stand_in_a_safetensors_file(value, tmp_path):
    with pytest.raises(TypeError, match="cannot be saved"):
        gw.save(value, tmp_path / "file.safetensors")


def test_a_safetensors_file_has_no_whole_module(net, tmp_path):
    with pytest.raises(TypeError, match="state_dict"):
        gw.save(net, str(tmp_path / "file.safetensors"))


def test_a_safetensors_file_of_another_name_is_read(tmp_path):
    gw.save({"n": [1, gw.ones(2)]}, tmp_path / "file.safetensors")
    (tmp_path / "file.pt").write_bytes((tmp_path / "file.safetensors").read_bytes())
    assert gw.load(tmp_path / "file.pt")["n"][1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["file.pt", "file.safetensors"])
def test_files_have_the_permissions_that_the_umask_leaves(tmp_path, name):
    before = os.umask(0o027)
    try:
        gw.save({"x": gw.ones(1)}, tmp_path / name)
    finally:
        os.umask(before)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o640


def test_map_location_names_a_device(through_a_file):
    assert through_a_file({"x": gw.ones(1)}, map_location="cpu")["x"].device.type == "cpu"
    assert through_a_file({"x": gw.ones(1)}, map_location=gw.device("cpu"), weights_only=True)["x"].item() == 1.0
    assert through_a_file({"x": gw.ones(1)}, map_location=lambda storage, place: storage)["x"].item() == 1.0
    with pytest.raises(TypeError, match="map_location"):
        through_a_file({"x": gw.ones(1)}, map_location=3.5)
