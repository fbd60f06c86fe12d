"""``gradwire.fft``, ``stft`` and ``istft`` against torch: values, dtypes, graphs, gradients, errors."""

from __future__ import annotations

import pytest
from tests.side_by_side import Claims, name_of, same

pytestmark = pytest.mark.usefixtures("session")
claims = Claims()

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_REAL = ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn")


def signal(torch, name, *shape):
    """A leaf of the kind that a transform takes."""
    count = 1
    for n in shape:
        count *= n
    values = [((7 * i + 3) % 11 - 5) / 4 for i in range(count)]
    if name not in OF_REAL:
        values = [v + 0.25j * ((3 * i) % 7 - 3) for i, v in enumerate(values)]
    dtype = torch.float64 if name in OF_REAL else torch.complex128
    return torch.tensor(values, dtype=dtype).reshape(shape).detach().requires_grad_()


def weighted(torch, result):
    """A number that depends on every element of a result, differently."""
    flat = torch.view_as_real(result.resolve_conj()).reshape(-1) if result.is_complex() else result.reshape(-1)
    return (flat * torch.arange(1, flat.numel() + 1)).sum()


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_a_transform_along_a_dimension_and_its_gradient(name, norm):
    def transformed(torch):
        x = signal(torch, name, 3, 5)
        found = [getattr(torch.fft, name)(x, n, dim, norm) for n, dim in ((None, -1), (4, 0), (7, 1), (2, 1))]
        loss = sum(weighted(torch, f) for f in found)
        loss.backward()
        return found, x.grad

    same(transformed)


@pytest.mark.parametrize("name", [f"{name}{which}" for name in ONE for which in ("2", "n")])
def test_a_transform_along_several_dimensions_and_its_gradient(name):
    def transformed(torch):
        x = signal(torch, name, 3, 4, 5)
        given = ({}, {"s": (2, 6)}, {"dim": (2, 0)}, {"s": (4, -1), "dim": (0, 1)}, {"norm": "ortho"}, {"s": (3, 3)})
        found = [getattr(torch.fft, name)(x, **kwargs) for kwargs in given]
        loss = sum(weighted(torch, f) for f in found)
        loss.backward()
        return found, x.grad

    same(transformed)


@claims
def integers_and_bools_become_floats(torch):
    return [getattr(torch.fft, n)(x) for n in ONE for x in (torch.arange(4), torch.arange(4) > 1)]


@claims
def a_real_signal_has_the_gradient_of_its_spectrum(torch):
    x = signal(torch, "rfft", 6)
    grads = []
    for transform in (torch.fft.fft, torch.fft.ifft, torch.fft.irfft, torch.fft.hfft, torch.fft.fftn):
        (grad,) = torch.autograd.grad(weighted(torch, transform(x)), x)
        grads.append(grad.contiguous())
    return grads


@claims
def gradients_of_gradients(torch):
    x = signal(torch, "rfft", 5)
    (grad,) = torch.autograd.grad(torch.fft.rfft(x).abs().square().sum() ** 2, x, create_graph=True)
    return torch.autograd.grad(grad.square().sum(), x)[0].contiguous()


@claims
def frequencies(torch):
    fft = torch.fft
    given = [(n, d) for n in (0, 1, 4, 5) for d in (1.0, 0.25)]
    return [f(n, d) for f in (fft.fftfreq, fft.rfftfreq) for n, d in given] + [fft.fftfreq(4, dtype=torch.float64)]


@claims
def frequency_zero_moves_to_the_middle_and_back(torch):
    x = torch.arange(20.0).reshape(4, 5).detach().requires_grad_()
    moved = [torch.fft.fftshift(x), torch.fft.fftshift(x, 1), torch.fft.fftshift(x, (0,)), torch.fft.ifftshift(x)]
    return moved, torch.fft.ifftshift(torch.fft.fftshift(x))


REFUSED = {
    "halves": lambda torch, x: torch.fft.fft(x.half()),
    "bfloat16": lambda torch, x: torch.fft.irfftn(x.bfloat16()),
    "complex numbers where real ones go": lambda torch, x: torch.fft.rfft(torch.complex(x, x)),
    "complex numbers in several dimensions": lambda torch, x: torch.fft.ihfftn(torch.complex(x, x)),
    "no points": lambda torch, x: torch.fft.fft(x, 0),
    "a negative number of points": lambda torch, x: torch.fft.rfft(x, -2),
    "no points to go back to": lambda torch, x: torch.fft.irfft(x, 0),
    "one frequency": lambda torch, x: torch.fft.irfft(x[:, :1]),
    "an empty signal": lambda torch, x: torch.fft.fft(x[:, :0]),
    "a dimension out of range": lambda torch, x: torch.fft.fft(x, dim=2),
    "no dimension": lambda torch, x: torch.fft.fft(x.sum()),
    "an unknown norm": lambda torch, x: torch.fft.fft(x, norm="both"),
    "a dimension twice": lambda torch, x: torch.fft.fftn(x, dim=(0, -2)),
    "sizes and dimensions that differ": lambda torch, x: torch.fft.fftn(x, s=(2,), dim=(0, 1)),
    "more sizes than dimensions": lambda torch, x: torch.fft.fftn(x, s=(2, 2, 2)),
    "no dimensions at all": lambda torch, x: torch.fft.rfftn(x, dim=()),
    "a plane of a line": lambda torch, x: torch.fft.fft2(x[0]),
    "a fractional number of points": lambda torch, x: torch.fft.fft(x, n=2.0),
    "nothing to shift": lambda torch, x: torch.fft.fftshift(x.sum()),
    "whole frequencies": lambda torch, x: torch.fft.fftfreq(4, dtype=torch.int64),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_torch(name):
    same(lambda torch: REFUSED[name](torch, torch.arange(12.0).reshape(3, 4)))


def sound(torch, *shape):
    count = 1
    for n in shape:
        count *= n
    values = [((7 * i + 3) % 11 - 5) / 4 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).detach().requires_grad_()


FRAMES = {
    "usual": dict(n_fft=8),
    "a window": dict(n_fft=8, window=True),
    "a short window": dict(n_fft=8, win_length=5, window=True),
    "a short frame": dict(n_fft=8, win_length=6),
    "a hop": dict(n_fft=8, hop_length=3),
    "not centred": dict(n_fft=8, center=False),
    "normalized": dict(n_fft=8, normalized=True),
    "two sides": dict(n_fft=8, onesided=False),
    "an odd length": dict(n_fft=7),
    "a constant border": dict(n_fft=8, pad_mode="constant"),
}


def with_window(torch, given):
    given = dict(given)
    if given.pop("window", False):
        width = given.get("win_length", given["n_fft"])
        given["window"] = torch.hann_window(width, dtype=torch.float64).detach().requires_grad_()
    return given


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("shape", [(40,), (2, 40)])
def test_transforms_of_frames_and_their_gradients(name, shape):
    def transformed(torch):
        x, given = sound(torch, *shape), with_window(torch, FRAMES[name])
        found = torch.stft(x, return_complex=True, **given)
        weighted(torch, found).backward()
        window = given.get("window")
        return found.detach(), torch.view_as_real(found).shape, x.grad, None if window is None else window.grad

    same(transformed)


@pytest.mark.parametrize("name", [n for n in FRAMES if n not in ("a constant border", "not centred")])
def test_frames_become_the_signal_again(name):
    def recovered(torch):
        x, given = sound(torch, 2, 40), with_window(torch, FRAMES[name])
        spectrum = torch.stft(x, return_complex=True, **given).detach().requires_grad_()
        found = torch.istft(spectrum, **given, length=36)
        weighted(torch, found).backward()
        return found.detach(), spectrum.grad

    same(recovered)


@claims
def frames_need_a_choice_of_complex_or_pairs(torch):
    return torch.stft(sound(torch, 20), 8)


@claims
def pairs_of_real_numbers(torch):
    return torch.stft(sound(torch, 20), 8, return_complex=False).detach()


@claims
def a_frame_longer_than_the_signal(torch):
    return torch.stft(sound(torch, 6), 8, center=False, return_complex=True)


@claims
def windows_that_do_not_cover_the_signal(torch):
    spectrum = torch.ones(5, 4, dtype=torch.complex128)
    return torch.istft(spectrum, 8, window=torch.zeros(8, dtype=torch.float64))


@claims
def a_real_spectrum(torch):
    return torch.istft(torch.ones(5, 4), 8)


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_claim(claim):
    same(claim)
