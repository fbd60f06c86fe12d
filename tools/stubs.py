"""Writes the ``.pyi`` files of what is made when gradwire is imported, which a type checker cannot find in its source.

They follow from the objects themselves: ``inspect.signature`` of a function that the op table made says what the table
says, and a function written by hand has its annotations. A function that a type checker finds where it is written is
imported from there. :data:`OVERLOADS` has the calls that one signature cannot say.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from inspect import Parameter, Signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import gradwire
from gradwire._core.context import argument_types
from gradwire._core.context.late_signatures import Annotation
from gradwire._core.surface.module_aliases import ALIASES
from gradwire._core.surface.unsupported import AbsentAttribute
from gradwire._core.tensor.reading import Readable
from gradwire._core.tensor.tensor import Tensor

from .overloads import OVERLOADS

CLIENT: Final = Path(gradwire.__file__).parent
NAMESPACES: Final = (
    "gradwire", "gradwire.fft", "gradwire.linalg", "gradwire.nn.functional", "gradwire.return_types",
    "gradwire.special",
)  # fmt: skip
"""Modules whose members are made when they are imported."""
WITH_ALIASES: Final = ("gradwire.distributions", "gradwire.nn.modules", "gradwire.optim")
"""Packages some of whose modules exist when they run, and have no file."""

WORDS: Final = {
    "Any": "typing", "Literal": "typing", "Self": "typing", "Sequence": "collections.abc",
    "Callable": "collections.abc", "Iterator": "collections.abc",
    "Tensor": "gradwire._core.tensor.tensor",
    "dtype": "gradwire_protocol.dtypes:DType", "device": "gradwire._core.context.size",
    "layout": "gradwire._core.context.layouts", "memory_format": "gradwire._core.context.layouts",
    "Generator": "gradwire._core.surface.generator",
}  # fmt: skip
"""Where the names are defined that signatures made from the op table, and overloads, mention."""
HEADER: Final = "# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.\n"
CHANGES_OBJECT: Final = {"__eq__", "__ne__"}
"""Methods whose results are tensors where ``object`` promises bools."""


class Stub:
    """The text of one ``.pyi`` file, of a module if one is named, and the names that it imports."""

    def __init__(self, defined: Mapping[str, Any], module: str = "") -> None:
        self.defined = defined
        self.module = module
        self.imports: dict[str, set[str]] = {}
        self.body: list[str] = []

    def text(self) -> str:
        lines = [
            f"{f'from {home} ' if home else ''}import {', '.join(sorted(names))}"
            for home, names in sorted(self.imports.items())
        ]
        return "\n".join([HEADER, *lines, "", *self.body]) + "\n"

    def imported(self, module: str, name: str) -> str:
        """The name here of what a module has: a private one where this stub means something else by its own."""
        value = getattr(sys.modules.get(module), name, None)
        own = next((own for own in (name, "dtype") if value is not None and self.defined.get(own) is value), None)
        if own is not None:
            return own
        alias = f"_{name}" if name in self.defined else name
        self.imports.setdefault(module, set()).add(name if alias == name else f"{name} as {alias}")
        return alias

    def exported(self, module: str, name: str, public: str) -> None:
        """Offer what a module has."""
        self.imports.setdefault(module, set()).add(f"{name} as {public}")

    # Types

    def annotation(self, given: Any, near: FunctionType | None = None) -> str:
        """A type as it is written here; ``near`` is the function whose module knows its names."""
        if given is Signature.empty:
            return self.imported("typing", "Any")
        text = given if isinstance(given, str) else inspect.formatannotation(given)
        if isinstance(given, Annotation):
            near = None
        tree = ast.parse(text.strip("'\""), mode="eval")
        return ast.unparse(_Renamed(self, near).visit(tree))

    def named(self, name: str, near: FunctionType | None) -> str:
        """A name in an annotation as it is written here."""
        found = _meant(name, near)
        if name in WORDS and (found is None or near is None):
            module, _, other = WORDS[name].partition(":")
            return self.imported(module, other or name)
        if found is None:
            raise LookupError(f"nothing says what {name} is, in the signature of {near}")
        module, other = found
        if module == builtins.__name__ and other not in self.defined:
            return other
        return self.imported(module, other)

    # Definitions

    def function(self, name: str, function: Any, indent: str = "", first: str | None = None) -> None:
        """A function, or a method whose first argument is ``first``; every form of its calls."""
        written = inspect.unwrap(function)
        near = written if isinstance(written, FunctionType) else None
        shown = inspect.signature(function)
        forms = [*forms_of(f"{self.module}.{name}" if first is None else f"Tensor.{name}", shown)]
        for at, form in enumerate(forms):
            if len(forms) > 1:
                self.body.append(f"{indent}@{self.imported('typing', 'overload')}")
            ignored = "  # type: ignore[override]" if name in CHANGES_OBJECT and first else ""
            doc = "" if at else first_paragraph(function)
            end = f'{ignored}\n{indent}    """{doc}"""' if doc else f" ...{ignored}"
            self.body.append(f"{indent}def {name}{self.call(form, near, first)}:{end}")

    def call(self, form: Signature, near: FunctionType | None, first: str | None = None) -> str:
        """Parameters and result of a signature."""
        shown, starred, by_name = [], False, False
        for at, param in enumerate(form.parameters.values()):
            if param.kind is Parameter.KEYWORD_ONLY and not starred and not by_name:
                shown.append("*")
                by_name = True
            starred = starred or param.kind is Parameter.VAR_POSITIONAL
            if at == 0 and first is not None:
                shown.append(first)
                continue
            stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(param.kind, "")
            default = "" if param.default is Parameter.empty else f" = {_literal(param.default)}"
            shown.append(f"{stars}{param.name}: {self.annotation(param.annotation, near)}{default}")
        return f"({', '.join(shown)}) -> {self.annotation(form.return_annotation, near)}"

    def property(self, name: str, value: property) -> None:
        """A property of a class."""
        for decorator, function, rest in (
            ("property", value.fget, ""), (f"{name}.setter", value.fset, "value"), (f"{name}.deleter", value.fdel, ""),
        ):  # fmt: skip
            if function is None:
                continue
            shown = inspect.signature(function)
            held = self.annotation(shown.return_annotation, function)
            if rest:
                held, rest = "None", f", value: {self.annotation([*shown.parameters.values()][1].annotation, function)}"
            decorator = self.named(decorator, None) if decorator == "property" else decorator
            self.body += [f"    @{decorator}", f"    def {name}(self{rest}) -> {held}: ..."]


class _Renamed(ast.NodeTransformer):
    """Writes the names of an annotation as a stub knows them."""

    def __init__(self, stub: Stub, near: FunctionType | None) -> None:
        self.stub = stub
        self.near = near

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self.stub.named(node.id, self.near), mode="eval").body

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if ast.unparse(node.value) == "return_types":  # its module imports tensors alone, gradwire imports everything
            name = self.stub.imported("gradwire.return_types", node.attr)
            return ast.parse(name, mode="eval").body
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)  # type: ignore[no-any-return]
        return node


def _meant(name: str, near: FunctionType | None) -> tuple[str, str] | None:
    """The module that has what a function's annotation names, and its name there."""
    known = {} if near is None else near.__globals__
    if name in known:
        value, module = known[name], str(known["__name__"])
        home = getattr(value, "__module__", None)
        if isinstance(value, type) and getattr(sys.modules.get(home or ""), value.__name__, None) is value:
            return str(home), value.__name__
        if isinstance(value, ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            return parent, last
        for home in (typing, argument_types):
            if getattr(home, name, None) is value:
                return home.__name__, name
        return module, name
    if near is not None and (found := _for_types_only(near.__module__).get(name)):
        return found
    return (builtins.__name__, name) if name == "None" or hasattr(builtins, name) else None


@cache
def _for_types_only(module: str) -> dict[str, tuple[str, str]]:
    """What a module imports for type checkers alone."""
    source = sys.modules.get(module)
    if source is None or not getattr(source, "__file__", None):
        return {}
    found = {}
    for node in ast.walk(_tree(str(source.__file__))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    home = importlib.util.resolve_name("." * line.level + (line.module or ""), str(source.__package__))
                    found |= {alias.asname or alias.name: (home, alias.name) for alias in line.names}
    return found


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def _literal(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and value - value == 0)
    return repr(value) if plain else "..."


def first_paragraph(function: Any) -> str:
    """What an editor shows of a function."""
    doc = inspect.getdoc(function) or ""
    return doc.split("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''").replace("\n", "\n    ")


# The forms of calls


def forms_of(name: str, shown: Signature) -> Iterator[Signature]:
    """How a function may be called: as a table says, and with sizes as one sequence or as ints in a row."""
    plain = name.rpartition(".")[2]
    elsewhere = name.startswith("nn.functional.")  # where functions of the same names take other arguments
    known = OVERLOADS.get(name) or (None if elsewhere else OVERLOADS.get(plain))
    if known:
        yield from known
        return
    params = list(shown.parameters.values())
    at = next((i for i, p in enumerate(params) if p.kind is Parameter.VAR_POSITIONAL), None)
    if at is None or str(params[at].annotation) != "int | Sequence[int]":
        yield shown
        return
    together = params[at].replace(kind=Parameter.POSITIONAL_OR_KEYWORD, annotation="Sequence[int]")
    yield shown.replace(parameters=[*params[:at], together, *params[at + 1 :]])
    yield shown.replace(parameters=[*params[:at], params[at].replace(annotation="int"), *params[at + 1 :]])


# Modules


def namespace(module: ModuleType) -> str:
    """The stub of a module: its public names, each as it is there."""
    members = public(module)
    stub = Stub(members, module.__name__.removeprefix("gradwire."))
    for name, value in sorted(members.items()):
        if isinstance(value, ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            stub.exported(parent, last, name)
        elif (home := home_of(module, value)) is not None:
            stub.exported(*home, name)
        elif isinstance(value, FunctionType):
            stub.function(name, value)
        elif isinstance(value, type) and issubclass(value, tuple):
            stub.body.append(f"class {name}({stub.imported('typing', 'NamedTuple')}):")
            stub.body += [f"    {field}: {stub.annotation('Tensor')}" for field in value._fields]  # type: ignore[attr-defined]
        elif isinstance(value, type):
            stub.body.append(f"class {name}({stub.annotation('Tensor')}): ...")
        else:
            stub.body.append(f"{name}: {_kind(stub, value)}")
    stub.body.append(f"__all__ = {sorted(members)!r}" if hasattr(module, "__all__") else "")
    return stub.text()


def public(module: ModuleType) -> Mapping[str, Any]:
    """What a module offers: what it lists, or else what is neither private nor borrowed from elsewhere."""
    listed = list(getattr(module, "__all__", ()))
    later = [*getattr(module, "_LATER", ()), *getattr(module, "_INSIDE_OF", ())]
    names = listed or [name for name in [*vars(module), *later] if not name.startswith("_") or name == "__version__"]
    found = {name: getattr(module, name) for name in names if name != "annotations"}
    there = {*later, *_submodules(module)}
    return {
        name: value
        for name, value in found.items()
        if (name in there if isinstance(value, ModuleType) else getattr(value, "__module__", "") != "typing")
    }


def _submodules(module: ModuleType) -> Iterator[str]:
    """The modules that come with a package, and not with what else a program imports."""
    for node in ast.walk(_tree(str(module.__file__))):
        if isinstance(node, ast.ImportFrom) and node.level and node.module is None:
            yield from [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 1:
            yield str(node.module).split(".")[0]


def home_of(module: ModuleType, value: Any) -> tuple[str, str] | None:
    """The other module in whose source a type checker finds a function or class as it is, and its name there."""
    if isinstance(value, FunctionType) and "__signature__" in vars(value):
        return None
    written = value.__code__.co_filename if isinstance(value, FunctionType) else None
    if not isinstance(value, (FunctionType, type)):
        return None
    for home in [getattr(value, "__module__", "")] if written is None else _modules_of(written):
        source = sys.modules.get(home)
        name = value.__name__
        if source not in (None, module) and getattr(source, name, None) is value and _defines(source, name):
            return home, name
    return None


def _modules_of(file: str) -> list[str]:
    return [name for name, module in list(sys.modules.items()) if getattr(module, "__file__", None) == file]


@cache
def _defines(module: ModuleType, name: str) -> bool:
    file = getattr(module, "__file__", None)
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    return file is not None and any(isinstance(node, kinds) and node.name == name for node in _tree(file).body)


def _kind(stub: Stub, value: Any) -> str:
    """The type of a value that is no function, class or module."""
    if value is None:
        return "None"
    kind = next(cls for cls in type(value).__mro__ if not cls.__name__.startswith("_"))
    if kind.__module__ == builtins.__name__:
        name = stub.named(kind.__name__, None)
        return f"{name}[{stub.imported('typing', 'Any')}]" if kind is list else name
    return stub.imported(kind.__module__, kind.__name__)


# What is attached to Tensor


def tensor_members() -> str:
    """The stub of what is given to the class of tensors from above."""
    written = _written_in(Tensor) | _written_in(Readable)
    members = {
        name: value
        for name, value in vars(Tensor).items()
        if name not in written and not isinstance(value, AbsentAttribute) and name not in _OF_EVERY_CLASS
    }
    stub = Stub(members)
    stub.body.append("class Attached:")
    for name, value in sorted(members.items()):
        if isinstance(value, property):
            stub.property(name, value)
        elif isinstance(value, (staticmethod, classmethod)):
            kind = type(value).__name__
            stub.body.append(f"    @{stub.named(kind, None)}")
            stub.function(name, value.__func__, "    ", None if kind == "staticmethod" else "cls")
        elif isinstance(value, FunctionType):
            stub.function(name, value, "    ", "cls" if name == "__new__" else "self")
        else:
            stub.body.append(f"    {name}: {_kind(stub, value)}")
    return stub.text()


_OF_EVERY_CLASS: Final = ("__module__", "__annotations__", "__doc__", "__dict__", "__weakref__", "__slots__")


def _written_in(cls: type) -> set[str]:
    """The names that the source of a class defines."""
    found: set[str] = set()
    tree = _tree(str(sys.modules[cls.__module__].__file__))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def alias(full: str) -> str:
    """A module that is a path to names of others."""
    stub = Stub({})
    for name, module in ALIASES[full].items():
        # A private name may stand for a class of another name, or for a type that says nothing of its module.
        home = module if name.startswith("_") else getattr(importlib.import_module(module), name).__module__
        stub.exported(home, name, name)
    return stub.text()


for _package in WITH_ALIASES:
    importlib.import_module(_package)
_MODULES: Final = {f"{name}.pyi": importlib.import_module(name) for name in NAMESPACES}
STUBS: Final[dict[str, Callable[[], str]]] = {
    **{name: partial(namespace, module) for name, module in _MODULES.items()},
    "gradwire._core.tensor.attached.pyi": tensor_members,
    **{f"{full}.pyi": partial(alias, full) for full in ALIASES},
}
"""What makes each stub, by the name of its module."""
FILES: Final = {
    **{name: Path(str(module.__file__)).with_suffix(".pyi") for name, module in _MODULES.items()},
    "gradwire._core.tensor.attached.pyi": CLIENT / "_core" / "tensor" / "attached.pyi",
    **{f"{full}.pyi": CLIENT.joinpath(*full.split(".")[1:]).with_suffix(".pyi") for full in ALIASES},
}
"""Where each of them belongs."""
