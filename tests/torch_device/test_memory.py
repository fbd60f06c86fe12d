"""Storages of the device: addresses, saving, loading, pickles, and tensors set to them."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch

import gradwire_torch

gradwire_torch.register()


def saved(value: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def test_tensors_that_share_memory_are_known_by_their_address() -> None:
    x = torch.ones(4, 3, device="gradwire")
    assert x[1:].data_ptr() == x.data_ptr() + 12 and x.t().untyped_storage().data_ptr() == x.data_ptr()
    assert len({torch.ones(2, device="gradwire").data_ptr() for _ in range(3)} | {x.data_ptr()}) >= 2
    assert x.untyped_storage().nbytes() == 48 and x.is_set_to(x.view(4, 3)) and not x.is_set_to(x.clone())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64, torch.int64])
def test_what_is_saved_is_loaded_here_and_there(dtype: torch.dtype) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    there = x.to("gradwire")
    assert torch.load(saved(there)).device.type == "gradwire"
    for loaded in (torch.load(saved(there)), torch.load(saved(there), map_location="cpu")):
        assert torch.equal(loaded.cpu(), x) and loaded.dtype is dtype
    assert torch.equal(torch.load(saved(x), map_location="gradwire").cpu(), x)
    assert torch.equal(pickle.loads(pickle.dumps(there)).cpu(), x)  # noqa: S301
    assert torch.equal(torch.load(saved(there, _use_new_zipfile_serialization=False)).cpu(), x)


def test_views_are_saved_with_what_they_share() -> None:
    x = torch.arange(6.0, device="gradwire")
    loaded = torch.load(saved({"whole": x, "part": x[2:4]}))
    loaded["whole"].zero_()
    assert loaded["part"].tolist() == [0, 0]


def test_copies_of_modules_share_what_the_module_shares() -> None:
    layer = torch.nn.Linear(2, 2, device="gradwire")
    both = copy.deepcopy(torch.nn.ModuleDict({"one": layer, "other": layer}))
    assert both["one"].weight is both["other"].weight and both["one"].weight is not layer.weight
    assert torch.equal(both["one"].weight.cpu(), layer.weight.cpu())


def test_a_tensor_is_set_to_a_storage_and_resized() -> None:
    x = torch.arange(6.0, device="gradwire")
    y = torch.empty(0, device="gradwire").set_(x.untyped_storage(), 2, (2, 2), (1, 2))
    assert y.tolist() == [[2, 4], [3, 5]]
    y.zero_()
    assert x.tolist() == [0, 1, 0, 0, 0, 0]
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [0, 0]]
    x.resize_(10)
    assert x[:2].tolist() == [0, 1] and x.shape == (10,)


def test_the_same_bytes_as_another_dtype() -> None:
    x = torch.tensor([1.0, -2.0])
    there = x.to("gradwire")
    assert torch.equal(there.view(torch.int32).cpu(), x.view(torch.int32))
    there.view(torch.int32).zero_()
    assert there.tolist() == [0, 0]
    z = torch.tensor([1 + 2j, 3 - 1j]).to("gradwire")
    torch.view_as_real(z)[:, 1] = 0
    assert z.tolist() == [1, 3]


def test_a_storage_is_made_on_the_device() -> None:
    made = torch.UntypedStorage(8, device="gradwire")
    assert (made.nbytes(), made.device.type) == (8, "gradwire")
    assert bytes(made.cpu()) == bytes(8)


def test_numpy_does_not_read_from_an_address() -> None:
    with pytest.raises(TypeError):
        torch.ones(2, device="gradwire").numpy()
