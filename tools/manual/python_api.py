"""The Python API as pages: the public modules of the client, from their signatures and docstrings.

An object stands once, in the module with the shortest name that has it. Napoleon reads the docstrings' sections.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from types import ModuleType
from typing import Any, Final

from sphinx.ext.napoleon import Config, GoogleDocstring

import gradwire
from tools.public_names.page import RECORD

PAGE: Final = 100
"""Functions on a page, at most, unless more begin with the same letter."""
NOT_SUPPORTED: Final = "Not supported."
"""The first words about a stand-in of something that gradwire lacks."""
TORCH: Final = frozenset(json.loads(RECORD.read_text(encoding="utf-8"))["names"])
"""The public modules of PyTorch."""
_CONFIG: Final = Config(napoleon_use_param=False, napoleon_use_rtype=False, napoleon_use_ivar=True)
_ADDRESS: Final = re.compile(r"<([\w.]+)[^<>]*>")


@dataclass
class Module:
    """A module, and the members that stand on its page."""

    name: str
    about: str
    functions: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, type] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)

    @property
    def page(self) -> str:
        return f"api/{self.name}"

    def __bool__(self) -> bool:
        return bool(self.functions or self.classes)


def _public(name: str, module: ModuleType) -> bool:
    """Whether programs may import a module: PyTorch has it, it has ``__all__``, or it is directly below gradwire."""
    parts = name.split(".")
    if any(part.startswith("_") for part in parts) or parts[1:2] == ["cli"]:
        return False
    return name.count(".") <= 1 or hasattr(module, "__all__") or name.replace("gradwire", "torch", 1) in TORCH


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", None) or dir(module):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except (AttributeError, ImportError, NotImplementedError):
            continue
        if inspect.ismodule(value):
            continue
        yield name, value


def modules() -> list[Module]:
    """The public modules that have something of their own."""
    found: dict[str, ModuleType] = {"gradwire": gradwire}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in pkgutil.walk_packages(gradwire.__path__, "gradwire."):
            if not any(part.startswith("_") for part in each.name.split(".")) and ".cli" not in each.name:
                module = importlib.import_module(each.name)
                if _public(each.name, module):
                    found[each.name] = module
    seen: set[int] = set()
    told = []
    for name in sorted(found, key=lambda name: (name.count("."), name)):
        module = found[name]
        one = Module(name, inspect.getdoc(module) or "")
        for member, value in _members(module):
            doc = inspect.getdoc(value) if callable(value) else None
            if not callable(value) or not str(getattr(value, "__module__", "")).startswith("gradwire"):
                if not callable(value) and not hasattr(value, "__origin__"):
                    one.data.append(member)
                continue
            if id(value) in seen or not doc or doc.startswith(NOT_SUPPORTED):
                continue
            seen.add(id(value))
            (one.classes if inspect.isclass(value) else one.functions)[member] = value
        if one:
            told.append(one)
    return sorted(told, key=lambda one: one.name)


def _signature(value: Any) -> str:
    """The parameters, as a call is written; annotations as their names."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"
    text = _ADDRESS.sub(lambda found: found[1].rpartition(".")[2], text)
    text = re.sub(r"(?:[a-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", text.replace("'", "") if "='" not in text else text)
    text = re.sub(r": '([^']*)'", r": \1", re.sub(r"-> '([^']*)'", r"-> \1", text))
    return re.sub(r"^\(self(?:, )?", "(", text).removesuffix(" -> None")


def _body(value: Any, kind: str, name: str, short: bool = False) -> str:
    doc = inspect.getdoc(value) or ""
    if short:
        doc = doc.split("\n\n")[0]
    lines = str(GoogleDocstring(doc, _CONFIG, what=kind, name=name, obj=value))
    return textwrap.indent(lines.strip(), "   ") + "\n"


def _function(name: str, value: Any) -> str:
    return f".. py:function:: {name}{_signature(value)}\n\n{_body(value, 'function', name)}\n"


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    """What a class defines itself, and documents."""
    for name, value in sorted(vars(owner).items()):
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if isinstance(value, property) or callable(getattr(value, "__func__", value)):
            yield name, value


def _class(name: str, owner: type, functions: dict[str, Any]) -> str:
    lines = [f".. py:class:: {name}{_signature(owner)}\n", _body(owner, "class", name)]
    for method, value in _methods(owner):
        plain = getattr(value, "__func__", value)
        if isinstance(value, property):
            text = f".. py:property:: {method}\n\n{_body(value, 'property', method)}\n"
        elif inspect.isclass(plain):
            continue
        else:
            # Of a method that is also a function, the page of the function has the details.
            known = method in functions and owner.__name__ == "Tensor"
            more = f"   See :py:func:`gradwire.{method}`.\n\n" if known else ""
            text = (
                f".. py:method:: {method}{_signature(plain)}\n\n{_body(value, 'method', method, short=known)}\n{more}"
            )
        lines.append(textwrap.indent(text, "   "))
    return "\n".join(lines) + "\n"


def _heading(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}\n"


def _text(doc: str, name: str) -> str:
    return str(GoogleDocstring(doc, _CONFIG, what="module", name=name)) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    """The pages: their paths in the manual, and their text in reStructuredText."""
    listed = modules()
    shown = {one.name: one for one in listed}
    top = shown["gradwire"]
    groups: list[list[str]] = [[]]
    for _, names in groupby(sorted(top.functions, key=str.lower), key=lambda name: name[0].lower()):
        letter = list(names)
        if groups[-1] and len(groups[-1]) + len(letter) > PAGE:
            groups.append([])
        groups[-1] += letter
    entries = []
    for group in groups:
        first, last = group[0][0].lower(), group[-1][0].lower()
        title = f"gradwire: functions {first} to {last}"
        path = f"api/gradwire.functions-{first}"
        entries.append(path.removeprefix("api/"))
        functions = "".join(_function(name, top.functions[name]) for name in group)
        yield path, f"{_heading(title, '=')}\n.. py:currentmodule:: gradwire\n\n{functions}"
    entries += ["gradwire.Tensor"]
    yield (
        "api/gradwire.Tensor",
        f"{_heading('gradwire.Tensor', '=')}\n.. py:currentmodule:: gradwire\n\n"
        + _class("Tensor", top.classes["Tensor"], top.functions),
    )
    rows = []
    for one in listed:
        # A function of the same name hides some modules where they are looked up.
        parent, _, last = one.name.rpartition(".")
        hidden = parent and not inspect.ismodule(getattr(importlib.import_module(parent), last, None))
        module = f".. py:module:: {one.name}\n" + ("   :no-index:\n" if hidden else "")
        text = [_heading(one.name, "="), module, _text(one.about, one.name)]
        if one is top:
            text.append("Its functions are on pages of their own, by letter, and so is :py:class:`gradwire.Tensor`.\n")
        else:
            text += [_function(name, value) for name, value in sorted(one.functions.items())]
        text += [
            _class(name, value, top.functions)
            for name, value in sorted(one.classes.items())
            if (one.name, name) != ("gradwire", "Tensor")
        ]
        if one.data:
            text.append("Constants: " + ", ".join(f"``{name}``" for name in one.data) + ".\n")
        yield one.page, "\n".join(text)
        first_sentence = " ".join(one.about.split("\n\n")[0].split())
        rows.append(f"* :doc:`{one.name}`: {first_sentence}")
        entries.append(one.name)
    functions = ", ".join(f":doc:`{entry}`" for entry in entries if entry.startswith("gradwire.functions"))
    tree = "\n".join(f"   {entry}" for entry in entries)
    yield (
        "api/index",
        f"{_heading('Python API', '=')}\nThe public modules of the client, from their signatures and docstrings. "
        "Programs import it as ``import gradwire as torch``; names that PyTorch has mean what they mean there, and "
        ":doc:`/differences` and :doc:`/missing-names` say where not.\n\n"
        f"The functions of ``gradwire`` itself: {functions}.\n\n"
        + "\n".join(rows)
        + f"\n\n.. toctree::\n   :hidden:\n\n{tree}\n",
    )
