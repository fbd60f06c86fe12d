"""Kernels and derivatives, in the families of the op table. Importing this package registers them."""

from importlib import import_module
from pkgutil import iter_modules

import gradwire_protocol.ops  # noqa: F401  (what is registered must be declared)

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
