"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NoReturn, Self, overload

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, IndexOutOfRange

from .._core.modules.module import Module, bracketed, indented
from .._core.modules.parameter import Parameter
from .._core.tensor.tensor import Tensor


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

    def __iter__(self) -> Iterator[Module]:
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

    def __getitem__(self, index: Any) -> Any:
        return list(self)[position(index, len(self))]

    def pop(self, key: int | slice = -1) -> Module:
        """Take out a module, or a slice of them, and return it."""
        found: Module = self[key]
        del self[key]
        return found


class Sequential(_Numbered):
    """Modules applied one after the other, given as arguments or as one mapping from names to modules."""

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        given: Any = args
        if len(given) == 1 and isinstance(given[0], Mapping):
            for name, module in given[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(given):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """Pass the input through all modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Module | Self:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        found: Module = super().__getitem__(index)
        return found

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add several modules at the end."""
        return super().extend(sequential)

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_joinable(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(_joinable(other))

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            raise ArgumentTypeError(f"a Sequential is repeated by an int, not {type(times).__name__}")
        if times <= 0:
            raise ArgumentValueError(f"a Sequential can be repeated a positive number of times, not {times}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        entries = list(self * times)
        self._refill(entries)
        return self


def _joinable(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ArgumentValueError(f"a Sequential and {type(other).__name__} cannot be joined, only two Sequentials")
    return other


class ModuleList(_Numbered):
    """A list of modules that the module it belongs to knows of."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Module | Self:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        found: Module = super().__getitem__(index)
        return found

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

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

    def __init__(self, modules: Mapping[str, Module] | ModuleDict | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
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

    def pop(self, key: str) -> Module:
        """Take out a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names, in order."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names and modules, in order."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules, in order."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | ModuleDict | Iterable[tuple[str, Module]]) -> None:
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


def _kept(value: Any) -> Any:
    """A tensor becomes a parameter, a buffer too; everything else is kept as it is."""
    return value if not isinstance(value, Tensor) or isinstance(value, Parameter) else Parameter(value)


def _not_called(kind: type) -> NoReturn:
    raise ArgumentError(f"a {kind.__name__} holds parameters and computes nothing: it cannot be called")


def _described(value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    where = f" (GPU {value.device.index or 0})" if value.is_cuda else ""
    return f"Parameter containing: [{kind} of size {'x'.join(map(str, value.shape))}{where}]"


class ParameterList(Module):
    """A list whose tensors are parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._count = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._count)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(position(index, self._count)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(position(index, self._count)), _kept(value))

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        setattr(self, str(self._count), _kept(value))
        self._count += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise ArgumentTypeError(f"extend takes values one after the other, not {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _not_called(ParameterList)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_described(v, str(getattr(v, 'dtype', '')))}" for i, v in enumerate(self))


class ParameterDict(Module):
    """A dictionary whose tensors are parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _checked(key: Any) -> str:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"a key is a string, not {type(key).__name__}")
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._checked(key)] = None
        setattr(self, key, _kept(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """The keys, in order."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The values, in order."""
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """The keys and values, in order."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or ``default``."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is ``default`` from now on if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take out a value and return it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Take out the last key and value."""
        if not self._keys:
            raise KeyError("the ParameterDict is empty")
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """A dictionary with the same values, not copies of them."""
        return ParameterDict(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with one value under several keys."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from pairs of key and value, replacing those of equal keys.

        The order is kept, except that of a mapping that is no ``OrderedDict``: it is added in the order of its keys.
        """
        if not isinstance(parameters, Iterable):
            raise ArgumentTypeError(f"update takes a mapping or pairs, not {type(parameters).__name__}")
        pairs = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=operator.itemgetter(0))
        for key, value in pairs:
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> Any:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _not_called(ParameterDict)

    def extra_repr(self) -> str:
        shown = ((k, v, v.type() if isinstance(v, Tensor) else "") for k, v in self.items())
        return "\n".join(f"  ({key}): {_described(value, kind)}" for key, value, kind in shown)
