"""Small pictures of a tensor's values for notebooks: a histogram as SVG, a matrix as an image of few pixels."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gradwire_protocol.quantities import spell_number

from ..context.html import text

BARS: Final = 40
WIDTH, HEIGHT = 240, 76
FLOOR: Final = 60
"""Where the bars of a histogram stand; below it is its axis."""
FILL: Final = "#4a8fd9"

ROWS, COLUMNS = 48, 96
"""Pixels of an image at most."""
SHOWN: Final = (220, 120)
"""The width and the height that an image is enlarged to, at most."""

_SEQUENTIAL: Final = ((24, 28, 72), (38, 84, 140), (36, 142, 150), (120, 190, 110), (248, 226, 96))
_DIVERGING: Final = ((22, 74, 150), (92, 152, 214), (238, 238, 238), (228, 134, 92), (168, 36, 40))
_NOT_A_NUMBER: Final = (214, 40, 190)
_LEVELS: Final = 255
"""Colours of an image; the one after them is that of NaN."""


def histogram(counts: Sequence[int], low: float, high: float) -> str:
    """The counts of equal intervals between two numbers, as SVG in the text's colour."""
    most = max([*counts, 1])
    step = WIDTH / len(counts)
    bars = []
    for at, count in enumerate(counts):
        if count:
            tall = max(1.0, (FLOOR - 2) * count / most)
            span = (high - low) / len(counts) if high - low < float("inf") else 0.0
            told = f"{spell_number(low + at * span)} to {spell_number(low + (at + 1) * span)}: {count:,}"
            bars.append(
                f'<rect x="{at * step + 0.5:.1f}" y="{FLOOR - tall:.1f}" width="{step - 1:.1f}" height="{tall:.1f}">'
                f"<title>{text(told)}</title></rect>"
            )
    zero = ""
    if low < 0 < high:
        x = WIDTH * (0 - low) / (high - low)
        zero = f'<path d="M{x:.1f} 0V{FLOOR + 3}" stroke="currentColor" stroke-dasharray="2 2" opacity=".6"/>'
    label = f"histogram from {spell_number(low)} to {spell_number(high)}"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(label)}">'
        f'<g fill="{FILL}">{"".join(bars)}</g>{zero}'
        f'<path d="M0 {FLOOR}.5H{WIDTH}" stroke="currentColor" opacity=".6"/>'
        f'<g fill="currentColor" font-size="11" font-family="sans-serif"><text x="0" y="{HEIGHT - 3}">'
        f'{text(spell_number(low))}</text><text x="{WIDTH}" y="{HEIGHT - 3}" text-anchor="end">'
        f"{text(spell_number(high))}</text></g></svg>"
    )


def image(values: npt.NDArray[Any], shape: Sequence[int]) -> str:
    """A matrix as an image with the range of its colours: dark to bright, or blue to red around 0.

    Args:
        values: the matrix, made small, without infinite elements; NaN has a colour of its own.
        shape: that of the whole matrix, for the proportions.
    """
    numbers = values[~np.isnan(values)]
    low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
    around_zero = low < 0 < high
    if around_zero:
        high = max(-low, high)
        low = -high
    ramp = _DIVERGING if around_zero else _SEQUENTIAL
    halved = high / 2 - low / 2  # the difference itself may be infinite
    with np.errstate(invalid="ignore", over="ignore"):
        part = (values / 2 - low / 2) / halved if halved > 0 else np.where(np.isnan(values), np.nan, 0.5)
        pixels = np.where(np.isnan(part), _LEVELS, np.clip(np.nan_to_num(part) * (_LEVELS - 1), 0, _LEVELS - 1))
    data = _png(np.rint(pixels).astype(np.uint8), _palette(ramp))
    scale = min(SHOWN[0] / shape[1], SHOWN[1] / shape[0])
    width, height = (max(round(scale * extent), 6) for extent in (shape[1], shape[0]))
    label = f"image of the {shape[0]} x {shape[1]} matrix, colours from {spell_number(low)} to {spell_number(high)}"
    if tuple(values.shape) != tuple(shape):
        label += "; each pixel is the mean of several elements"
    stops = ",".join(f"rgb{colour}" for colour in ramp)
    return (
        f'<img alt="{text(label)}" title="{text(label)}" src="data:image/png;base64,{data}" width="{width}" '
        f'height="{height}" style="image-rendering:pixelated;display:block;margin:0;max-width:100%">'
        f'<div style="display:flex;align-items:center;gap:.4em;font-size:11px;margin-top:.2em">'
        f"<span>{text(spell_number(low))}</span>"
        f'<span style="flex:1;min-width:4em;height:.6em;background:linear-gradient(90deg,{stops})"></span>'
        f"<span>{text(spell_number(high))}</span></div>"
    )


def _palette(ramp: Sequence[tuple[int, int, int]]) -> bytes:
    places = np.linspace(0, 1, len(ramp))
    wanted = np.linspace(0, 1, _LEVELS)
    colours = np.stack([np.interp(wanted, places, [stop[i] for stop in ramp]) for i in range(3)], axis=1)
    return np.rint(colours).astype(np.uint8).tobytes() + bytes(_NOT_A_NUMBER)


def _png(pixels: npt.NDArray[np.uint8], palette: bytes) -> str:
    """A PNG file with a palette, in base64."""
    rows, columns = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)  # each line is filtered by "none"
    head = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    file = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return b64encode(file).decode()
