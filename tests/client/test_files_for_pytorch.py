"""What gradwire saves, PyTorch loads: files of ``torch.save``, and plain pickles of tensors."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch
from tests.side_by_side import described

import gradwire as gw
from gradwire import nn, optim
from gradwire_protocol import dtypes

pytestmark = pytest.mark.usefixtures("session")


def written(value: object) -> io.BytesIO:
    """A file that gradwire wrote."""
    file = io.BytesIO()
    gw.save(value, file)
    file.seek(0)
    return file


def in_pytorch(value: object, trusted: bool = False):
    return torch.load(written(value), weights_only=not trusted)


DTYPES = [dtype.name for dtype in dtypes.ALL]


def test_tensors_of_every_dtype_arrive_bit_for_bit():
    ours = {name: gw.arange(6).reshape(2, 3).to(getattr(gw, name)) for name in DTYPES}
    theirs = in_pytorch(ours)
    assert {name: repr(value.dtype) for name, value in theirs.items()} == {name: f"torch.{name}" for name in DTYPES}
    assert described(ours) == described(theirs)


def test_tensors_keep_strides_classes_and_attributes():
    tagged = nn.Parameter(gw.ones(2))
    tagged.tag = "first"
    leaf = gw.ones(2, requires_grad=True)
    ours = {
        "transposed": gw.arange(6.0).reshape(2, 3).t(), "stepped": gw.arange(8)[1::2], "empty": gw.empty(0, 3),
        "ordered": gw.randn(2, 3, 4, 5).permute(0, 3, 1, 2).clone().permute(0, 2, 3, 1), "tagged": tagged,
        "expanded": gw.ones(3, 1).expand(3, 4), "frozen": nn.Parameter(gw.ones(2), requires_grad=False), "leaf": leaf,
        "number": gw.tensor(3), "moved": gw.arange(9.0)[3:].detach().view(2, 3).t(), "history": leaf * 2,
    }  # fmt: skip
    theirs = in_pytorch(ours)
    for name, value in ours.items():
        assert theirs[name].stride() == value.stride() and theirs[name].tolist() == value.tolist(), name
        assert theirs[name].requires_grad == value.requires_grad, name
        assert isinstance(theirs[name], torch.nn.Parameter) == isinstance(value, nn.Parameter), name
    assert theirs["tagged"].tag == "first"
    assert in_pytorch(gw.ones(2, 3, device="meta").t()).stride() == (1, 3)


def test_what_shares_memory_shares_it_in_the_file(round_trips):
    base = gw.arange(12.0).view(3, 4)
    tied = nn.Linear(4, 4)
    value = {"base": base, "row": base[1], "rest": base[1:].detach(), "data": base.data, "a": tied, "b": [tied.weight]}
    round_trips()
    file = written(value)
    assert round_trips() <= 2
    assert len([name for name in zipfile.ZipFile(file).namelist() if "/data/" in name]) == 3
    file.seek(0)
    theirs = torch.load(file, weights_only=False)
    theirs["base"][1, 1] = 99
    assert theirs["row"][1] == theirs["rest"][0, 1] == theirs["data"][1, 1] == 99
    assert theirs["a"].weight is theirs["b"][0]
    file.seek(0)
    ours = gw.load(file)
    ours["base"][1, 1] = 99
    assert ours["row"][1] == ours["rest"][0, 1] == ours["data"][1, 1] == 99 and ours["a"].weight is ours["b"][0]


def test_a_state_dict_is_written_in_one_round_trip_whatever_its_size(round_trips):
    model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(20)])
    round_trips()
    written(model.state_dict())
    assert round_trips() == 1
    written(model)
    assert round_trips() == 1


def test_containers_numbers_and_names_arrive():
    value = {
        "list": [1, 2.5, None, True, "text", b"bytes", 3 + 4j], "tuple": (1, (2, 3)), "set": {1, 2}, 7: -(2**70),
        "ordered": OrderedDict(a=1), "array": np.arange(6.0).reshape(2, 3).T, (1, "a"): "tuple key",
    }  # fmt: skip
    value["self"] = value["list"]
    found = in_pytorch(
        {**value, "names": (gw.float16, gw.device("cuda:1"), gw.Size([2]), gw.strided, gw.channels_last)}, True
    )
    assert found["names"] == (
        torch.float16,
        torch.device("cuda:1"),
        torch.Size([2]),
        torch.strided,
        torch.channels_last,
    )
    assert found["self"] is found["list"] and np.array_equal(found.pop("array"), value.pop("array"))
    assert {name: found[name] for name in value} == value


def test_a_checkpoint_goes_on_in_pytorch():
    ours, theirs = nn.Linear(2, 3), torch.nn.Linear(2, 3)
    optimizer = optim.Adam(ours.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(3):
        optimizer.zero_grad()
        ours(gw.ones(1, 2)).square().sum().backward()
        optimizer.step()
        schedule.step()
    scaler = gw.amp.GradScaler("cpu")
    kept = {"model": ours, "optimizer": optimizer, "schedule": schedule, "scaler": scaler}
    found = in_pytorch({name: one.state_dict() for name, one in kept.items()})
    theirs.load_state_dict(found["model"])
    resumed = torch.optim.Adam(theirs.parameters(), lr=9.0)
    resumed.load_state_dict(found["optimizer"])
    torch.optim.lr_scheduler.StepLR(resumed, 2).load_state_dict(found["schedule"])
    torch.amp.GradScaler("cpu").load_state_dict(found["scaler"])
    for model, step, ones in ((theirs, resumed, torch.ones), (ours, optimizer, gw.ones)):
        step.zero_grad()
        model(ones(1, 2)).square().sum().backward()
        step.step()
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-5)


class OfTheProgram(gw.nn.Module):
    """A class that files name by reference."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.act = nn.functional.gelu
        self.register_buffer("kept", gw.arange(2.0), persistent=False)
        self.options = {"again": self.layer}

    def forward(self, x):
        return self.act(self.layer(x)) + self.kept


class OfPyTorch(torch.nn.Module):
    forward = OfTheProgram.forward


def test_a_module_of_the_programs_is_loaded_where_its_class_is_allowed(monkeypatch):
    model = OfTheProgram()
    model.layer.register_forward_hook(print)
    with pytest.raises(ValueError, match=r"OfTheProgram.*add_safe_globals\(\[OfTheProgram\]\)"):
        gw.load(written(model), weights_only=False)
    names = gw.serialization.get_unsafe_globals_in_checkpoint(written(model))
    assert names == [f"{__name__}.OfTheProgram", "__builtin__.print"]
    with gw.serialization.safe_globals([OfTheProgram, print]):
        found = gw.load(written(model))
    assert gw.serialization.get_safe_globals() == []
    assert found.options["again"] is found.layer and found.act is nn.functional.gelu
    assert list(found.layer._forward_hooks.values()) == [print]
    found.layer._forward_hooks.clear()
    x = gw.ones(1, 2)
    np.testing.assert_array_equal(
        found(x).detach().numpy(), model.act(model.layer.forward(x)).add(model.kept).detach().numpy()
    )
    del model.act
    model.layer._forward_hooks.clear()
    monkeypatch.setitem(globals(), "OfTheProgram", OfPyTorch)
    with pytest.raises(pickle.PicklingError):  # its name stands for another class now
        written(model)


def test_pytorch_loads_a_module_of_the_programs(monkeypatch):
    model = OfTheProgram()
    file = written(model)
    monkeypatch.setitem(globals(), "OfTheProgram", OfPyTorch)
    found = torch.load(file, weights_only=False)
    np.testing.assert_allclose(
        found(torch.ones(1, 2)).detach().numpy(), model(gw.ones(1, 2)).detach().numpy(), rtol=1e-6, atol=1e-6
    )
    assert list(found.state_dict()) == ["layer.weight", "layer.bias"]


class Tagged(gw.Tensor):
    """A subclass of the program's."""


def test_subclasses_of_tensor_come_back_where_they_are_allowed():
    value = gw.arange(3.0).as_subclass(Tagged)
    value.tag = [1]
    with pytest.raises(ValueError, match="Tagged"):
        gw.load(written(value))
    with gw.serialization.safe_globals([Tagged]):
        found = gw.load(written(value))
    assert type(found) is Tagged and found.tag == [1] and found.tolist() == [0.0, 1.0, 2.0]
    again = pickle.loads(pickle.dumps(value))  # noqa: S301
    assert type(again) is Tagged and again.tag == [1] and again.tolist() == [0.0, 1.0, 2.0]


def test_what_pytorch_has_not_cannot_be_saved():
    with pytest.raises(TypeError, match="PyTorch"):
        written(gw.compile(nn.Linear(2, 2)))
    numbers = gw.arange(2.0)
    with pytest.raises(RuntimeError, match="dtypes"):
        written([numbers, numbers.view(gw.int32)])
    layer = nn.Linear(1, 1)
    layer.register_state_dict_post_hook(print)
    with pytest.raises(TypeError, match="hooks of its state dict"):
        written(layer)


def test_files_lie_as_pytorchs_do(tmp_path):
    gw.save({"a": gw.ones(3), "b": gw.ones(5)}, tmp_path / "model.pt")
    with zipfile.ZipFile(tmp_path / "model.pt") as archive, open(tmp_path / "model.pt", "rb") as file:
        assert {name.partition("/")[0] for name in archive.namelist()} == {"model"}
        assert archive.read("model/byteorder") == b"little" and archive.read("model/version") == b"3\n"
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            begin = info.header_offset + 30 + sum(int.from_bytes(file.read(2), "little") for _ in range(2))
            assert begin % 64 == 0 and info.compress_type == zipfile.ZIP_STORED
    mapped = torch.load(tmp_path / "model.pt", mmap=True)
    assert mapped["b"].tolist() == [1.0] * 5
    assert gw.load(tmp_path / "model.pt", mmap=True)["b"].tolist() == [1.0] * 5


# Plain pickles


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickle_keeps_values(protocol):
    x = gw.arange(12.0).view(3, 4)
    model = nn.Sequential(nn.Conv1d(3, 2, 3), nn.BatchNorm1d(2))
    generator = gw.Generator().manual_seed(3)
    gw.rand(2, generator=generator)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    values = [x, x[1:].t(), nn.Parameter(x), gw.ones(2, requires_grad=True), x.to(gw.bfloat16), gw.empty(0, 2),
              x.untyped_storage(), x.storage(), model, generator, optimizer, gw.float32, gw.device("cpu"), x.shape,
              gw.ones(2, 3, device="meta").t()]  # fmt: skip
    found = pickle.loads(pickle.dumps(values, protocol))  # noqa: S301
    for before, after in zip(values[:6], found, strict=False):
        assert (
            type(after) is type(before) and after.dtype is before.dtype and after.requires_grad == before.requires_grad
        )
        assert after.tolist() == before.tolist() and after.stride() == before.stride()
    assert found[6].tolist() == values[6].tolist() and found[7].tolist() == values[7].tolist()
    assert found[8](x).tolist() == model(x).tolist()
    assert gw.rand(2, generator=found[9]).tolist() == gw.rand(2, generator=generator).tolist()
    assert found[10].param_groups[0]["params"][0] is found[8][0].weight
    assert found[11:14] == values[11:14] and found[14].is_meta and found[14].stride() == (1, 3)


def test_deep_copies_of_everything():
    model = nn.Linear(2, 2)
    optimizer = optim.Adam(model.parameters())
    values = {"model": model, "tied": model.weight, "optimizer": optimizer, "generator": gw.Generator().manual_seed(3),
              "storage": model.weight.untyped_storage(), "numbers": gw.ones(2).storage()}  # fmt: skip
    found = copy.deepcopy(values)
    assert found["model"].weight is found["tied"] is not model.weight
    assert found["optimizer"].param_groups[0]["params"][0] is found["tied"]
    assert gw.rand(1, generator=found["generator"]).tolist() == gw.rand(1, generator=values["generator"]).tolist()
    assert found["storage"].tolist() == values["storage"].tolist() and found["storage"] != values["storage"]


def test_a_generator_stands_in_a_file_too():
    generator = gw.Generator().manual_seed(5)
    gw.rand(3, generator=generator)
    found = gw.load(written([generator]))[0]
    assert gw.rand(2, generator=found).tolist() == gw.rand(2, generator=generator).tolist()


def test_storages_stand_in_files():
    x = gw.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = in_pytorch([x.storage(), x[1:]], trusted=True)
        theirs[0][1] = 9.0
        assert theirs[1].tolist() == [9.0, 2.0, 3.0]
        file = io.BytesIO()
        torch.save([torch.arange(3.0).storage(), torch.arange(2).untyped_storage()], file)
    file.seek(0)
    ours = gw.load(file)
    assert ours[0].tolist() == [0.0, 1.0, 2.0] and ours[1].nbytes() == 16
