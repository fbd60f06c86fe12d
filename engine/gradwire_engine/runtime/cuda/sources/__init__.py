"""CUDA C++ sources, which CuPy passes to NVRTC, and the tests compile for a GPU and for the CPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent

STANDS_ON: Final[dict[str, tuple[str, ...]]] = {
    "rows": ("prelude",), "channels": ("prelude",), "losses": ("prelude",), "optimizer": ("prelude",),
    "embedding": ("prelude",), "scatter": ("prelude",), "philox": ("prelude",),
    "dropout": ("prelude", "philox"), "attention": ("prelude", "philox"), "recurrent": ("prelude",), "prelude": (),
}  # fmt: skip
"""The files that go before each one."""

TYPED: Final = (
    "rows", "channels", "embedding", "scatter", "losses", "optimizer", "dropout", "recurrent", "attention",
)  # fmt: skip
"""Sources that are compiled once per element type, ``T``."""

TYPES: Final[dict[str, str]] = {
    "float16": "float16", "bfloat16": "bfloat16", "float32": "float", "float64": "double", "bool": "bool",
    "int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int", "int64": "long long",
    "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
}  # fmt: skip
"""Element types in C++, by their names in NumPy."""


@cache
def text(name: str) -> str:
    """One file."""
    return (_HERE / f"{name}.cu").read_text(encoding="utf-8")


def source(name: str, element: str | None = None) -> str:
    """A whole translation unit; ``element`` is the NumPy name of the element type, for those that have one."""
    parts = [text(each) for each in STANDS_ON[name]]
    if element is not None:
        parts.append(f"typedef {TYPES[element]} T;\n")
    parts.append(text(name))
    return "\n".join(parts)
