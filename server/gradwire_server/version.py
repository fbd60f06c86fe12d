"""The version of the distribution that the server was installed from."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    try:
        return version("gradwire")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+source"


VERSION: Final = _installed()
