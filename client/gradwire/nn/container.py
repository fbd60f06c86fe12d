"""Modules that hold modules: in sequence, as a list, by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Self

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, IndexOutOfRange

from .module import Module, bracketed, indented


def position(index: Any, length: int) -> int:
    """An index from either end as one from the front.

    Raises:
        IndexOutOfRange: naming index and length.
    """
    at = operator.index(index)
    if not -length <= at < length:
        raise IndexOutOfRange(f"index {at} is out of range for {length} entries")
    return at % length


class _Numbered(Module):
    """Modules named by their positions."""

    def _refill(self, modules: Iterable[Module | None]) -> None:
        entries = list(modules)
        self._modules.clear()
        for i, module in enumerate(entries):
            self.add_module(str(i), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        name = list(self._modules)[position(index, len(self))]
        setattr(self, name, module)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise ArgumentTypeError(f"extend takes modules one after the other, not {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at ``index``; those behind it move up."""
        if not isinstance(module, Module):
            raise AssertionError(f"insert takes a module, not {type(module).__name__}")
        if not -len(self) <= index <= len(self):
            raise IndexOutOfRange(f"index {index} is out of range for {len(self)} entries")
        entries = list(self)
        entries.insert(index, module)
        self._refill(entries)
        return self

    def __delitem__(self, index: Any) -> None:
        entries = list(self)
        if isinstance(index, slice):
            del entries[index]
        else:
            del entries[position(index, len(entries))]
        self._refill(entries)

    def pop(self, index: Any = -1) -> Any:
        """Take out a module and return it."""
        found = list(self)[position(index, len(self))]
        del self[index]
        return found

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)


class Sequential(_Numbered):
    """Modules applied one after the other, given as arguments or as one mapping from names to modules."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """Pass the input through all modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return list(self)[position(index, len(self))]

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ArgumentValueError(f"a Sequential and {type(other).__name__} cannot be joined, only two Sequentials")
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int) or times <= 0:
            raise ArgumentValueError(f"a Sequential can be repeated a positive number of times, not {times!r}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        entries = list(self * times)
        self._refill(entries)
        return self


class ModuleList(_Numbered):
    """A list of modules that the module it belongs to knows of."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return list(self)[position(index, len(self))]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Like any module's, with runs of modules that print alike written once."""
        runs: list[tuple[str, int, int]] = []
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][0] == text:
                runs[-1] = (text, runs[-1][1], i)
            else:
                runs.append((text, i, i))
        entries = []
        for text, first, last in runs:
            several = f"({first}-{last}): {last - first + 1} x "
            entries.append(indented((f"({first}): " if first == last else several) + text))
        return bracketed(self._get_name(), [], entries)


class ModuleDict(Module):
    """A dictionary of modules that the module it belongs to knows of."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take out a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names, in order."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and modules, in order."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules, in order."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs of name and module, replacing those of equal names."""
        if not isinstance(modules, Iterable):
            raise ArgumentTypeError(f"update takes a mapping or pairs, not {type(modules).__name__}")
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for pair in pairs:
            if not isinstance(pair, Iterable):
                raise ArgumentTypeError(f"update takes pairs of a name and a module, not {type(pair).__name__}")
            if len(entry := tuple(pair)) != 2:
                raise ArgumentValueError(f"update takes pairs of a name and a module, not {pair!r:.60}")
            self[entry[0]] = entry[1]
