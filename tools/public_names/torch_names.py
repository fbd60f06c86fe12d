"""PyTorch's public names, read from the installed torch.

A module is public if no part of its path begins with an underscore. Its names are those of ``__all__``, or, without
one, the classes and functions that it or a private module defines. A class has members, a function and a constructor
keywords.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import logging
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

import torch
from torch.storage import _LegacyStorage

Keywords: TypeAlias = list[str]
Members: TypeAlias = dict[str, Keywords]
Names: TypeAlias = dict[str, dict[str, Any]]
"""By module: its names. A function has a list of keywords, a class a dictionary of members with theirs (its
constructor's under ``__init__``), a class of another public module its path there, anything else ``None``."""

SKIPPED: Final = ("torch.utils.benchmark.examples", "torch.testing._internal", "torch.contrib")
"""Packages of the wheel that are not PyTorch's interface."""

_WRONG: Final = {"new": "cls", "requires_grad_": "mode"}
"""Arguments that the wheel's ``.pyi`` files declare of a method, and that the method does not take."""

_SIGNATURE: Final = re.compile(r"^\s*(?:torch\.)?[\w.]*\((.*?)\)\s*(?:->|$)", re.MULTILINE)
_NO_KEYWORD: Final = re.compile(r"self$|arg\d+$|int$|bool$")
_BRACKETS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_KEYWORD: Final = re.compile(r"^\s*\*{0,2}([A-Za-z]\w*)")


def names_of_torch(whole: tuple[str, ...]) -> Names:
    """All public names.

    Args:
        whole: packages that are named as a whole: their own names and modules are left out.
    """
    names: Names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in _modules():
            name = module.__name__
            if not any(name.startswith(f"{package}.") for package in whole):
                names[name] = {} if name in whole else {n: _described(module, n) for n in sorted(_public(module))}
    return names


def _modules() -> Iterator[ModuleType]:
    """``torch`` and its public modules. One that cannot be imported here is left out."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.WARNING)
        found = [torch, *_below(torch)]
        logging.disable(logging.NOTSET)
    yield from sorted(found, key=lambda module: module.__name__)


def _below(package: ModuleType) -> Iterator[ModuleType]:
    for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if entry.name.rpartition(".")[2].startswith("_") or entry.name.startswith(SKIPPED):
            continue
        try:
            module = import_module(entry.name)
        except (ImportError, RuntimeError, AssertionError, OSError):
            continue
        if module.__name__ != entry.name:
            continue
        yield module
        if entry.ispkg and hasattr(module, "__path__"):
            yield from _below(module)


def _public(module: ModuleType) -> set[str]:
    named = getattr(module, "__all__", None)
    if named is not None:
        return {name for name in named if not name.startswith("_") and hasattr(module, name)} - _submodules(module)
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and _defined_in(module, value)
    }


def _defined_in(module: ModuleType, value: Any) -> bool:
    home = getattr(value, "__module__", None)
    if inspect.isbuiltin(value) or not isinstance(home, str):
        return inspect.isbuiltin(value)
    below = f"{module.__name__}." if hasattr(module, "__path__") else module.__name__
    return home == module.__name__ or home.startswith((below, "torch._"))


def _submodules(module: ModuleType) -> set[str]:
    return {name for name, value in vars(module).items() if isinstance(value, ModuleType)}


def _described(module: ModuleType, name: str) -> Any:
    value = getattr(module, name)
    if inspect.isclass(value):
        home = f"{value.__module__}.{value.__name__}"
        return home if _is_public(value) and home != f"{module.__name__}.{name}" else _members(value)
    if callable(value):
        return _keywords(value, f"{module.__name__}.{name}")
    return None


def _members(cls: type) -> Members:
    """The public members that the class, or a private base, defines. Those of public bases are recorded there."""
    members: Members = {}
    if type(cls) is type(torch.FloatTensor):
        return members  # a legacy type of tensors, which has the members of Tensor
    if not issubclass(cls, _LegacyStorage):  # they take no more than a size or data, whatever their base declares
        with contextlib.suppress(ValueError, TypeError):
            members["__init__"] = _named(inspect.signature(cls))
    recorded = [base for base in cls.__mro__[1:] if _is_public(base)]
    for base in cls.__mro__:
        if not base.__module__.startswith("torch") or any(base in other.__mro__ for other in recorded):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in members:
                continue
            function = inspect.unwrap(value.__func__ if isinstance(value, (staticmethod, classmethod)) else value)
            shown = f"torch.Tensor.{name}" if cls is torch.Tensor else ""
            members[name] = _keywords(function, shown) if callable(function) else []
    if cls is torch.Tensor:
        for name in dir(torch.Tensor):
            if not name.startswith("_") and name not in members:
                value = getattr(torch.Tensor, name)
                members[name] = _keywords(value, f"torch.Tensor.{name}") if callable(value) else []
    return dict(sorted(members.items()))


def _is_public(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return (
        module is not None
        and not any(part.startswith("_") for part in cls.__module__.split("."))
        and not cls.__name__.startswith("_")
        and getattr(module, cls.__name__, None) is cls
    )


def _keywords(function: Any, shown: str) -> Keywords:
    """What a function takes by name. Those of native functions come from the wheel's ``.pyi`` files or docstrings."""
    try:
        return _named(inspect.signature(function))
    except (ValueError, TypeError):
        pass
    owner, _, name = shown.rpartition(".")
    if owner in ("torch", "torch.Tensor"):
        declared = _declared("_VariableFunctions.pyi" if owner == "torch" else "__init__.pyi").get(name)
        if declared is not None:
            return declared
    found: Keywords = []
    for parameters in _SIGNATURE.findall((function.__doc__ or "")[:600]):
        inner = None
        while inner != parameters:
            inner, parameters = parameters, _BRACKETS.sub("", parameters)
        for part in parameters.split(","):
            keyword = _KEYWORD.match(part)
            if not keyword or part.strip().startswith("*"):
                continue
            if not _NO_KEYWORD.match(keyword[1]) and keyword[1] not in found:
                found.append(keyword[1])
        break
    return found


def _named(signature: inspect.Signature) -> Keywords:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind in by_name and name != "self" and not name.startswith("_")
    ]


@cache
def _declared(file: str) -> dict[str, Keywords]:
    """The keywords of each native function or method, over all its overloads."""
    tree = ast.parse((Path(torch.__file__).parent / "_C" / file).read_text(encoding="utf-8"))
    of_tensors = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "TensorBase"]
    found: dict[str, Keywords] = {}
    for node in (statement for body in of_tensors or [tree.body] for statement in body):
        if isinstance(node, ast.FunctionDef):
            known = found.setdefault(node.name, [])
            for argument in (*node.args.args, *node.args.kwonlyargs):
                name = argument.arg.rstrip("_") if of_tensors else argument.arg  # "from_" for "from"
                if name not in ("self", _WRONG.get(node.name)) and not name.startswith("_") and name not in known:
                    known.append(name)
    return found
