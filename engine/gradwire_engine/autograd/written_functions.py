"""Functions that are written by the engine: straight-line Python of which all but a few names are fixed.

The text of such a function depends on an op and on how it is called, and hardly on shapes, so its code is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Final

import numpy as np

from gradwire_protocol.meta import Meta

from ..runtime.arrays import native
from .operands import UNDONE, lay_out
from .tape import Node, SavedTensor, edge_of
from .tensor import Storage, Tensor

TEXTS_KEPT: Final = 2_048

WORDS: Final[dict[str, Any]] = {
    "Node": Node, "SavedTensor": SavedTensor, "Storage": Storage, "Tensor": Tensor, "UNDONE": UNDONE,
    "edge_of": edge_of, "lay_out": lay_out, "ndarray": np.ndarray, "np": np,
}  # fmt: skip
"""What every such function may use."""


def written(parameters: str, body: Sequence[str], names: dict[str, Any]) -> Any:
    """A function of these parameters.

    Args:
        body: its lines; each may have several, and blocks are indented by four.
        names: what its names stand for, beside :data:`WORDS`.
    """
    scope = WORDS | names
    exec(_code("\n    ".join([f"def written({parameters}):", *body])), scope)  # noqa: S102  # no word of a client
    return scope["written"]


@lru_cache(TEXTS_KEPT)
def _code(text: str) -> CodeType:
    return compile(text, "<written by the engine>", "exec")


def laid_out(at: int | str, out: Meta, beside: Sequence[str], names: dict[str, Any]) -> list[str]:
    """Lines after which the array ``a``, with this number, is laid out as the rule has announced, in memory of its own,
    whatever a kernel has returned.

    Args:
        beside: the arrays that the kernel was given, as expressions.
    """
    names |= {f"m{at}": out, f"d{at}": native(out.dtype), f"s{at}": out.shape}
    ordered = f"a{at}.flags.c_contiguous"
    if not out.contiguous:
        names[f"o{at}"] = tuple([step * out.dtype.itemsize for step in out.stride])
        ordered = f"a{at}.strides == o{at}"
    return [
        f"if type(a{at}) is not ndarray or a{at}.dtype is not d{at} or a{at}.base is not None "
        f"or a{at}.shape != s{at} or not {ordered}:",
        f"    a{at} = lay_out(a{at}, m{at}, engine.backends['cpu'], [{', '.join(beside)}])",
    ]
