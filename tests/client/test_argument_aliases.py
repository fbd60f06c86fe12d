"""Alternative spellings of calls: NumPy's argument names, names of one overload, a number before the tensor."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from tests.side_by_side import Claim, Claims, built_in, leaf, name_of, same

import gradwire

claims = Claims()


def _matrix(lib: Any) -> Any:
    return (lib.arange(12.0) * 7 % 11 - 4).reshape(3, 4)


@claims
def a_dimension_may_be_called_an_axis(lib: Any) -> Any:
    x = _matrix(lib)
    return (
        x.sum(axis=0), x.mean(axis=1, keepdims=True), lib.cat([x, x], axis=1), lib.stack([x, x], axis=2),
        x.cumsum(axis=0), x.unsqueeze(axis=0), x[:1].squeeze(axis=0), x.argmax(axis=1), lib.all(x > 0, axis=0),
        lib.count_nonzero(x, axis=1), lib.sum(x, axis=(0, 1), keepdims=True), lib.sort(x, axis=0).indices,
    )  # fmt: skip


@claims
def so_it_may_in_functions_that_are_written_by_hand(lib: Any) -> Any:
    x = _matrix(lib)
    return (
        x.max(axis=1), x.min(axis=0, keepdims=True), x.std(axis=0).round(decimals=4), x.var(axis=0, unbiased=False) > 0,
        lib.median(x, axis=1).values, lib.diff(x, axis=0),
    )  # fmt: skip


@claims
def operands_may_have_the_names_that_numpy_gives_them(lib: Any) -> Any:
    x = _matrix(lib)
    return lib.add(x1=x, x2=x), lib.maximum(x, x2=-x), lib.abs(x=x)


@claims
def gradients_flow_through_a_sum_along_an_axis(lib: Any) -> Any:
    x = leaf(lib, 3, 4)
    (x * 2).sum(axis=1).pow(2).sum().backward()
    return x.grad


@claims
def a_number_may_come_before_the_tensor(lib: Any) -> Any:
    x = _matrix(lib)
    half, whole = x.to(lib.float16), x.to(lib.int64)
    return (
        lib.add(1, x), lib.mul(2, x), lib.sub(1.5, whole), lib.add(2, x, alpha=3),
        lib.div(7, x + 0.5).round(decimals=4),
        lib.div(7, whole + 9, rounding_mode="floor"), lib.add(1.5, half), lib.mul(2, whole), lib.mul(True, whole),
        lib.multiply(2, x), lib.add(1, 2), lib.mul(1j, x),
    )  # fmt: skip


@claims
def gradients_flow_past_a_number(lib: Any) -> Any:
    x = leaf(lib, 3)
    y = lib.mul(2, x)
    y.sum().backward()
    return y, x.grad


@claims
def a_number_alone_is_no_tensor(lib: Any) -> Any:
    return lib.exp(2)


@claims
def an_argument_that_is_not_there_is_refused(lib: Any) -> Any:
    return lib.zeros(2).sum(axes=0)


@claims
def an_axis_and_a_dimension_at_once_are_refused(lib: Any) -> Any:
    return lib.zeros(2).sum(dim=0, axis=0)


@claims
def pieces_are_cut_under_the_names_of_the_overloads(lib: Any) -> Any:
    x = _matrix(lib)
    return (
        x.split(split_size=2, dim=0), lib.split(tensor=x, split_size_or_sections=[1, 2]),
        lib.tensor_split(x, sections=2, dim=1), x.tensor_split(indices=(1, 3), dim=1), lib.hsplit(x, sections=2),
        x.vsplit(indices=(1,)), x.repeat(repeats=(1, 2)), lib.swapaxes(x, axis0=0, axis1=1),
    )  # fmt: skip


@claims
def what_is_scattered_is_added_or_multiplied(lib: Any) -> Any:
    index = lib.tensor([[0], [1], [1]])
    return (
        _matrix(lib).scatter_(1, index, 2.0, reduce="add"), _matrix(lib).scatter_(1, index, value=3.0),
        _matrix(lib).scatter_(1, index, _matrix(lib), reduce="multiply"),
        lib.gather(_matrix(lib), 1, index, sparse_grad=False),
    )  # fmt: skip


@claims
def one_integer_of_any_shape_is_an_index(lib: Any) -> Any:
    found = [("a", "b", "c")[lib.tensor(value)] for value in (2, [1], [[0]], True, [True])]
    return found, list(range(lib.tensor([[3]])))


@claims
def several_integers_are_no_index(lib: Any) -> Any:
    return [1, 2, 3][lib.tensor([0, 1])]


@claims
def no_integers_are_no_index(lib: Any) -> Any:
    return [1, 2, 3][lib.zeros(0, dtype=lib.int64)]


@claims
def a_float_is_no_index(lib: Any) -> Any:
    return [1, 2, 3][lib.tensor([1.0])]


@claims
def numbers_beyond_a_float_are_infinite(lib: Any) -> Any:
    return lib.tensor([1e300, -1e300, 1.0]), lib.tensor(1e6, dtype=lib.float16)


@claims
def a_tensor_is_walked_backwards(lib: Any) -> Any:
    return reversed(lib.arange(3)), [int(v) for v in reversed(lib.arange(3))]


@claims
def a_list_of_lists_is_a_tuple_of_indices(lib: Any) -> Any:
    x = _matrix(lib)
    return x[[[0, 1], [1, 2]]], x[[lib.tensor([0, 2]), lib.tensor([1, 1])]], x[[slice(0, 2), 1]]


@claims
def a_number_is_shifted_by_a_tensor(lib: Any) -> Any:
    return 1 << lib.tensor([1, 2]), 8 >> lib.tensor([1, 2])


@claims
def a_number_is_copied_everywhere(lib: Any) -> Any:
    return _matrix(lib).copy_(2.5)


@claims
def numbers_that_an_integer_dtype_cannot_hold_are_refused(lib: Any) -> Any:
    found = []
    for value, dtype in (
        (300, "uint8"), (-1, "uint8"), (-300, "uint8"), ([1e10], "int32"), (float("nan"), "int64"), (2**63, "int64"),
        (2**63, "float32"), ([-(2**63)], "int64"), (127.5, "int8"), (2**40, "int32"),
    ):  # fmt: skip
        try:
            found.append(lib.tensor(value, dtype=getattr(lib, dtype)))
        except (ValueError, RuntimeError) as error:
            found.append(built_in(error))
    return found


@claims
def repeats_that_do_not_fit_are_refused(lib: Any) -> Any:
    return _matrix(lib).repeat_interleave(lib.tensor([1, 2]), dim=0)


@claims
def a_memory_order_can_be_asked_for(lib: Any) -> Any:
    inward = lib.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
    return [
        x.is_contiguous(memory_format=order)
        for x in (inward, inward.contiguous(), lib.zeros(2, 1, 4, 5), lib.zeros(3))
        for order in (lib.channels_last, lib.contiguous_format, lib.channels_last_3d)
    ]


OLD = {
    "addcmul": (0.5, "vector", "vector"), "addcdiv": (0.5, "vector", "vector"), "add": (0.5, "vector"),
    "sub": (2, "vector"), "addmv": (0.5, "matrix", "vector"), "addr": (0.5, 3, "vector", "vector"),
    "addmm": (0.5, 2, "matrix", "matrix"), "addbmm": (0.5, "batch", "batch"), "baddbmm": (0.5, 3, "batch", "batch"),
}  # fmt: skip


@pytest.mark.parametrize("form", ["", "_"])
@pytest.mark.parametrize("name", OLD)
def test_factors_may_come_before_the_tensors_that_they_go_with(name: str, form: str) -> None:
    def called(lib: Any) -> Any:
        given = {"vector": lib.arange(1.0, 4.0), "matrix": lib.arange(9.0).reshape(3, 3)}
        given["batch"] = lib.arange(18.0).reshape(2, 3, 3)
        written = {"addmm": "matrix", "addr": "matrix", "addbmm": "matrix", "baddbmm": "batch"}.get(name, "vector")
        target = given[written].clone() + 0.5
        found = getattr(target, name + form)(*[given.get(arg, arg) for arg in OLD[name]])
        return found, (getattr(lib, name)(given["vector"], 0.5, given["vector"], given["vector"])
                       if name.startswith("addc") else lib.add(2, given["vector"]))  # fmt: skip

    same(called)


@pytest.mark.parametrize("given_out", [False, True])
@pytest.mark.parametrize("name", OLD)
def test_functions_take_factors_where_pytorchs_functions_do(name: str, given_out: bool) -> None:
    def attempt(lib: Any, args: list[Any]) -> Any:
        try:
            return getattr(lib, name)(*args, **({"out": lib.empty(0)} if given_out else {}))
        except Exception as error:
            return built_in(error)

    def called(lib: Any) -> Any:
        given = {"vector": lib.arange(1.0, 4.0), "matrix": lib.arange(9.0).reshape(3, 3)}
        given["batch"] = lib.arange(18.0).reshape(2, 3, 3)
        written = {"addmm": "matrix", "addr": "matrix", "addbmm": "matrix", "baddbmm": "batch"}.get(name, "vector")
        target, values = given[written] + 0.5, [given.get(arg, arg) for arg in OLD[name]]
        first, *others = values
        in_front = None if name in ("add", "sub") else attempt(lib, [first, target, *others])
        return attempt(lib, [target, *values]), in_front

    same(called)


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_the_same_as_torch(claim: Claim) -> None:
    same(claim)


def test_a_sparse_gradient_of_gather_is_refused_by_name() -> None:
    x, index = gradwire.ones(2, 2), gradwire.tensor([[0, 1]])
    for call in (x.gather, lambda *args, **kwargs: gradwire.gather(x, *args, **kwargs)):
        with pytest.raises(NotImplementedError, match="sparse_grad"):
            call(0, index, sparse_grad=True)


def test_every_name_that_a_tensor_lists_is_there() -> None:
    x = gradwire.ones(2, 2, dtype=gradwire.complex64)
    with warnings.catch_warnings(action="ignore"):  # volatile says that it was removed
        missing = [name for name in dir(x) if not hasattr(x, name)]
    assert missing == []
    assert "slice_inverse" not in dir(x)
    assert not {"add_", "shape", "grad_fn", "__len__"} - set(dir(x))
