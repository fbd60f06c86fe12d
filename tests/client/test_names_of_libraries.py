"""Names that libraries ask for at import, and that subclasses and conditions of theirs rest on."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as oracle

import gradwire as torch
from gradwire import fx
from gradwire._functorch import vmap as steps
from gradwire.distributed.rpc.api import _require_initialized
from gradwire.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor


def test_assert_is_left_to_proxies() -> None:
    def checked(x: Any) -> Any:
        torch._assert(x.shape[0] == 2, "two rows")
        return x + 1

    traced = fx.symbolic_trace(checked)
    assert "torch._assert(" in traced.code
    assert traced(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError, match="two rows"):
        traced(torch.ones(3))


def test_autocast_is_off_elsewhere() -> None:
    for kind in ("mps", "xpu", "hpu", "xla", "mtia", "maia"):
        assert torch.is_autocast_enabled(kind) is oracle.is_autocast_enabled(kind) is False
        assert str(torch.get_autocast_dtype(kind)) == str(oracle.get_autocast_dtype(kind))
    with pytest.raises(torch.GradwireError, match="mps"):
        torch.set_autocast_enabled("mps", True)


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("_to_copy", (), {"dtype": "float64"}),
    ("alias", (), {}),
    ("slice", (1, 0, 3, 2), {}),
    ("_unsafe_view", ([3, 2],), {}),
    ("_softmax", (1, False), {}),
    ("_log_softmax", (0, False), {}),
    ("sigmoid_backward", ("itself",), {}),
    ("tanh_backward", ("itself",), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[name for name, _, _ in CALLS])
def test_operations_of_aten(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    data = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)

    def called(library: Any) -> Any:
        x = library.from_numpy(data)
        given = {key: getattr(library, value) for key, value in kwargs.items()}
        return getattr(library.ops.aten, name)(x, *(x if one == "itself" else one for one in args), **given)

    ours, theirs = called(torch), called(oracle)
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.stride()) == theirs.stride()
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_an_operation_that_is_lacking_is_refused_at_its_call() -> None:
    operation = torch.ops.aten._sparse_mm_reduce_impl.default
    with pytest.raises(torch.Unsupported, match="_sparse_mm_reduce_impl"):
        operation(torch.ones(1))
    assert not hasattr(torch.ops.aten, "no_such_operation")


def test_a_subclass_may_have_a_meta_of_its_own() -> None:
    class Described(torch.Tensor):
        pass

    x = torch.ones(2, 3).as_subclass(Described)
    x._meta = {"spacing": 2}
    assert x.shape == (2, 3)
    assert (x + 1).tolist() == [[2.0] * 3] * 2
    assert x._meta == {"spacing": 2}


def test_steps_of_vmap_can_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pair:
        def __init__(self, first: Any, second: Any) -> None:
            self.first, self.second = first, second

    def process(in_dims: Any, args: Any, func: Any) -> Any:
        leaves, spec = steps.tree_flatten(args)
        return 2, steps._broadcast_to_and_flatten(in_dims, spec), leaves, spec

    def create(dims: Any, leaves: Any, level: int, spec: Any) -> Any:
        made = [Pair(*(steps._add_batch_dim(one, 0, level) for one in (p.first, p.second))) for p in leaves]
        return steps.tree_unflatten(made, spec)

    monkeypatch.setattr(steps, "_process_batched_inputs", process)
    monkeypatch.setattr(steps, "_create_batched_inputs", create)
    pair = Pair(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([10.0, 20.0]))
    assert torch.vmap(lambda p: p.first.sum() * p.second)(pair).tolist() == [30.0, 140.0]


def test_numbers_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(5, dtype=np.int32).tofile(path)
    assert torch.from_file(path, size=3, dtype=torch.int32).tolist() == [0, 1, 2]
    with pytest.raises(torch.Unsupported, match="file"):
        torch.from_file(path, shared=True, size=3)


def test_named_members() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
    accessor = NamedMemberAccessor(module)
    given = {"0.weight": torch.ones(1, 2), "1.running_mean": torch.zeros(1)}
    before, missing = accessor.swap_tensors_dict(given)
    assert not missing
    assert module[0].weight is given["0.weight"]
    accessor.set_tensors_dict(before)
    assert isinstance(module[0].weight, torch.nn.Parameter)
    assert accessor.check_keys(["0.weight", "nowhere"])[1] == ["nowhere"]
    with pytest.raises(KeyError):
        swap_tensor(module, "0.weight", None)


def test_functions_between_ranks_are_refused_at_their_call() -> None:
    called = _require_initialized(len)
    with pytest.raises(torch.Unsupported, match="rpc"):
        called([])


def test_a_member_of_an_enumeration_of_strings_is_a_string() -> None:
    class Mode(str, enum.Enum):  # noqa: UP042  (StrEnum shows the string)
        NEAREST = "nearest"

        def __str__(self) -> str:
            return "shown otherwise"

    found = []
    for lib in (oracle, torch):
        x = lib.arange(4.0).reshape(1, 1, 2, 2)
        found.append(lib.nn.functional.interpolate(x, scale_factor=2, mode=Mode.NEAREST).tolist())
    assert found[0] == found[1]


def test_a_class_that_is_no_tensor_is_asked_for_tensors_like_it() -> None:
    class Pair:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func, args, kwargs or {}

    pair = Pair()
    for lib in (oracle, torch):
        assert lib.empty_like(pair) == (lib.empty_like, (pair,), {})
        assert lib.full_like(pair, 3, dtype=lib.float64) == (lib.full_like, (pair, 3), {"dtype": lib.float64})
