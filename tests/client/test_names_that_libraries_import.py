"""What libraries import or ask before they know whether they need it."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch

import gradwire
from gradwire.utils import checkpoint, flop_counter
from gradwire_protocol.errors import DeviceError, Unsupported

LIBRARIES = (gradwire, torch)


def test_what_a_program_attached_to_a_parameter():
    def told(lib):
        w = lib.nn.Parameter(lib.ones(3))
        seen = [dict(vars(w))]
        w.mine = [3]
        (w * 2).sum().backward()
        w.register_hook(lambda g: g)
        attributes = w.__dict__
        seen += [dict(attributes), len(attributes), "mine" in dir(w), {**attributes}, attributes.copy()]
        copied = copy.deepcopy(attributes)
        attributes["requires_grad"] = False
        seen += [w.requires_grad, attributes.pop("mine"), hasattr(w, "mine"), dict(attributes), copied]
        empty = type(w)(w.to("meta"), **attributes)
        seen += [empty.requires_grad, str(empty.device), dict(vars(empty))]
        w.__dict__ = {"other": 1}
        seen += [w.other, dict(vars(w)), w.grad.tolist()]
        del w.__dict__
        x = lib.ones(3)[1:]
        x.k = 1
        x.add_(1)
        return [*seen, hasattr(w, "other"), dict(vars(x)), dict(vars(x.as_subclass(lib.nn.Parameter)))]

    assert told(gradwire) == told(torch)


def test_what_gradwire_keeps_cannot_be_written():
    with pytest.raises(KeyError):
        vars(gradwire.ones(1))["_grad_proxy"] = 3


@pytest.mark.parametrize("kind", ["mps", "xpu:1", "hpu", "mtia", "privateuseone"])
def test_devices_that_no_server_has_can_be_compared(kind):
    mine, theirs = gradwire.device(kind), torch.device(kind)
    assert (str(mine), repr(mine), mine.type, mine.index) == (str(theirs), repr(theirs), theirs.type, theirs.index)
    assert mine != gradwire.device("cpu") and mine == gradwire.device(kind)
    for call in (lambda: gradwire.ones(1, device=kind), lambda: gradwire.ones(1).to(mine),
                 lambda: gradwire.nn.Linear(1, 1).to(kind), lambda: gradwire.set_default_device(kind)):  # fmt: skip
        with pytest.raises(DeviceError, match=kind):
            call()


def test_a_word_that_is_no_device():
    for lib in LIBRARIES:
        with pytest.raises(RuntimeError):
            lib.device("quantum")


def test_data_of_a_meta_tensor_can_be_set():
    def told(lib):
        w = lib.nn.Parameter(lib.ones(3, device="meta"))
        w.data = lib.nn.functional.pad(w.data, (0, 2))
        return tuple(w.shape), str(w.device), w.requires_grad

    assert told(gradwire) == told(torch)


def test_states_of_devices_that_are_cpus():
    for get, set_ in ((checkpoint.get_device_states, checkpoint.set_device_states),):
        devices, states = get([gradwire.ones(1)], {"a": 3})
        assert (devices, states) == torch.utils.checkpoint.get_device_states([torch.ones(1)], {"a": 3})
        set_(devices, states)


@pytest.mark.parametrize("writer", LIBRARIES)
def test_records_of_a_file(writer, tmp_path):
    writer.save({"a": writer.arange(3)}, tmp_path / "file.pt")
    seen = []
    for lib in LIBRARIES:
        reader = lib.PyTorchFileReader(str(tmp_path / "file.pt"))
        there = [reader.has_record("data.pkl"), reader.has_record("x"), reader.get_record("data/0")]
        part = reader.get_storage_from_record("data/0", 3, lib.int64)
        whole = part.untyped_storage()
        seen.append((sorted(reader.get_all_records()), there, reader.get_record_size("data/0"), part.tolist(),
                     str(part.dtype), whole.nbytes(), bytes(whole.tolist()), reader.serialization_id()))  # fmt: skip
        with pytest.raises(RuntimeError):
            reader.get_record("x")
        for broken in ("/nowhere/at.all", io.BytesIO(b"abc")):
            with pytest.raises(RuntimeError):
                lib.PyTorchFileReader(broken)
    assert seen[0] == seen[1]


def test_types_of_scripts_can_be_named_and_not_made():
    for name in ("TensorType", "AnyType"):
        assert not isinstance(gradwire.ones(1), getattr(gradwire, name))
        with pytest.raises(Unsupported, match=name):
            getattr(gradwire, name)()
    with pytest.raises(Unsupported, match="FlopCounterMode"):
        flop_counter.FlopCounterMode()


def test_images_of_bytes_are_resized_as_the_capability_says():
    picture = np.random.default_rng(0).integers(256, size=(1, 3, 20, 20), dtype=np.uint8)

    def resized(lib):
        options = {"size": (16, 13), "mode": "bilinear", "antialias": True, "align_corners": False}
        return lib.nn.functional.interpolate(lib.from_numpy(picture), **options)

    assert gradwire.backends.cpu.get_cpu_capability() == "AVX2"
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"):
        assert resized(gradwire).tolist() == resized(torch).tolist()
