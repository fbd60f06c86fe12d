"""``out=``: allowed dtypes, allowed memory sharing, and the written result."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from tests.side_by_side import Claim, Claims, name_of, same

claims = Claims()


def _matrix(lib: Any) -> Any:
    return (lib.arange(12.0) * 7 % 11 - 4).reshape(3, 4)


@claims
def functions_that_choose_along_a_dimension_take_two_tensors(lib: Any) -> Any:
    found = []
    for choose in (lib.max, lib.min, lib.median, lib.nanmedian, lib.mode, lib.cummax):
        out = lib.empty(0), lib.empty(0, dtype=lib.int64)
        result = choose(_matrix(lib), 1, out=out)
        found.append((result[0] is out[0], result.values, result.indices))
    return found


@claims
def functions_that_are_several_ops_take_out_too(lib: Any) -> Any:
    x, out = _matrix(lib), lib.empty(0)
    made = [
        lib.hstack([x, x], out=lib.empty(0)), lib.vstack([x, x], out=lib.empty(0)), lib.diff(x, out=lib.empty(0)),
        lib.norm(x, 2, 1, out=lib.empty(0)), lib.where(x > 0, x, -x, out=lib.empty(0)),
        lib.scatter(x, 1, lib.tensor([[0], [1], [2]]), 9.0, out=lib.empty(0)),
        lib.searchsorted(lib.arange(4.0), x, out=lib.empty(0, dtype=lib.int64)),
        lib.nonzero(x > 0, out=lib.empty(0, dtype=lib.int64)).contiguous(),
        lib.isin(x, x[0], out=lib.empty(0, dtype=lib.bool)), lib.squeeze_copy(x[:1], out=lib.empty(0)),
        lib.float_power(x, 2, out=lib.empty(0, dtype=lib.float64)), lib.maximum(x, x + 1, out=lib.empty(0)),
    ]  # fmt: skip
    return made, lib.permute_copy(x, (1, 0), out=out) is out


@claims
def creation_takes_the_dtype_of_out(lib: Any) -> Any:
    def whole() -> Any:
        return lib.empty(0, dtype=lib.int64)

    return (
        lib.arange(0, 6, 1.5, out=whole()), lib.full((2,), 1.7, out=whole()), lib.zeros(3, out=whole()),
        lib.linspace(0, 3, 4, out=whole()), lib.eye(2, out=whole()),
    )  # fmt: skip


@claims
def sums_are_computed_in_the_dtype_of_out(lib: Any) -> Any:
    x = lib.tensor([0.6, 0.7, 1.5])
    return [f(x, 0, out=lib.empty(0, dtype=lib.int64)) for f in (lib.sum, lib.prod, lib.cumsum, lib.cumprod)]


@claims
def ranges_fill_an_out_of_as_many_elements_in_its_own_shape(lib: Any) -> Any:
    part, square, columns = lib.zeros(2, 3), lib.zeros(2, 2), lib.zeros(3, 3)
    return (
        lib.arange(0, 4, out=part.narrow(1, 1, 2)).stride(), part, lib.arange(4, out=square),
        lib.linspace(0, 5, 6, out=columns[:, :2]).shape, lib.logspace(0, 1, 2, out=columns[0, 1:]), columns,
    )  # fmt: skip


@claims
def an_out_of_another_shape_stays_in_its_memory_where_there_is_room(lib: Any) -> Any:
    memory, apart = lib.zeros(10), lib.zeros(3, 2)
    grown = memory[2:4]
    lib.add(lib.arange(3.0), 1, out=grown)
    turned = apart.t()
    lib.mul(lib.arange(6.0), 2, out=turned)
    return grown, memory, turned, turned.stride(), apart


@claims
def resize_shows_the_memory_in_order(lib: Any) -> Any:
    memory = lib.arange(10.0)
    part, turned = memory[2:6].resize_(2, 3), lib.arange(6.0).reshape(3, 2).t()
    part[1, 2] = -1
    same = lib.zeros(3, 2).t().resize_(2, 3)
    return memory, part, turned.resize_(6), turned.stride(), same.stride(), lib.arange(3.0).resize_(2)


@claims
def a_step_that_out_makes_zero_is_refused(lib: Any) -> Any:
    return lib.arange(0, 64, 0.5, out=lib.empty(0, dtype=lib.int64))


@claims
def a_dtype_that_contradicts_out_is_refused(lib: Any) -> Any:
    return lib.zeros(3, dtype=lib.float32, out=lib.empty(3, dtype=lib.float64))


@claims
def sorted_values_go_into_their_own_dtype_alone(lib: Any) -> Any:
    return lib.sort(lib.ones(3), out=(lib.empty(3, dtype=lib.float64), lib.empty(3, dtype=lib.int64)))


@claims
def a_matrix_product_goes_into_its_own_dtype_alone(lib: Any) -> Any:
    return lib.mm(lib.ones(2, 2), lib.ones(2, 2), out=lib.empty(2, 2, dtype=lib.float64))


@claims
def copies_products_and_norms_go_into_their_own_dtype_alone(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    refused = []
    for function, args in (
        (lib.select_copy, (x, 0, 0)), (lib.slice_copy, (x, 0, 0, 1)), (lib.view_as_real_copy, (lib.complex(x, x),)),
        (lib.view_as_complex_copy, (x[:, :2],)), (lib.inner, (x, x)), (lib.inner, (x[0], x[0])),
        (lib.frobenius_norm, (x, (0, 1))), (lib.nuclear_norm, (x,)),
    ):  # fmt: skip
        with warnings.catch_warnings(action="ignore"):  # torch calls the norms deprecated, once
            try:
                function(*args, out=lib.empty(0, dtype=lib.complex128))
            except RuntimeError:
                refused.append(function.__name__)
    return refused


@claims
def parts_and_draws_go_into_another_dtype(lib: Any) -> Any:
    x, parts = lib.arange(6.0).reshape(2, 3), (lib.empty(1, 3, dtype=lib.int64), lib.empty(1, 3, dtype=lib.int64))
    lib.split_copy(x, 1, out=parts)
    return parts, lib.normal(x, x + 1, out=lib.empty(2, 3, dtype=lib.float64)).dtype


@claims
def joined_floats_do_not_go_into_integers(lib: Any) -> Any:
    return lib.cat([lib.ones(2)], out=lib.empty(2, dtype=lib.int64))


@claims
def what_is_gathered_does_not_go_where_it_comes_from(lib: Any) -> Any:
    x = lib.arange(6.0)
    return lib.gather(x, 0, lib.tensor([2, 1, 0, 5, 4, 3]), out=x)


@claims
def what_is_joined_does_not_go_into_a_part_of_it(lib: Any) -> Any:
    x = lib.zeros(4, 6)
    return lib.cat([x[:1], lib.ones(1, 6)], out=x[:2])


@claims
def a_truth_does_not_go_into_a_part_of_what_it_is_about(lib: Any) -> Any:
    x = lib.zeros(8, dtype=lib.bool)
    return lib.signbit(x[:4], out=x[2:6])


@claims
def the_parts_of_numbers_do_not_go_into_a_part_of_them(lib: Any) -> Any:
    x = lib.zeros(8)
    return lib.frexp(x[:4], out=(x[2:6], lib.empty(4, dtype=lib.int32)))


@claims
def parts_of_one_memory_that_do_not_meet_may_be_read_and_written(lib: Any) -> Any:
    x = lib.arange(8.0)
    lib.cat([x[:2], x[2:4]], out=x[4:])
    return x


@claims
def an_elementwise_function_may_write_over_what_it_reads(lib: Any) -> Any:
    x = _matrix(lib)
    lib.exp(x, out=x)
    lib.cumsum(x, 0, out=x)
    return x


@claims
def a_view_knows_where_its_memory_begins(lib: Any) -> Any:
    x = lib.arange(12.0).reshape(3, 4)
    return x.storage_offset(), x[1].storage_offset(), x[1:, 2].detach().storage_offset(), x.clone()[2:].storage_offset()


@claims
def a_copy_in_row_major_order_can_be_viewed_flat(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3).t()
    flat = x.clone(memory_format=lib.contiguous_format).view(-1)
    return flat, lib.clone(x, memory_format=lib.preserve_format)


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_the_same_as_torch(claim: Claim) -> None:
    same(claim)
