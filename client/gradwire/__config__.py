"""``torch.__config__``: what computes, as text. Both functions ask nothing of the server."""

from __future__ import annotations

import platform

import numpy as np

from ._core.context.version import __version__
from ._core.surface.global_settings import get_num_interop_threads, get_num_threads


def show() -> str:
    """The versions of the client, of Python and of NumPy."""
    return f"gradwire {__version__}\n  - Python {platform.python_version()}\n  - NumPy {np.__version__} in the client\n"


def parallel_info() -> str:
    """The numbers of threads that the program asked for; the server shares its cores as it can."""
    return f"get_num_threads() : {get_num_threads()}\nget_num_interop_threads() : {get_num_interop_threads()}\n"
