"""SciPy for kernels: the module of whichever library holds the arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..runtime.arrays import Namespace


@cache
def _module(name: str) -> Namespace:
    return import_module(name)


def scipy_of(xp: Namespace, part: str) -> Namespace:
    """``scipy.<part>`` for NumPy's arrays, ``cupyx.scipy.<part>`` for CuPy's; imported at first use.

    CuPy has most of SciPy's functions, not all: for the others there is :func:`on_host`.
    """
    return _module(f"scipy.{part}" if xp is np else f"cupyx.scipy.{part}")


def on_host(xp: Namespace, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of NumPy or SciPy with arrays of any library, and bring its results back to where they were.

    For what CuPy lacks. Off the CPU it waits for the device and copies both ways, so it is the last resort.
    """
    if xp is np:
        return function(*args)
    result = function(*[xp.asnumpy(a) if isinstance(a, xp.ndarray) else a for a in args])
    if isinstance(result, tuple):
        return tuple(xp.asarray(r) if isinstance(r, (np.ndarray, np.generic)) else r for r in result)
    return xp.asarray(result)
