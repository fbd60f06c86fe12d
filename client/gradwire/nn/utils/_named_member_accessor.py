"""``torch.nn.utils._named_member_accessor``: the parameters, buffers and submodules of a module, by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError

from ..._core.modules.module import Module
from ..._core.tensor.tensor import Tensor

_MISSING: Final[Any] = object()
"""Given for a tensor: delete it. Returned for one: there was none."""


def _check_name(kind: str, name: str) -> None:
    if "." in name or not name:
        raise KeyError(f"the name of a {kind} has no '.' and is not empty, got {name!r}")


def _check_tensor(tensor: Any) -> None:
    if tensor is not None and tensor is not _MISSING and not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{tensor!r:.80} is not a tensor")


def _check_module(module: Any) -> None:
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"{module!r:.80} is not a Module")


def _holder(module: Module, name: str) -> dict[str, Any] | None:
    """The dict of the module that has the name; None for one that is an attribute, or is not there."""
    return next((held for held in (module._parameters, module._buffers) if name in held), None)


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Let a module have a tensor under a name: as the parameter or buffer that has it, otherwise as an attribute.

    Raises:
        TypeError: for something else than a module and a tensor or None.
        KeyError: for a name with a dot.
    """
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """:func:`set_tensor`, which returns the tensor that had the name.

    Raises:
        TypeError: for something else than a module and a tensor or None.
        KeyError: for a name with a dot.
        AttributeError: where there is none and ``allow_missing`` is false.
    """
    _check_module(module)
    _check_tensor(tensor)
    _check_name("tensor", name)
    held = _holder(module, name)
    if held is not None:
        before = held[name]
        if tensor is _MISSING:
            del held[name]
        else:
            held[name] = tensor
        return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    _check_tensor(before)
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


def swap_submodule(module: Module, name: str, submodule: Module) -> Any:
    """Replace a direct submodule, and return it.

    Raises:
        TypeError: for something else than two modules.
        KeyError: for a name with a dot, and one that no submodule has.
    """
    _check_module(module)
    _check_module(submodule)
    _check_name("submodule", name)
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    _check_module(before)
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Reads and replaces what a module holds, by paths such as ``"encoder.0.weight"``.

    Attributes:
        module: the module.
        memo: the submodules that were looked up, by their paths.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {"": module}

    def get_submodule(self, name: str) -> Module:
        """The submodule at a path.

        Raises:
            AttributeError: where there is none.
            TypeError: where there is something else.
        """
        if name not in self.memo:
            above, _, last = name.rpartition(".")
            found = getattr(self.get_submodule(above), last)
            _check_module(found)
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path: str, value: Module) -> Any:
        """Replace the submodule at a path, and return it."""
        above, _, last = path.rpartition(".")
        before = swap_submodule(self.get_submodule(above), last, value)
        self.memo = {"": self.module}  # what is below has changed
        return before

    def get_tensor(self, name: str) -> Any:
        """The tensor at a path.

        Raises:
            AttributeError: where there is none.
            TypeError: where there is something else.
        """
        above, _, last = name.rpartition(".")
        found = getattr(self.get_submodule(above), last)
        _check_tensor(found)
        return found

    def set_tensor(self, name: str, value: Any) -> None:
        """Replace the tensor at a path, or put one there."""
        self.swap_tensor(name, value, allow_missing=True)

    def del_tensor(self, name: str) -> None:
        """Delete the tensor at a path.

        Raises:
            AttributeError: where there is none.
        """
        self.swap_tensor(name, _MISSING)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Replace the tensor at a path, and return it."""
        above, _, last = name.rpartition(".")
        return swap_tensor(self.get_submodule(above), last, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """The tensors at paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Replace the tensors at paths."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: Mapping[str, Any]) -> None:
        """Replace the tensors at paths."""
        self.set_tensors(named_tensors, named_tensors.values())

    def del_tensors(self, names: Iterable[str]) -> None:
        """Delete the tensors at paths."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Replace the tensors at paths, and return them."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)]

    def swap_tensors_dict(
        self, named_tensors: Mapping[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Replace the tensors at paths. Returns them, and the paths where there was none.

        Raises:
            RuntimeError: where one cannot be replaced. Those before it have been put back.
        """
        before: dict[str, Any] = {}
        missing = []
        try:
            for name, value in named_tensors.items():
                before[name] = self.swap_tensor(name, value, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception as error:
            for name, value in before.items():
                self.swap_tensor(name, value, allow_missing=True)
            raise RuntimeError(f"the tensors were not replaced: {error}") from error
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The tensors of the module that are not among the paths, and the paths where it has none."""
        wanted, there = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(there - wanted), sorted(wanted - there)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The parameters and their paths."""
        return iter(self.module.named_parameters(remove_duplicate=remove_duplicate))

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The buffers and their paths."""
        return iter(self.module.named_buffers(remove_duplicate=remove_duplicate))

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The parameters, the buffers and their paths."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The submodules and their paths."""
        return iter(self.module.named_modules(remove_duplicate=remove_duplicate))
