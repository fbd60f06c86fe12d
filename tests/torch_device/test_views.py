"""Views, strides, what is written in place and to ``out``, and tensors at the edges: empty, 0-dim, expanded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .side_by_side import DEVICE, on_both


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_what_is_written_to_a_view_is_in_what_it_views() -> None:
    def lines(x: Any) -> Any:
        rows = x[1:]
        column = rows.t()[1]
        column.fill_(7)
        rows.unsqueeze_(0)
        rows.squeeze_(0).t_()
        rows[0].neg_()
        flat = x.view(-1)
        flat[::5] = 0
        return x, rows, column, flat

    on_both(lines, numbers(4, 5))


def test_memory_is_shared_as_on_the_cpu() -> None:
    def lines(x: Any) -> Any:
        views = [x[2:], x.t(), x.reshape(-1), x.contiguous(), x.detach(), x.flatten(), x.expand(2, 4, 6), x.diagonal()]
        copies = [x.t().reshape(-1), x.clone(), x.to(torch.float64), x.t().contiguous(), x[[0, 1]]]
        own = x.untyped_storage().data_ptr()
        return [v.untyped_storage().data_ptr() == own for v in (*views, *copies)], [v.storage_offset() for v in views]

    on_both(lines, numbers(4, 6))


def test_a_resized_tensor_keeps_what_it_had() -> None:
    def lines(x: Any) -> Any:
        x.resize_(3)
        first = x.clone()
        x.resize_(2, 3)
        return first, x

    on_both(lines, numbers(6))


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_results_have_the_cpus_strides(order: torch.memory_format) -> None:
    def lines(x: Any) -> Any:
        y = x.contiguous(memory_format=order)
        return [
            y, y + 1, y.relu(), y * y.sum((2, 3), keepdim=True), y.clone(), y.transpose(0, 1) * 2, y.to(torch.float64),
            torch.empty_like(y).fill_(2), y > 0, torch.where(y > 0, y, -y), y.permute(2, 0, 1, 3).exp(),
        ]  # fmt: skip

    on_both(lines, numbers(2, 3, 4, 5))


EMPTY = {
    "sum": lambda x: x.sum(),
    "mean of the other dimension": lambda x: x.sum(0),
    "product": lambda x: x.t() @ x,
    "cat": lambda x: torch.cat([x, x + 1]),
    "softmax": lambda x: x.softmax(-1),
    "linear": lambda x: torch.nn.functional.linear(x, x.new_ones(2, 3)),
    "view": lambda x: x.view(3, 0),
    "index": lambda x: x[torch.zeros(0, dtype=torch.long, device=x.device)],
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.unique(),
    "sort": lambda x: x.sort()[0],
    "cumsum": lambda x: x.cumsum(0),
    "copy": lambda x: x.clone().copy_(x),
    "all": lambda x: (x > 0).all(),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_tensors(name: str) -> None:
    on_both(EMPTY[name], torch.empty(0, 3))


SCALARS = {
    "python int": lambda x: x + 2,
    "python float": lambda x: x * 2.5,
    "python bool": lambda x: x + True,
    "python complex": lambda x: x * 2j,
    "a 0-dim tensor of the CPU": lambda x: x * torch.tensor(3.0, dtype=torch.float64),
    "a 0-dim tensor of the CPU on the left": lambda x: torch.tensor(3) - x,
    "a 0-dim tensor of the device": lambda x: x + torch.tensor(3.0, dtype=torch.float64, device=x.device),
    "integers of the device": lambda x: x + torch.ones(3, dtype=torch.int64, device=x.device),
    "half with a wide number": lambda x: x.half() * 1e-3,
    "integers divided": lambda x: x.long() / 2,
    "integers floor divided": lambda x: x.long() // 2,
    "bools added": lambda x: (x > 0) + (x < 0),
    "a number over": lambda x: 2 / x,
    "a number to the power": lambda x: 2.0**x,
    "a comparison": lambda x: x.long() == 1.0,
    "where with a number": lambda x: torch.where(x > 0, x.double(), 1),
    "clamp with bounds of both kinds": lambda x: x.clamp(0, 0.5),
}


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes_are_promoted_as_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    on_both(SCALARS[name], numbers(3).to(dtype))


def test_0_dim_tensors() -> None:
    def lines(x: Any) -> Any:
        y = x.sum()
        z = y.clone()
        z += 1
        view = y.view(1, 1)
        view.mul_(2)
        return y, z, view, y.unsqueeze(0).expand(3), y.reshape(-1), torch.stack([y, z]), [y.item() > 0, y.dim()]

    on_both(lines, numbers(3))


def test_expanded_tensors_are_read_and_refused_as_targets() -> None:
    def lines(x: Any) -> Any:
        wide = x.expand(4, 3)
        with pytest.raises(RuntimeError):
            wide.add_(torch.ones(4, 3, device=x.device))
        return wide, wide + 1, wide.sum(0), wide.t() @ wide, wide.contiguous(), wide[::2]

    on_both(lines, numbers(1, 3))


@pytest.mark.parametrize("shape", [(0,), (2, 3), (3, 3)])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
@pytest.mark.filterwarnings("ignore:out has the shape:UserWarning")
def test_out_takes_the_shape_of_the_result(shape: tuple[int, ...]) -> None:
    def lines(x: Any) -> Any:
        found = []
        for function in (torch.sin, torch.neg, torch.relu if hasattr(torch.relu, "out") else torch.exp):
            out = torch.empty(shape, device=x.device)
            found.append((function(x, out=out) is out, out))
        values, indices = torch.empty(0, device=x.device), torch.empty(0, dtype=torch.long, device=x.device)
        torch.max(x, 1, out=(values, indices))
        torch.cat([x, x], out=(joined := torch.empty(0, device=x.device)))
        torch.matmul(x, x.t(), out=(product := torch.empty(0, device=x.device)))
        return found, values, indices, joined, product

    on_both(lines, numbers(2, 3))


def test_out_is_cast_where_that_is_safe() -> None:
    def lines(x: Any) -> Any:
        wide = torch.empty(3, dtype=torch.float64, device=x.device)
        torch.add(x, 1, out=wide)
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.add(x, 1, out=torch.empty(3, dtype=torch.int64, device=x.device))
        with pytest.raises(RuntimeError):
            x.long().add_(1.5)
        return wide

    on_both(lines, numbers(3))


def test_out_can_be_a_view() -> None:
    def lines(x: Any) -> Any:
        whole = torch.zeros(4, 6, device=x.device)
        torch.exp(x, out=whole[1:3, ::2])
        torch.mm(x, x.t(), out=whole.t()[:2, :2])
        return whole

    on_both(lines, numbers(2, 3))


def test_conjugated_and_negated_views() -> None:
    def lines(x: Any) -> Any:
        z = torch.complex(x, x + 1)
        c = z.conj()
        n = c.imag
        return [
            c.resolve_conj(), c + z, c @ z, torch.dot(c, z), c.abs(), n.resolve_neg(), n * 2, z.clone().copy_(c).real,
            c.t().resolve_conj(), c.conj(), z[None].mH.resolve_conj(), [c.is_conj(), n.is_neg(), c.conj().is_conj()],
        ]  # fmt: skip

    on_both(lines, numbers(3))


def test_what_is_written_to_a_conjugated_view() -> None:
    def lines(x: Any) -> Any:
        z = torch.complex(x, x + 1)
        z.conj().copy_(torch.ones_like(z) * 2j)
        z.conj().imag[:1] = 5
        return z

    on_both(lines, numbers(3))


def test_bytes_are_seen_in_another_dtype() -> None:
    def lines(x: Any) -> Any:
        bits = x.view(torch.int32)
        bits[0] = 0
        pairs = torch.view_as_complex(x.view(-1, 2))
        pairs[1] = 3 + 4j
        return x, bits, x[2:].view(torch.int16), pairs, torch.view_as_real(pairs[1:])

    on_both(lines, numbers(6))


def test_indices_and_masks() -> None:
    def lines(x: Any) -> Any:
        rows, columns = torch.tensor([0, 2, -1], device=x.device), torch.tensor([1, 0, 1], device=x.device)
        y = x.clone()
        y[rows, columns] = 5
        y[y < 0] = 0
        y[torch.tensor([True, False, True, False], device=x.device)] += 1
        y.index_put_((rows,), x[rows], accumulate=True)
        y.index_add_(0, columns, x[:3])
        y[..., None][0] = 2
        return [
            x[rows], x[:, columns], x[rows, columns], x[x > 0], x[None, rows[:, None], columns], x[-1], x[1, 2], y,
            x[torch.tensor(1, device=x.device)], x[torch.tensor([[True, False, True]] * 4, device=x.device)],
            x[[0, 1]], x[torch.tensor([0, 1])], x.masked_select(x > 0), x.take(columns), x[:, [2, 0]],
        ]  # fmt: skip

    on_both(lines, numbers(4, 3))


def test_a_copy_between_devices_keeps_strides_and_values() -> None:
    x = numbers(3, 4).t()
    there = x.to(DEVICE)
    assert there.stride() == x.stride()
    assert torch.equal(there.cpu(), x)
    assert torch.equal(there[1:, ::2].cpu(), x[1:, ::2])
    back = torch.empty(4, 3)
    back.copy_(there)
    assert torch.equal(back, x)
    there[0].copy_(torch.arange(3.0))
    assert there[0].tolist() == [0.0, 1.0, 2.0]
