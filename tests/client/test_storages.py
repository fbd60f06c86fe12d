"""Storages and the identity of memory: what ``data_ptr``, ``untyped_storage`` and ``set_`` tell is what torch tells."""

from __future__ import annotations

import warnings

import pytest
import torch as pytorch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytorch.ones(1).storage().size()  # PyTorch warns of typed storages once in a process


def distances(of, *tensors):
    return [tensor.data_ptr() - of.data_ptr() for tensor in tensors]


@claim
def what_shows_one_memory(torch):
    x = torch.arange(12.0).view(3, 4)
    parameter = torch.nn.Parameter(x[2:])
    return [
        distances(x, x.detach(), x.data, torch.nn.Parameter(x), x.t(), x.view(-1), x.reshape(4, 3), x.unsqueeze(0)),
        distances(x, x[1:], x[1:].detach()[1:], x.data[2:], x[1:].data[1:].detach(), x.detach()[1:].t(), parameter),
        [part.storage_offset() for part in (x, x[1], x.data[1:], x[:, 1], x.t(), x[1:].t().detach(), parameter.data)],
        [part.untyped_storage() == x.untyped_storage() for part in (x, x[1].detach(), x.data[1:], x.clone())],
        [part.untyped_storage().nbytes() for part in (x, x[1].detach(), x.data[1:], x[0].clone())],
    ]


@claim
def numbers_of_other_kinds(torch):
    pairs = torch.view_as_complex(torch.arange(12.0).view(6, 2))[2:]
    first, second, third = torch.unsafe_split(torch.arange(6.0), 2)
    gaps = torch.empty_strided((2, 3), (5, 1))
    return [
        pairs.storage_offset(), pairs.untyped_storage().nbytes(), pairs.real.storage_offset(),
        pairs.data_ptr() - pairs.untyped_storage().data_ptr(), distances(first, second, third),
        third.untyped_storage() == first.untyped_storage(), gaps.untyped_storage().nbytes(),
        torch.empty(0).data_ptr(), torch.ones(2, 0).data_ptr(), torch.ones(2, device="meta").data_ptr(),
        repr(torch.ones(2, device="meta").untyped_storage()),
    ]  # fmt: skip


@claim
def in_inference_mode(torch):
    with torch.inference_mode():
        x = torch.ones(4)
        part = x[1:][1:]
        return distances(x, x[1:], part), part.untyped_storage() == x.untyped_storage(), part.storage().size()


@claim
def what_assignment_of_data_changes(torch):
    x, parameter = torch.arange(12.0).view(3, 4), torch.nn.Parameter(torch.ones(3, 4))
    before = parameter.view(-1)
    at = before.data_ptr()
    parameter.data = x[:2]
    apart = torch.arange(4.0)
    view = apart[2:]
    view.data = x[1]
    return [
        distances(x, parameter, parameter.detach(), parameter[0], parameter[0, 1:], view, view[1:], view.data),
        before.data_ptr() == at, parameter.untyped_storage().nbytes(), view.storage_offset(), view.storage().size(),
    ]  # fmt: skip


@claim
def set_to_other_memory(torch):
    x, y = torch.arange(6.0), torch.arange(12.0).view(3, 4)
    found = []
    for arguments in ((y[1:],), (), (y.untyped_storage(), 2, (2, 2), (3, 1)), (y.untyped_storage(),), (y.storage(),),
                      (y, 1, (2,)), (y.storage(), 4, (2, 3))):  # fmt: skip
        version = x._version
        returned = x.set_(*arguments)
        found += [x.clone(), x.stride(), x.storage_offset(), returned is x, x._version - version, x.is_set_to(y)]
    x[0, 0] = 99
    parameter = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        parameter.set_(y)
    parameter.data.set_(torch.ones(3))
    return found, y, parameter.detach(), parameter.requires_grad, x.is_set_to(x.detach())


@claim
def what_set_refuses(torch):
    x, y = torch.arange(6.0), torch.arange(12.0)
    return [
        raises(lambda: x.set_(torch.arange(3))), raises(lambda: torch.ones(2, requires_grad=True).set_(y)),
        raises(lambda: x.set_(y.untyped_storage(), -1, (5,), (1,))), raises(lambda: x.set_(y.to("meta"))),
        raises(lambda: x.set_(y.long().storage())), raises(lambda: x.set_(3)),
    ]  # fmt: skip


@claim
def bytes_and_numbers(torch):
    x = torch.arange(4.0)
    storage, numbers = x.untyped_storage(), x.storage()
    numbers[2], numbers[-1] = 7.0, 8
    storage[0] = 3
    copied = torch.FloatStorage(4).copy_(numbers)
    copied.fill_(2)
    return [
        x, len(storage), storage.tolist(), storage[7], storage[4:8].tolist(), repr(storage), storage.type(),
        repr(numbers), numbers.tolist(), numbers.type(), numbers[1], numbers.size(), numbers.nbytes(),
        storage[2:5].data_ptr() - storage.data_ptr(), storage.float().tolist(), numbers.long().tolist(),
        numbers.clone().tolist(), copied.tolist(), torch.FloatStorage([1, 2]).tolist(),
        torch.UntypedStorage(3).nbytes(),
        raises(lambda: numbers[4]), raises(lambda: storage[16]), raises(lambda: storage[0:4:2]),
        isinstance(numbers, torch.FloatStorage), isinstance(numbers, torch.LongStorage), torch.is_storage(numbers),
        torch.is_storage(storage), torch.is_storage(x), storage == x[1:].untyped_storage(),
    ]  # fmt: skip


@claim
def tensors_of_storages(torch):
    x = torch.arange(3)
    same_memory = torch.asarray(x.untyped_storage(), dtype=torch.int64)
    same_memory[0] = 5
    return x, same_memory.data_ptr() == x.data_ptr(), torch.frombuffer(bytearray(b"\1\0\2\0"), dtype=torch.int16)


@claim
def resized(torch):
    x = torch.arange(10.0)
    at = x.data_ptr()
    x.resize_(3)
    found = [x.untyped_storage().nbytes(), x.data_ptr() == at]
    x.resize_(8)
    return [*found, x.data_ptr() == at, x[2:].data_ptr() - at, x]


@claim
def tied_weights(torch):
    one, other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    other.weight = one.weight
    at = one.weight.data_ptr()
    tied = at == other.state_dict()["weight"].data_ptr() != one.bias.data_ptr()
    one.double()
    return tied, one.weight.data_ptr() == at, other.weight.data_ptr() == one.weight.data_ptr()


@pytest.mark.parametrize("claimed", claim, ids=name_of)
def test_as_in_pytorch(claimed):
    same(claimed)


def test_addresses_of_a_whole_model_cost_no_round_trip(round_trips):
    model = gw.nn.Sequential(*[gw.nn.Linear(2, 2) for _ in range(10)])
    round_trips()
    found = {value.data_ptr() for value in model.state_dict().values()}
    sizes = {value.untyped_storage().nbytes() for value in model.state_dict().values()}
    assert len(found) == 20 and sizes == {8, 16} and round_trips() == 0


def test_a_bytes_of_a_file_are_uploaded_when_they_are_computed_with(tmp_path, round_trips):
    (tmp_path / "bytes").write_bytes(bytes(range(32)))
    storage = gw.UntypedStorage.from_file(str(tmp_path / "bytes"), False, 16)
    assert storage.nbytes() == 16 and storage[3] == 3 and storage[4:6].tolist() == [4, 5] and round_trips() == 0
    numbers = gw.asarray(storage[4:12], dtype=gw.uint8).view(gw.int32)
    assert numbers.tolist() == [0x07060504, 0x0B0A0908]
    with pytest.raises(NotImplementedError, match="shared"):
        gw.UntypedStorage.from_file(str(tmp_path / "bytes"), True, 16)


def test_a_storage_keeps_its_size():
    storage = gw.ones(4).untyped_storage()
    assert storage.resize_(16) is storage
    with pytest.raises(NotImplementedError, match="resize_"):
        storage.resize_(0)


def test_no_address_is_given_twice():
    found = [gw.ones(3).data_ptr() for _ in range(3000)]
    assert len(set(found)) == 3000


def test_a_compiled_functions_results_show_their_arguments_memory():
    x = gw.arange(6.0)

    @gw.compile
    def parts(x):
        y = x * 2
        return x.data, x.detach()[1:], y, y[2:].detach()

    for _ in range(6):
        data, part, fresh, below = parts(x)
        assert data.data_ptr() == x.data_ptr() == part.data_ptr() - 4
        assert fresh.data_ptr() != x.data_ptr() and below.data_ptr() - fresh.data_ptr() == 8
