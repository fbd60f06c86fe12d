"""The line of the program that an operation comes from: lines of PyTorch's are none of the program's."""

from __future__ import annotations

from pathlib import Path

import torch

from gradwire._core.context.call_sites import count_as_inside


def install() -> None:
    """Look for the program's lines beyond those of PyTorch and of this package."""
    count_as_inside(*(str(Path(str(file)).parent) for file in (torch.__file__, __file__)), "<eval_with_key>")
