"""The metadata of the distribution ``torch``, which libraries ask for its version (``importlib.metadata``).

This file imports nothing of gradwire: a program that lists all distributions, as pytest does, must not load it.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any, Final

FOLLOWS: Final = "2.13.0"
"""The version of PyTorch whose behaviour gradwire follows."""
_PACKAGE: Final = Path(__file__).parents[2]
_NORMALISED: Final = re.compile(r"[-_.]+")


def torch_version() -> str:
    """The version that ``torch`` has: PyTorch's, and gradwire's own as its local part."""
    return f"{FOLLOWS}+gradwire.{runpy.run_path(str(_PACKAGE / '_core' / 'context' / 'version.py'))['__version__']}"


class TorchDistribution(Distribution):
    """The distribution ``torch`` as ``importlib.metadata`` shows it: name and version, no requirements, no files."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return (
                f"Metadata-Version: 2.1\nName: torch\nVersion: {torch_version()}\n"
                "Summary: gradwire in place of PyTorch: tensors and autograd that compute on a server\n"
            )
        return "torch\n" if filename == "top_level.txt" else None

    def locate_file(self, path: Any) -> Any:
        return _PACKAGE.parent / path


def find_distributions(context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
    """The distribution, if it is meant: by its name, or because all of this Python's distributions are listed."""
    named = None if context is None else context.name
    elsewhere = context is not None and "path" in vars(context)
    if elsewhere or (named is not None and _NORMALISED.sub("-", named).lower() != "torch"):
        return []
    return [TorchDistribution()]
