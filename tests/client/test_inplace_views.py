"""In-place forms of views, ``out=``, ``resize_``, and tensor attributes other than values."""

from __future__ import annotations

from typing import Any

import pytest
from tests.side_by_side import Claim, Claims, name_of, raises, same

claims = Claims()


@claims
def an_unsqueezed_tensor_is_the_same_object(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    y = x.unsqueeze_(0)
    return y is x, x, x.squeeze_(), x.transpose_(0, 1), x.t_(), x.swapaxes_(0, 1)


@claims
def gradients_flow_through_a_tensor_transposed_in_place(lib: Any) -> Any:
    a = lib.arange(6.0).reshape(2, 3).detach().requires_grad_()
    b = a * 2
    b.t_()
    (b * lib.arange(6.0).reshape(3, 2)).sum().backward()
    return a.grad, list(b.shape)


@claims
def views_made_before_share_memory_with_it(lib: Any) -> Any:
    b = lib.arange(6.0).reshape(2, 3) * 3
    v = b.view(-1)
    b.unsqueeze_(0)
    b.mul_(2)
    return v, b


@claims
def a_leaf_that_requires_grad_is_refused(lib: Any) -> Any:
    return lib.ones(2, requires_grad=True).unsqueeze_(0)


@claims
def results_are_written_into_out(lib: Any) -> Any:
    x, out = lib.arange(4.0), lib.empty(4)
    found = lib.exp(x, out=out)
    wide = lib.zeros(4, dtype=lib.float64)
    lib.add(x, 1, out=wide)
    return found is out, out, wide, lib.zeros(2, out=lib.empty(2))


@claims
def an_empty_out_takes_the_shape_of_the_result(lib: Any) -> Any:
    out = lib.empty(0)
    lib.mm(lib.ones(2, 3), lib.ones(3, 2), out=out)
    return out


@claims
def an_out_of_another_shape_is_resized_with_a_warning(lib: Any) -> Any:
    out = lib.empty(3)
    lib.sin(lib.ones(2, 2), out=out)
    return list(out.shape)


@claims
def several_results_go_into_a_tuple(lib: Any) -> Any:
    values, indices = lib.empty(2), lib.empty(2, dtype=lib.int64)
    lib.max(lib.tensor([[1.0, 3.0], [4.0, 2.0]]), 1)
    lib.sort(lib.tensor([3.0, 1.0]), out=(values, indices))
    return values, indices


@claims
def out_of_a_smaller_kind_is_refused(lib: Any) -> Any:
    return lib.sin(lib.ones(2), out=lib.empty(2, dtype=lib.int64))


@claims
def out_records_no_history(lib: Any) -> Any:
    return lib.sin(lib.ones(2, requires_grad=True), out=lib.empty(2))


@claims
def resize_keeps_elements_in_order(lib: Any) -> Any:
    x = lib.arange(6.0)
    x.resize_(2, 2)
    y = lib.arange(4.0)
    y.resize_(2, 3)
    return x, y.reshape(-1)[:4], list(y.shape)


@claims
def diagonals_are_filled(lib: Any) -> Any:
    return [
        lib.zeros(5, 2).fill_diagonal_(3.0, wrap=True), lib.zeros(3, 5).fill_diagonal_(2.0),
        lib.zeros(3, 3, 3).fill_diagonal_(1.0),
    ]  # fmt: skip


@claims
def functions_of_the_program_are_applied(lib: Any) -> Any:
    x = lib.arange(3.0)
    x.apply_(lambda v: v * v + 1)
    y = lib.ones(3)
    y.map_(x, lambda a, b: a + 2 * b)
    return x, y


@claims
def a_tensor_tells_where_and_how_it_is_held(lib: Any) -> Any:
    x = lib.ones(2, 3)
    return [
        x.is_cpu, x.is_cuda, x.is_meta, x.is_quantized, x.layout == lib.strided, x.ndimension(), x.get_device(),
        x.is_signed(), lib.ones(1, dtype=lib.uint8).is_signed(), x.is_same_size(lib.zeros(2, 3)), x.name, x.is_pinned(),
        x.new([1.0, 2.0]), list(x.new(4, 5).shape),
    ]  # fmt: skip


@claims
def strides_of_fresh_tensors_can_be_chosen(lib: Any) -> Any:
    return [
        lib.empty_strided((2, 3), (1, 2)).stride(), lib.empty_permuted((2, 3, 4), (0, 2, 1)).stride(),
        lib.ones(2).new_empty_strided((2, 2), (1, 2)).stride(), lib.scalar_tensor(3),
    ]  # fmt: skip


@claims
def copies_and_tensors_alike_keep_strides_of_extents_of_one(lib: Any) -> Any:
    found = []
    for x in (
        lib.ones(1, 3).t(), lib.ones(4, 1, 3).as_strided((4, 1, 3), (3, 7, 1)),
        lib.ones(2, 1, 3, 1).permute(3, 1, 0, 2), lib.ones(2, 3)[:, :1], lib.ones(1, 1).expand(3, 1),
    ):  # fmt: skip
        made = [
            x.clone(), x.clone(memory_format=lib.contiguous_format), x.double(), x.contiguous(), x.detach().clone(),
            x.new_empty(tuple(x.shape)), x.bernoulli(0.5), lib.bernoulli(x), lib.full_like(x, 2.0),
            lib.empty_like(x, dtype=lib.float64), lib.randint_like(x, 3), lib.t_copy(x) if x.ndim == 2 else x,
        ]  # fmt: skip
        made += [make(x) for make in (lib.empty_like, lib.zeros_like, lib.ones_like, lib.rand_like, lib.randn_like)]
        found.append([tuple(y.stride()) for y in made])
    return found


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_the_same_as_torch(claim: Claim) -> None:
    same(claim)


def test_a_wrong_layout_is_refused() -> None:
    import gradwire

    assert raises(lambda: gradwire.empty_permuted((2, 3), (0, 0))) == "RuntimeError"
    assert raises(lambda: gradwire.empty_strided((2, 3), (1,))) == "RuntimeError"
