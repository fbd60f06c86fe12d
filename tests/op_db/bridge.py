"""Converts samples of one library to arguments of another: tensors with their memory, dtypes, sizes, functions."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

import gradwire


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The values; bfloat16 as the dtype of ml_dtypes."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    if plain.dtype is torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def from_numpy(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """The way back of :func:`to_numpy`."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(np.array(array, order="C").view(np.int16)).view(torch.bfloat16).reshape(array.shape)
    return torch.from_numpy(np.array(array))  # a copy: what arrives cannot be written to


class Bridge:
    """Carries arguments into a library. A tensor that occurs twice stays one tensor; ``shared`` memory stays shared."""

    def __init__(self, library: types.ModuleType, shared: bool = False) -> None:
        self.library = library
        self.memories: dict[int, Any] | None = {} if shared else None
        self.carried: dict[int, tuple[torch.Tensor, Any]] = {}
        self.leaves: list[tuple[torch.Tensor, Any]] = []

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.Size):
            return self.library.Size(value)
        if isinstance(value, (list, tuple)):
            parts = [self(v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            name = str(value).removeprefix("torch.")
            found = getattr(self.library, name, None)
            if found is None:
                raise NotImplementedError(f"there is no {name}")
            return found
        if isinstance(value, torch.device):
            return self.library.device(str(value))
        if isinstance(value, torch.Generator):
            return self.library.Generator().manual_seed(value.initial_seed())
        if isinstance(value, torch.nn.Module):
            return self.module(value)
        if callable(value):
            return rebound(value, self.library)
        return value

    def module(self, given: torch.nn.Module) -> Any:
        """A module without parameters, with the same options."""
        if self.library is torch:
            return given
        made = getattr(self.library.nn, type(given).__name__)()
        for name, value in vars(given).items():
            if isinstance(value, (bool, int, float)):
                setattr(made, name, value)
        return made

    def tensor(self, given: torch.Tensor) -> Any:
        found = self.carried.get(id(given))
        if found is None:
            made = self.made(given)
            if given.requires_grad:
                made.requires_grad_()
                self.leaves.append((given, made))
            found = self.carried[id(given)] = (given, made)
        return found[1]

    def made(self, given: torch.Tensor) -> Any:
        """A leaf with the same values, strides and offset."""
        if given.layout is not torch.strided:
            raise NotImplementedError("there are no sparse tensors")
        plain = given.is_contiguous() and (self.memories is None or given.requires_grad)
        if given.is_conj() or given.is_neg() or plain:
            values = to_numpy(given)
            if self.library is torch:
                return from_numpy(values)
            return gradwire.from_numpy(np.array(values, order="C", copy=True))
        size = given.untyped_storage().nbytes() // given.element_size()
        base = None if self.memories is None else self.memories.get(given.untyped_storage()._cdata)
        if base is None:
            memory = to_numpy(given.detach().as_strided((size,), (1,), 0))
            base = from_numpy(memory).clone() if self.library is torch else gradwire.from_numpy(memory.copy())
        if self.memories is not None:
            self.memories[given.untyped_storage()._cdata] = base
            if given.is_contiguous() and given.numel() == size:
                return base.view(tuple(given.shape))
        return base.as_strided(tuple(given.shape), given.stride(), given.storage_offset()).detach()


def rebound(function: Callable[..., Any], library: types.ModuleType) -> Callable[..., Any]:
    """A function of torch's as a function of the library: by its name, or, for those that the database writes with
    ``torch`` in their bodies, the same code with another module under that name."""
    if library is torch:
        return function
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        cells = None
        if function.__closure__:
            cells = tuple(types.CellType(_content(cell.cell_contents, library)) for cell in function.__closure__)
        names = dict(function.__globals__, torch=library, wrapper_set_seed=_as_it_is)
        twin = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
        twin.__kwdefaults__ = function.__kwdefaults__
        return twin
    path = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", "")
    for place in (path.removeprefix("torch."), path.removeprefix("torch._C._"), "", "nn.functional", "linalg"):
        found = named(f"{place}.{name}" if place and place != "torch" else name, library)
        if callable(found):
            return found
    return function


def _as_it_is(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """In the place of the database's function that fixes the seed around a call."""
    return function(*args, **kwargs)


def unseeded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the database without the fixed seed that it is called with there."""
    if not isinstance(function, types.FunctionType) or not function.__module__.startswith("torch.testing"):
        return function
    names = dict(function.__globals__, wrapper_set_seed=_as_it_is)
    twin = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _content(value: Any, library: types.ModuleType) -> Any:
    if value is torch:
        return library
    return rebound(value, library) if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) else value


def named(path: str, library: types.ModuleType) -> Any:
    """What a dotted name stands for in the library, None if it has no such thing."""
    found: Any = library
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found
