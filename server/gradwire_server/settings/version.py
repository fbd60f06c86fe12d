"""The version of the installed distribution."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    try:
        return version("gradwire")
    except PackageNotFoundError:  # running from a source tree
        return "0+source"


VERSION: Final = _installed()
