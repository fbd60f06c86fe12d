"""``channels_last`` and its kin are strides, as in PyTorch: of copies, of new tensors, and of what is computed."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in

import gradwire
from gradwire_protocol.errors import ArgumentError

Program = Callable[[Any], Any]
LIBRARIES = (torch, gradwire)


def images(lib: Any, *shape: int) -> Any:
    """A batch in row-major order, with the same values in both libraries."""
    count = 1
    for extent in shape:
        count *= extent
    return ((lib.arange(count) * 37 % 101).to(lib.float32) / 50 - 1).reshape(shape)


def last(lib: Any, *shape: int) -> Any:
    order = lib.channels_last if len(shape) == 4 else lib.channels_last_3d
    return images(lib, *shape).contiguous(memory_format=order)


def outcome(program: Program, lib: Any) -> Any:
    try:
        return plain(program(lib))
    except Exception as error:
        return built_in(error)


def plain(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, gradwire.Tensor)):
        node = None if value.grad_fn is None else type(value.grad_fn).__name__
        return tuple(value.shape), value.stride(), str(value.dtype), node
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
METHODS = {
    **{
        name: lambda lib, x, f, name=name: getattr(x, name)(memory_format=f)
        for name in ("contiguous", "clone", "cpu", "float", "double", "bool", "is_contiguous")
    },
    "to": lambda lib, x, f: x.to(memory_format=f),
    "to a dtype": lambda lib, x, f: x.to(lib.float64, memory_format=f),
    "a copy": lambda lib, x, f: x.to("cpu", copy=True, memory_format=f),
    "like a tensor": lambda lib, x, f: x.to(x.double(), memory_format=f),
    "with history": lambda lib, x, f: x.requires_grad_().to(memory_format=f),
    "cloned with history": lambda lib, x, f: x.requires_grad_().contiguous(memory_format=f),
    "the same": lambda lib, x, f: x.to(memory_format=f) is x,
    "empty": lambda lib, x, f: lib.empty(x.shape, memory_format=f),
    **{
        name: lambda lib, x, f, name=name: getattr(lib, name)(x, memory_format=f)
        for name in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "clone")
    },
    "full_like": lambda lib, x, f: lib.full_like(x, 2, memory_format=f),
    "randint_like": lambda lib, x, f: lib.randint_like(x, 0, 9, memory_format=f),
    "resize_": lambda lib, x, f: lib.empty(3).resize_(tuple(x.shape), memory_format=f),
    "resize_as_": lambda lib, x, f: lib.empty(3).resize_as_(x, memory_format=f),
    "not a format": lambda lib, x, f: x.clone(memory_format=str(f)),
}
OPERANDS = {
    "images": lambda lib: images(lib, 2, 3, 4, 5),
    "channels last": lambda lib: last(lib, 2, 3, 4, 5),
    "volumes": lambda lib: last(lib, 2, 3, 2, 4, 5),
    "one channel": lambda lib: images(lib, 2, 1, 4, 5),
    "one pixel": lambda lib: images(lib, 2, 3, 1, 1),
    "a part": lambda lib: last(lib, 2, 4, 4, 5)[:, :3],
    "no images": lambda lib: images(lib, 0, 3, 4, 5),
    "a matrix": lambda lib: images(lib, 3, 2).t(),
}


def formatted(method: Callable[..., Any], make: Program, name: str, lib: Any) -> Any:
    return method(lib, make(lib), getattr(lib, name))


@pytest.mark.parametrize("method", METHODS)
def test_what_takes_a_memory_format(method: str) -> None:
    for operand, make in OPERANDS.items():
        for name in FORMATS:
            program = partial(formatted, METHODS[method], make, name)
            theirs, ours = (outcome(program, lib) for lib in LIBRARIES)
            assert ours == theirs, f"{operand}, {name}"


def test_values_are_where_the_strides_say() -> None:
    x = images(gradwire, 2, 3, 4, 5)
    moved = [
        x.clone(memory_format=gradwire.channels_last),
        x.contiguous(memory_format=gradwire.channels_last),
        x.double().to(gradwire.float32, memory_format=gradwire.channels_last),
        gradwire.empty(3).resize_(2, 3, 4, 5, memory_format=gradwire.channels_last).copy_(x),
    ]
    for each in moved:
        assert each.stride() == (60, 1, 15, 3)
        assert each.as_strided((120,), (1,)).tolist() == x.permute(0, 2, 3, 1).reshape(-1).tolist()
    kept = gradwire.arange(120.0).resize_(2, 3, 4, 5, memory_format=gradwire.channels_last)
    assert kept[0, :, 0, 0].tolist() == [0.0, 1.0, 2.0]


def test_formats_do_not_work_inside_of_a_map() -> None:
    x = gradwire.zeros(2, 2, 3, 4, 5)
    for function in (
        lambda t: t.clone(memory_format=gradwire.channels_last),
        lambda t: t.contiguous(memory_format=gradwire.channels_last),
        lambda t: gradwire.empty_like(t, memory_format=gradwire.channels_last),
    ):
        with pytest.raises(ArgumentError, match="vmap"):
            gradwire.func.vmap(function)(x)
    same = gradwire.func.vmap(lambda t: t.clone(memory_format=gradwire.contiguous_format))(x)
    assert same.stride() == x.stride()


def rows(lib: Any) -> Any:
    return images(lib, 2, 9, 4).transpose(1, 2)


COMPUTED = {
    "elementwise": lambda lib: (
        last(lib, 2, 3, 4, 5).relu() + last(lib, 2, 3, 4, 5) * lib.ones(1, 3, 1, 1),
        last(lib, 2, 3, 4, 5) + images(lib, 2, 3, 4, 5),
    ),
    "a weight that is": lambda lib: [
        lib.conv2d(images(lib, *shape), last(lib, 4, 3, 3, 3)) for shape in ((2, 3, 5, 6), (3, 5, 6))
    ],
    "convolutions of volumes": lambda lib: [
        lib.conv3d(last(lib, n, 3, 4, 5, 6).to(dtype), images(lib, 4, 3, 2, 3, 3).to(dtype))
        for n in (1, 2)
        for dtype in (lib.float32, lib.float64)
    ],
    "transposed convolutions": lambda lib: [
        lib.conv_transpose2d(last(lib, 2, 4, 5, 6), images(lib, 4, 2, 2, 2)),
        lib.conv_transpose2d(images(lib, 4, 5, 6), last(lib, 4, 2, 2, 2)),
        lib.conv_transpose3d(last(lib, 1, 4, 2, 5, 6), images(lib, 4, 2, 2, 2, 2)),
    ],
    "rows": lambda lib: [
        lib.conv1d(rows(lib), images(lib, 5, 3, 4).transpose(1, 2)),
        lib.conv1d(rows(lib), images(lib, 5, 4, 3)),
        lib.conv1d(images(lib, 4, 9), images(lib, 5, 3, 4).transpose(1, 2)),
        lib.nn.functional.avg_pool1d(rows(lib), 2),
        lib.nn.functional.adaptive_avg_pool1d(rows(lib), 2),
        lib.nn.functional.max_pool1d(rows(lib), 2, return_indices=True),
    ],
    "layers": lambda lib: [
        layer(last(lib, 2, 4, 6, 8))
        for layer in (
            lib.nn.BatchNorm2d(4),
            lib.nn.GroupNorm(2, 4),
            lib.nn.MaxPool2d(2),
            lib.nn.AvgPool2d(2),
            lib.nn.PixelShuffle(2),
            lib.nn.PixelUnshuffle(2),
            lib.nn.AdaptiveAvgPool2d(1),
            lib.nn.AdaptiveMaxPool2d(2),
            lib.nn.ZeroPad2d(1),
            lib.nn.ReflectionPad2d(1),
            lib.nn.Upsample(scale_factor=2, mode="bilinear"),
            lib.nn.GLU(1),
            lib.nn.Softmax(1),
        )
    ],
    "padded volumes": lambda lib: [
        lib.nn.functional.pad(last(lib, 2, 3, 4, 5, 6), (1,) * 6, mode=mode)
        for mode in ("reflect", "replicate", "circular")
    ],
    "joined": lambda lib: [lib.cat([x[:, :2], x[:, 1:]], 1) for x in (last(lib, 2, 4, 5, 6), last(lib, 2, 4, 3, 5, 6))],
    "joined with others": lambda lib: lib.cat([last(lib, 2, 3, 4, 5), images(lib, 2, 3, 4, 5)], 1),
    "stacked": lambda lib: [lib.stack([last(lib, 2, 3, 4, 5)[:, :2]] * 2, dim) for dim in range(5)],
    "drawn": lambda lib: [lib.bernoulli(last(lib, 2, 3, 4, 5).abs() / 2), lib.normal(last(lib, 2, 3, 4, 5), 1.0)],
    "viewed by a copy": lambda lib: lib.view_copy(last(lib, 2, 3, 4, 5), (2, 60)),
}


@pytest.mark.parametrize("program", COMPUTED)
def test_what_is_computed_has_the_strides_of_pytorch(program: str) -> None:
    theirs, ours = (outcome(COMPUTED[program], lib) for lib in LIBRARIES)
    assert ours == theirs


def trained(lib: Any) -> Any:
    """Losses of a network, and the strides of all that is left: activations, gradients, states."""
    nn, functional = lib.nn, lib.nn.functional
    layers = (
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )
    model = nn.Sequential(*layers)
    with lib.no_grad():
        for parameter in model.parameters():
            parameter.copy_(images(lib, *parameter.shape) / 3)
    model = model.to(memory_format=lib.channels_last)
    optimizer = lib.optim.AdamW(model.parameters(), lr=0.01)
    losses, strides = [], []
    for _ in range(4):  # the server plans what it has seen three times
        activation, strides = last(lib, 4, 3, 8, 8), []
        for layer in layers:
            activation = layer(activation)
            strides.append(activation.stride())
        loss = functional.cross_entropy(activation, lib.tensor([0, 1, 2, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    strides += [p.grad.stride() for p in model.parameters()]
    strides += [s["exp_avg"].stride() for s in optimizer.state.values()]
    saved = io.BytesIO()
    lib.save(model.state_dict(), saved)
    saved.seek(0)
    loaded = lib.load(saved)
    strides += [value.stride() for value in loaded.values()]
    assert all(bool((loaded[name] == value).all()) for name, value in model.state_dict().items())
    model.load_state_dict(loaded)
    strides += [p.stride() for p in model.half().parameters()]
    strides += [
        p.stride() for p in nn.utils.convert_conv2d_weight_memory_format(model, lib.contiguous_format).parameters()
    ]
    return losses, strides


def test_a_network_in_channels_last_order_trains_as_in_pytorch() -> None:
    (their_losses, their_strides), (our_losses, our_strides) = (trained(lib) for lib in LIBRARIES)
    assert our_losses == pytest.approx(their_losses, rel=1e-5)
    assert our_strides == their_strides


def test_a_module_keeps_what_has_no_channels() -> None:
    def program(lib: Any) -> Any:
        made = lib.nn.ModuleList([lib.nn.Conv2d(3, 4, 3), lib.nn.Linear(3, 4), lib.nn.BatchNorm2d(4)])
        made.to(lib.float64, memory_format=lib.channels_last)
        empty = lib.nn.Conv2d(3, 4, 3).to(memory_format=lib.channels_last).to_empty(device="cpu")
        return [p.stride() for p in (*made.parameters(), *empty.parameters())]

    assert outcome(program, gradwire) == outcome(program, torch)
    refused = [
        outcome(lambda lib: lib.nn.Conv3d(3, 4, 3).to(memory_format=lib.channels_last), lib) for lib in LIBRARIES
    ]
    assert refused == ["RuntimeError"] * 2
