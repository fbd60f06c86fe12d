"""What PyTorch's modules compute in one operation when nothing is differentiated, and what is computed nowhere else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from gradwire_torch.host import ComputedHere

from .side_by_side import DEVICE, on_both

pytestmark = pytest.mark.filterwarnings("error::gradwire_torch.host.ComputedHere")
PADDED = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


def sequences() -> torch.Tensor:
    return torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_encoders_in_evaluation(options: dict[str, Any], masked: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
    made = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    def lines(x: Any) -> Any:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5, device=x.device) if masked else None
        with torch.no_grad():
            return copy.deepcopy(made).to(x.device)(x, mask=mask).contiguous()

    on_both(lines, sequences())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_encoder_of_padded_sequences_gives_the_same_where_they_are_not_padded() -> None:
    torch.manual_seed(0)
    made = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()

    def lines(x: Any) -> Any:
        padded = PADDED.to(x.device)
        with torch.no_grad():
            return copy.deepcopy(made).to(x.device)(x, src_key_padding_mask=padded)[~padded]

    on_both(lines, sequences())


@pytest.mark.parametrize("weights", [{"need_weights": False}, {}, {"average_attn_weights": False}])
@pytest.mark.parametrize("padded", [False, True])
def test_attention_of_several_heads_in_evaluation(padded: bool, weights: dict[str, bool]) -> None:
    torch.manual_seed(0)
    made = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def lines(x: Any) -> Any:
        mask = PADDED.to(x.device) if padded else None
        with torch.no_grad():
            found = copy.deepcopy(made).to(x.device)(x, x, x, key_padding_mask=mask, **weights)
        return [t.contiguous() for t in found if t is not None]

    on_both(lines, sequences())


def grid(x: Any, *values: float) -> Any:
    return torch.tensor(values, device=x.device)


ROUNDED = {
    "by numbers": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.13, 2, -7, 6),
    "by tensors": lambda x: torch.fake_quantize_per_tensor_affine(x, grid(x, 0.13), grid(x, 2).int(), -7, 6),
    "by channels": lambda x: torch.fake_quantize_per_channel_affine(
        x, grid(x, 0.1, 0.2), grid(x, 0, 3).int(), 0, -7, 6
    ),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_as_quantization_would(name: str) -> None:
    def lines(x: Any) -> Any:
        made = ROUNDED[name](x)
        (made * x.detach()).sum().backward()
        return made, x.grad

    on_both(lines, sequences()[:, 0].requires_grad_())


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 0.5])
def test_segments(reduce: str, initial: float | None) -> None:
    def lines(x: Any) -> Any:
        lengths = torch.tensor([2, 0, 3], device=x.device)
        made = torch.segment_reduce(x, reduce, lengths=lengths, initial=initial)
        made[[0, 2]].square().sum().backward()
        return made, x.grad

    on_both(lines, sequences()[0].requires_grad_())


def test_copies_of_views() -> None:
    def lines(x: Any) -> Any:
        aten = torch.ops.aten
        return aten.detach_copy(x), aten._neg_view_copy(x), aten.copy(x, x + 1), aten.lift_fresh_copy(x)

    on_both(lines, sequences())


def test_a_gated_unit_in_a_direction() -> None:
    def lines(x: Any) -> Any:
        return [t.contiguous() for t in torch.func.jvp(F.glu, (x,), (x.cos(),))]

    on_both(lines, sequences())


def test_what_is_computed_here_returns_what_it_makes_beside_what_it_writes() -> None:
    def lines(x: Any) -> Any:
        def on(value: float) -> torch.Tensor:
            return torch.full((1,), value, device=x.device)

        enabled, zero_point = on(1).long(), on(0).int()
        least, most, scale = on(-0.5), on(0.5), on(1)
        made = torch.fused_moving_avg_obs_fake_quant(
            x, enabled, enabled, least, most, scale, zero_point, 0.01, 0, 255, 0
        )
        return made, least, most, scale

    with pytest.warns(ComputedHere, match="_fused_moving_avg"):
        on_both(lines, sequences())


def test_a_stream_may_be_told_of_a_tensor() -> None:
    torch.ones(3, device=DEVICE).record_stream(torch.Stream(device=DEVICE))
