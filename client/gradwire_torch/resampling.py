"""Resizing images, sampling them at points, and borders."""

from __future__ import annotations

from typing import Any, Final

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .dispatch import computes, gradients_by

_SMOOTH: Final = {
    "upsample_linear1d": ("linear", False),
    "upsample_bilinear2d": ("bilinear", False),
    "upsample_trilinear3d": ("trilinear", False),
    "upsample_bicubic2d": ("bicubic", False),
    "_upsample_bilinear2d_aa": ("bilinear", True),
    "_upsample_bicubic2d_aa": ("bicubic", True),
}
"""Modes with ``align_corners``, and whether they smooth before they shrink."""
_NEAREST: Final = {
    f"{prefix}{count}d": mode
    for prefix, mode in (("upsample_nearest", "nearest"), ("_upsample_nearest_exact", "nearest-exact"))
    for count in (1, 2, 3)
}


def _scales(scales: tuple[Any, ...]) -> tuple[float, ...] | None:
    return None if not scales or any(s is None for s in scales) else tuple(map(float, scales))


def _smooth(name: str, mode: str, antialias: bool) -> None:
    @computes(name)
    def resize(self: Any, output_size: Any, align_corners: bool, *scales: Any) -> Any:
        return call("interpolate", self, tuple(output_size), mode, align_corners, _scales(scales), antialias)

    @computes(f"{name}_backward")
    def back(grad_output: Any, output_size: Any, input_size: Any, align_corners: bool, *scales: Any) -> Any:
        how = mode, align_corners, _scales(scales), antialias
        return call("interpolate_backward", grad_output, tuple(input_size[2:]), *how)


def _nearest(name: str, mode: str) -> None:
    @computes(name)
    def resize(self: Any, output_size: Any, *scales: Any) -> Any:
        return call("interpolate", self, tuple(output_size), mode, False, _scales(scales), False)

    @computes(f"{name}_backward")
    def back(grad_output: Any, output_size: Any, input_size: Any, *scales: Any) -> Any:
        return call("interpolate_backward", grad_output, tuple(input_size[2:]), mode, False, _scales(scales), False)


for _name, (_mode, _antialias) in _SMOOTH.items():
    _smooth(_name, _mode, _antialias)
for _name, _mode in _NEAREST.items():
    _nearest(_name, _mode)


def _border(name: str, mode: str) -> None:
    @computes(name)
    def pad(self: Any, padding: Any) -> Any:
        return call("pad", self, tuple(padding), mode, None)

    @computes(f"{name}_backward")
    def back(grad_output: Any, self: Any, padding: Any) -> Any:
        return gradients_by(pad, [self, padding], [0], grad_output)[0]


for _kind, _mode in (("reflection", "reflect"), ("replication", "replicate")):
    for _count in (1, 2, 3):
        _border(f"{_kind}_pad{_count}d", _mode)


@computes("grid_sampler_2d", "grid_sampler_3d", "_grid_sampler_2d_cpu_fallback")
def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    return gw.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@computes("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool,
    output_mask: Any,
) -> Any:  # fmt: skip
    given = [input, grid, interpolation_mode, padding_mode, align_corners]
    wanted = [i for i, asked in enumerate(output_mask) if asked]
    found = dict(zip(wanted, gradients_by(grid_sampler, given, wanted, grad_output), strict=True))
    return found.get(0), found.get(1)
