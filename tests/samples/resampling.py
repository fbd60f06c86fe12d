"""Samples of resampling: other sizes, and grids."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, HALVES, Sample, samples
from tests.samples.pooling import last


def _interpolate(x, size, mode="nearest", align_corners=False, scales=None, antialias=False):
    aligned = align_corners if mode in ("linear", "bilinear", "bicubic", "trilinear") else None
    if scales is None:
        return nnf.interpolate(x, size, mode=mode, align_corners=aligned, antialias=antialias)
    return nnf.interpolate(x, scale_factor=scales, mode=mode, align_corners=aligned, antialias=antialias)


def _grown(x, scales):
    return tuple(int(n * f) for n, f in zip(x.shape[2:], scales, strict=True))


@samples("interpolate", dtypes=("uint8", *HALVES, *FLOATS), ref=_interpolate, tol=(1e-5, 1e-5))
def interpolate_images(make):
    for size in ((6, 8), (2, 3), (4, 4), (1, 9)):
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
            yield Sample(make(2, 3, 4, 5), size, mode)
    for mode in ("bilinear", "bicubic"):
        yield Sample(make(2, 3, 4, 5), (6, 3), mode, True)
        x = make(2, 3, 4, 5)
        yield Sample(x, _grown(x, (1.7, 0.6)), mode, False, (1.7, 0.6))
        yield Sample(make(2, 3, 9, 11), (4, 3), mode, False, None, True)
        yield Sample(make(2, 3, 4, 5), (7, 3), mode, True, None, True)
    x = make(2, 3, 4, 5)
    yield Sample(x, _grown(x, (1.7, 0.6)), "nearest", False, (1.7, 0.6))
    yield Sample(make(1, 2, 3, 40), (3, 2), "bicubic", False, None, True)


@samples("interpolate", dtypes=FLOATS, ref=_interpolate, tol=(1e-5, 1e-5))
def interpolate(make):
    for mode in ("nearest", "nearest-exact", "linear"):
        yield Sample(make(2, 3, 5), (8,), mode)
        yield Sample(make(2, 3, 5), (3,), mode)
    for mode in ("nearest", "nearest-exact", "trilinear"):
        yield Sample(make(2, 3, 4, 3, 2), (2, 5, 3), mode)
    yield Sample(make(2, 3, 4, 3, 2), (2, 5, 3), "trilinear", True)
    yield Sample(make(2, 3, 4, 5), (1, 1), "bilinear", True)
    yield Sample(make(2, 3, 4, 5), (1, 1), "bicubic", True)
    yield Sample(make(0, 3, 4, 5), (2, 2))
    yield Sample(last(make(2, 3, 4, 5)), (6, 6), "bilinear")
    yield Sample(last(make(2, 3, 4, 5)), (6, 6))
    yield Sample(make(2, 3, 4, 5, transposed=True), (6, 6), "bilinear")
    yield Sample(make(2, 0, 4, 5), (6, 6)).fails()
    yield Sample(make(2, 3, 4, 5), (0, 6)).fails()


@samples("interpolate", dtypes=("int64", "bool"), ref=_interpolate)
def interpolate_refusals(make):
    yield Sample(make(2, 3, 4, 5), (6, 8)).fails()


def _interpolate_backward(grad, extents, mode, align_corners, scales, antialias):
    x = torch.zeros(*grad.shape[:2], *extents, dtype=grad.dtype, requires_grad=True)
    with torch.enable_grad():
        y = _interpolate(x, tuple(grad.shape[2:]), mode, align_corners, scales, antialias)
        return torch.autograd.grad(y, x, grad, create_graph=True)[0]


@samples("interpolate_backward", dtypes=FLOATS, ref=_interpolate_backward, grad_fn=False, tol=(1e-5, 1e-5))
def interpolate_backward(make):
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        yield Sample(make(2, 3, 6, 3), (4, 5), mode, False, None, False)
    for mode in ("nearest", "nearest-exact"):
        yield Sample(make(2, 3, 6), (4,), mode, False, None, False)
        yield Sample(make(1, 2, 3, 4, 5), (2, 3, 3), mode, False, None, False)
    yield Sample(make(2, 3, 4, 3), (9, 11), "bilinear", False, None, True)
    yield Sample(make(2, 3, 4, 3), (9, 11), "bicubic", False, None, True)
    yield Sample(make(2, 3, 6), (4,), "linear", True, None, False)
    yield Sample(make(1, 2, 3, 4, 5), (2, 3, 3), "trilinear", False, None, False)


def _grid_sampler(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    return nnf.grid_sample(x, grid, mode, padding_mode, align_corners)


def _points(make, *shape):
    """Points inside and outside, none of them where a weight has a kink."""
    return make(*shape, low=-1.6, high=1.6)


@samples("grid_sampler", dtypes=FLOATS, ref=_grid_sampler, gradgrad=False, tol=(1e-4, 1e-5), grad_tol=(1e-3, 1e-4))
def grid_sampler(make):
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding_mode in ("zeros", "border", "reflection"):
            for align_corners in (False, True):
                yield Sample(make(2, 3, 4, 5), _points(make, 2, 3, 2, 2), mode, padding_mode, align_corners)
    for mode in ("bilinear", "nearest"):
        for padding_mode in ("zeros", "border", "reflection"):
            yield Sample(make(2, 2, 3, 4, 5), _points(make, 2, 3, 2, 2, 3), mode, padding_mode)
    yield Sample(make(0, 3, 4, 5), _points(make, 0, 3, 2, 2))
    yield Sample(make(1, 3, 1, 1), _points(make, 1, 3, 2, 2), "bilinear", "reflection", True)
    yield Sample(make(2, 3, 4, 5, transposed=True), _points(make, 2, 3, 2, 2))
    yield Sample(make(2, 3, 4, 5), _points(make, 1, 3, 2, 2)).fails()
    yield Sample(make(2, 3, 4, 5), _points(make, 2, 3, 2, 3)).fails()
    yield Sample(make(2, 3, 0, 5), _points(make, 2, 3, 2, 2)).fails()


@samples("grid_sampler", dtypes=("float16", "bfloat16"), ref=_grid_sampler)
def grid_sampler_in_half_precision(make):
    yield Sample(make(2, 3, 4, 5), _points(make, 2, 3, 2, 2))
    yield Sample(make(2, 3, 4, 5), _points(make, 2, 3, 2, 2), "nearest", "border")


def _polynomial_weights(place, order, mode):
    """The weights of a point's neighbours, polynomials of the distance from the first, differentiated."""
    near, far = np.poly1d([1.25, -2.25, 0, 1]), np.poly1d([-0.75, 3.75, -6, 3])
    cubic = [far(np.poly1d([1, 1])), near, near(np.poly1d([-1, 1])), far(np.poly1d([-1, 2]))]
    taps = [np.poly1d([-1, 1]), np.poly1d([1, 0])] if mode == "bilinear" else cubic
    found = []
    for tap in taps:
        value = place * 0
        for coefficient in np.polyder(tap, order).coeffs.tolist():
            value = value * place + coefficient
        found.append(value)
    return torch.stack(found)


def _dense(grid, extents, mode, orders):
    """What the samples at a grid's points are of an image with these extents: ``(N, points, elements)``, zero padding.

    Straight from the definition, one point and one corner at a time, for small grids.
    """
    count = len(extents)
    flat = grid.reshape(grid.shape[0], -1, count)
    found = torch.zeros(*flat.shape[:2], *extents, dtype=grid.dtype)
    first = 0 if mode == "bilinear" else -1
    for n in range(flat.shape[0]):
        for q in range(flat.shape[1]):
            axes = []
            for i in range(count):
                extent = extents[count - 1 - i]
                place = (flat[n, q, i] + 1) * extent / 2 - 0.5
                base = place.floor()
                scale = (extent / 2) ** orders[i]
                weights = _polynomial_weights(place - base, orders[i], mode) * scale
                axes.append([(int(base) + first + k, w) for k, w in enumerate(weights)])
            for x, wx in axes[0]:
                for y, wy in axes[1]:
                    if 0 <= x < extents[1] and 0 <= y < extents[0]:
                        found[n, q, y, x] += wx * wy
    return found.flatten(2)


def _grid_gather(x, grid, mode, padding_mode, align_corners, orders):
    taken = torch.einsum("npe,nce->ncp", _dense(grid, tuple(x.shape[2:]), mode, orders), x.flatten(2))
    return taken.reshape(*x.shape[:2], *grid.shape[1:-1])


def _grid_spread(grad, grid, extents, mode, padding_mode, align_corners, orders):
    laid = torch.einsum("npe,ncp->nce", _dense(grid, extents, mode, orders), grad.flatten(2))
    return laid.reshape(*grad.shape[:2], *extents)


CLOSED = {"grad_fn": False, "strides": False, "tol": (1e-4, 1e-4), "grad_tol": (1e-3, 1e-3)}


@samples("grid_gather", dtypes=("float64", "float32"), ref=_grid_gather, **CLOSED)
def grid_gather(make):
    for mode, orders in (("bilinear", (0, 0)), ("bilinear", (1, 0)), ("bicubic", (0, 1)), ("bicubic", (2, 1))):
        yield Sample(make(1, 2, 4, 5), make(1, 2, 2, 2, low=-0.9, high=0.9), mode, "zeros", False, orders)


@samples("grid_spread", dtypes=("float64", "float32"), ref=_grid_spread, **CLOSED)
def grid_spread(make):
    for mode, orders in (("bilinear", (0, 0)), ("bilinear", (0, 1)), ("bicubic", (1, 1))):
        grid = make(1, 2, 2, 2, low=-0.9, high=0.9)
        yield Sample(make(1, 2, 2, 2), grid, (4, 5), mode, "zeros", False, orders)


@samples("affine_grid_generator", dtypes=FLOATS, ref=torch.affine_grid_generator)
def affine_grid_generator(make):
    for align_corners in (False, True):
        yield Sample(make(2, 2, 3), (2, 3, 4, 5), align_corners)
        yield Sample(make(2, 3, 4), (2, 3, 2, 4, 5), align_corners)
    yield Sample(make(1, 2, 3), (1, 1, 1, 3), True)
    yield Sample(make(2, 2, 3), (3, 3, 4, 5), False).fails()


def _affine_backward(grad, size, align_corners):
    theta = torch.zeros(size[0], len(size) - 2, len(size) - 1, dtype=grad.dtype, requires_grad=True)
    with torch.enable_grad():
        grid = torch.affine_grid_generator(theta, size, align_corners)
        return torch.autograd.grad(grid, theta, grad, create_graph=True)[0]


@samples("affine_grid_generator_backward", dtypes=FLOATS, ref=_affine_backward, grad_fn=False, strides=False)
def affine_grid_generator_backward(make):
    yield Sample(make(2, 4, 5, 2), (2, 3, 4, 5), False)
    yield Sample(make(2, 2, 4, 5, 3), (2, 3, 2, 4, 5), True)
