"""``torch.jit._recursive``: PyTorch's compiler of modules, of which gradwire has the cache: empty."""

from __future__ import annotations

from typing import Any

from .._core.surface import stand_ins


class ConcreteTypeStore:
    """The types of the modules that were compiled: none.

    Attributes:
        type_store: the types, by the Python class.
        methods_compiled: those whose methods are compiled.
    """

    def __init__(self) -> None:
        self.type_store: dict[type, list[Any]] = {}
        self.methods_compiled: set[Any] = set()


concrete_type_store = ConcreteTypeStore()
stand_ins.fill(
    __name__,
    ("create_script_module", "create_script_class", "infer_methods_to_compile", "recursive_script", "wrap_cpp_module"),
    "nothing is compiled from Python source",
)
