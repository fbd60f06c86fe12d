"""The names of PyTorch's operations, from which ``_core/surface/aten_names.py`` of the client is derived."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Final

import torch

FILE: Final = Path(__file__).parents[1] / "client" / "gradwire" / "_core" / "surface" / "aten_names.py"
_HEADER: Final = '''\
"""The operations that PyTorch has under ``torch.ops.aten``. Derived by ``tools.aten_names``."""

from __future__ import annotations

from typing import Final

_TEXT: Final = """
'''
_PREFIX: Final = "aten::"


def names() -> list[str]:
    """The names, without their overloads'. Those of PyTorch's own tests are left out."""
    full: list[str] = torch._C._dispatch_get_all_op_names()  # type: ignore[no-untyped-call]
    found = {name.removeprefix(_PREFIX).partition(".")[0] for name in full if name.startswith(_PREFIX)}
    return sorted(name for name in found if not name.startswith(("_test_", "_foobar")))


def table() -> str:
    """The derived module."""
    lines = textwrap.fill(" ".join(names()), 119, break_on_hyphens=False, break_long_words=False)
    return f'{_HEADER}{lines}\n"""\nNAMES: Final = frozenset(_TEXT.split())\n'
