"""The Python code of a graph: written from its nodes alone, and the globals that it needs."""

from __future__ import annotations

import enum
import inspect
import json
import keyword
import math
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gradwire_protocol.errors import ArgumentValueError

from .._core.context import pytree
from .._core.context.size import device
from .._core.tensor.tensor import Tensor
from . import _pytree as fx_pytree
from ._names import generic_parts, is_own, qualified, shown_type
from ._namespace import TAKEN, Namespace
from ._wrapped import wrap
from .node import Node, short_dtype

REFLECTABLE: Final = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
"""Operators with two operands, by their names in ``operator``."""
MAGIC: Final = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", **REFLECTABLE,
}  # fmt: skip
INPLACE: Final = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

COLORS: Final = {"red": "\033[31m", "blue": "\033[34m", "dim": "\033[2m", "dim_blue": "\033[2m\033[34m"}


_OldAlias: Any = type(typing.List[int])  # noqa: UP006


@dataclass
class PythonCode:
    """The code of a graph, and the objects that it names.

    Attributes:
        src: the source of a function.
        globals: what its global names stand for.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class Builtin(NamedTuple):
    """An object that every code may name, and the statement that imports it."""

    import_str: str
    obj: Any


def builtins_of_code() -> dict[str, Builtin]:
    """Objects that the text of constants names (``inf``, ``device(type='cpu')``), and ``torch``."""
    import gradwire

    return {
        "inf": Builtin("from math import inf", math.inf),
        "nan": Builtin("from math import nan", math.nan),
        "NoneType": Builtin("NoneType = type(None)", type(None)),
        "torch": Builtin("import torch", gradwire),
        "device": Builtin("from torch import device", device),
        "fx_pytree": Builtin("import torch.fx._pytree as fx_pytree", fx_pytree),
        "pytree": Builtin("import torch.utils._pytree as pytree", pytree),
    }


def check_name(name: str, what: str) -> str:
    """A name, or a path of names.

    Raises:
        ArgumentValueError: where it would be more than that in the code.
    """
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        raise ArgumentValueError(f"{what} {name!r:.80} is not a name, and has no place in code")
    return name


def attribute(base: str, target: str) -> str:
    """The code that reaches a path of attributes; parts that are no names (numbers, keywords) by ``getattr``."""
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        base = f"{base}.{part}" if plain else f"getattr({base}, {json.dumps(part)})"
    return base


class CodeGen:
    """Writes the function of a graph. Subclasses change its first line and how it returns."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name: str = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """The statement that returns."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the function as the graph's inputs take them."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The graph's output as the function returns it."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further objects that the code names."""
        return []

    def _gen_python_code(
        self, nodes: Iterable[Node], root_module: str, namespace: Namespace, *, verbose: bool = False, **style: Any
    ) -> PythonCode:
        return Writer(self, root_module, namespace, verbose, **style).write(list(nodes))


class _PyTreeInfo(NamedTuple):
    """How nested arguments and results are taken apart.

    Attributes:
        orig_args: the names of the function's arguments.
        in_spec, out_spec: the structures of arguments and result.
    """

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Writes a function whose arguments and results are nested containers."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(list(out) if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation)
        arguments = self.pytree_info.orig_args
        if arguments and arguments[0] == "self":
            free_vars.insert(0, "self")
        begin = super().gen_fn_def(arguments[:], maybe_return_annotation)
        if not free_vars:
            return begin
        annotated = [name for name in free_vars if ":" in name]
        if annotated:
            begin += "\n    " + "".join(f"{name}; " for name in annotated) + "\n"
        plain = ", ".join(name.split(":")[0].split("#")[0] for name in free_vars)
        return f"{begin}\n    {plain}, = fx_pytree.tree_flatten_spec([{', '.join(arguments)}], self._in_spec)"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        if self.pytree_info and self.pytree_info.out_spec:
            return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"
        return super().generate_output(output_args, repr_fn=repr_fn)


class Writer:
    """Writes the code of one graph.

    Args:
        codegen: what writes its first line and its return.
        root_module: the name of the module in the code.
        namespace: gives names to globals.
        verbose: comment on nodes: shapes where they are known, lines of the program.
    """

    def __init__(
        self, codegen: CodeGen, root_module: str, namespace: Namespace, verbose: bool = False,
        include_stride: bool = False, include_device: bool = False, colored: bool = False,
    ) -> None:  # fmt: skip
        self._codegen, self._root, self._namespace, self._verbose = codegen, root_module, namespace, verbose
        self._stride, self._device, self._colored = include_stride, include_device, colored
        self._globals: dict[str, Any] = {}
        self._free: list[str] = []
        self._body: list[str] = []
        self._wrapped: dict[str, None] = {}
        self._returns = ""
        self._told = ""

    def write(self, nodes: Sequence[Node]) -> PythonCode:
        """The code of the nodes."""
        for name, known in builtins_of_code().items():
            self._global(name, known.obj)
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(nodes):
            for used in node._input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        lines: dict[int, int | None] = {}
        marks: list[tuple[int, int]] = []
        for index, node in enumerate(nodes):
            if self._verbose:
                self._tell_origin(node)
            marks.append((len(self._body), index))
            self._emit(node)
            self._free_after(node, last.get(node, []))
        body = self._body or ["pass\n"]
        if self._codegen._body_transformer is not None:
            body = self._codegen._body_transformer(body)
        else:
            lines = self._line_numbers(body, marks)
        for name, value in self._codegen.additional_globals():
            self._global(name, value)
        wraps = ""
        if self._wrapped:
            wraps = "\n".join(f'{self._global("wrap", wrap)}("{name}")' for name in self._wrapped)
        begin = self._codegen.gen_fn_def(self._free, self._returns)
        code = "\n".join("    " + line for line in "".join(body).lstrip("\n").split("\n"))
        offset = begin.count("\n") + 1
        moved = {line + offset: index for line, index in lines.items()}
        return PythonCode(f"\n{wraps}\n\n{begin}\n{code}", self._globals, moved, wraps.count("\n") + 4)

    @staticmethod
    def _line_numbers(body: list[str], marks: list[tuple[int, int]]) -> dict[int, int | None]:
        found: dict[int, int | None] = {}
        line, starts, current = 0, dict(marks), None
        for position, text in enumerate(body):
            current = starts.get(position, current)
            for _ in range(text.count("\n")):
                found[line] = current
                line += 1
        return found

    def _global(self, hint: str, obj: Any) -> str:
        """The name under which the code reaches an object."""
        if obj is not device and not isinstance(obj, types.ModuleType) and is_own(obj):
            return check_name(qualified(obj), "function")
        name = self._namespace.create_name(hint, obj)
        if name in self._globals and self._globals[name] is not obj and self._globals[name] != obj:
            raise AssertionError(f"the name {name} stands for {self._globals[name]!r} already")
        self._globals[name] = obj
        return name

    def _type(self, kind: Any) -> str:
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            return "|".join(self._type(arg) for arg in kind.__args__)
        parts = generic_parts(kind)
        if parts is None:
            return self._global(shown_type(kind), kind)
        origin, args = parts
        if isinstance(kind, _OldAlias):  # List[int], not list[int]
            origin = getattr(typing, kind._name or "", origin) if isinstance(origin, type) else origin
        name = self._global(shown_type(origin), origin)
        return f"{name}[{','.join(self._type(arg) for arg in args)}]" if args else name

    def _value(self, arg: Any) -> str:
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self._global(qualified(type(arg)), type(arg))}{self._sequence(tuple(arg))}"
        if isinstance(arg, enum.Enum):
            return f"{self._global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, Tensor):
            return f"torch.Tensor(size={list(arg.shape)}, dtype={arg.dtype.name})"
        if isinstance(arg, (tuple, list)):
            return self._sequence(arg)
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{self._value(key)}: {self._value(value)}" for key, value in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self._value(arg.start)}, {self._value(arg.stop)}, {self._value(arg.step)})"
        return self._color("blue", repr(arg))

    def _sequence(self, arg: Sequence[Any]) -> str:
        inner = ", ".join(self._value(item) for item in arg)
        if isinstance(arg, list):
            return f"[{inner}]"
        return f"({inner},)" if len(arg) == 1 else f"({inner})"

    def _arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        given = [self._value(arg) for arg in args]
        return ", ".join(given + [f"{check_name(key, 'argument')} = {self._value(arg)}" for key, arg in kwargs.items()])

    def _color(self, color: str, text: str) -> str:
        return f"{COLORS[color]}{text}\033[0m" if self._colored else text

    def _annotation(self, node: Node) -> str:
        known: Any = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if self._verbose and known is not None and hasattr(known, "dtype") and hasattr(known, "shape"):
            shown = self._color("red", short_dtype(known.dtype)) + self._color("blue", _shape(known.shape))
            if isinstance(known, Tensor):
                shown += self._color("dim_blue", _shape(known.stride())) if self._stride else ""
                shown += self._color("dim", str(known.device)) if self._device else ""
            return f': "{shown}"'
        return "" if node.type is None else f" : {self._type(node.type)}"

    def _tell_origin(self, node: Node) -> None:
        if node.op in ("placeholder", "output"):
            return
        lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
        places = [i for i, line in enumerate(lines[:-1]) if line.startswith('File "')]
        where = "No stacktrace found for following nodes"
        if places:
            file, number, function = lines[places[-1]].split(", ", 2)
            path, line = file.removeprefix("File ").strip('"'), number.removeprefix("line ")
            where = f"File: {path}:{line} in {function.removeprefix('in ')}, code: {lines[places[-1] + 1]}"
        told = f"\n{self._color('dim', f'# {where}')}\n"
        if told != self._told:
            self._told = told
            self._body.append(told)

    def _free_after(self, node: Node, used: list[Node]) -> None:
        """Let go of values that are not used any more."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self._body.append("\n")
            return
        gone = [*used, *([] if node.users else [node])]
        text = " = ".join([*map(repr, gone), "None"])
        self._body.append(f";  {self._color('dim', text)}\n" if gone else "\n")

    def _emit(self, node: Node) -> None:
        write = self._body.append
        if node.op == "placeholder":
            default = f" = {self._value(node.args[0])}" if node.args else ""
            plain = check_name(node.target.lstrip("*"), "input")
            self._free.append(f"{node.target}{self._annotation(node)}{default}")
            if plain != repr(node):
                write(f"{node!r} = {plain}\n")
            return
        if node.op == "output":
            if node.type is not None:
                self._returns = f" -> {self._type(node.type)}"
            output = self._codegen.generate_output
            style: dict[str, Any] = {"repr_fn": self._value} if _takes(output, "repr_fn") else {}
            write(output(node.args[0], **style))
            return
        result = f"{node!r}{self._annotation(node)} = "
        if node.op == "call_method":
            method = attribute(self._value(node.args[0]), node.target)
            write(f"{result}{method}({self._arguments(node.args[1:], node.kwargs)})")
        elif node.op == "call_module":
            write(f"{result}{attribute(self._root, node.target)}({self._arguments(node.args, node.kwargs)})")
        elif node.op == "get_attr":
            write(f"{result}{attribute(self._root, node.target)}")
        else:
            self._emit_call(node, result)

    def _emit_call(self, node: Node, result: str) -> None:
        name, args = getattr(node.target, "__name__", ""), node.args
        if getattr(node.target, "__module__", "") == "_operator":
            if name in MAGIC:
                self._body.append(result + MAGIC[name].format(*map(self._value, args)))
                return
            if name in INPLACE:
                changed = INPLACE[name].format(*map(self._value, args))
                self._body.append(f"{changed};  {result}{self._value(args[0])}")
                return
        function = self._global(qualified(node.target), node.target)
        if function == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            self._body.append(result + attribute(self._value(args[0]), args[1]))
            return
        self._body.append(f"{result}{function}({self._arguments(args, node.kwargs)})")
        if node.meta.get("is_wrapped", False):
            self._wrapped.setdefault(function)


def _shape(sizes: Iterable[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _takes(method: Callable[..., Any], name: str) -> bool:
    """Whether a method of a program's own code generator has an argument."""
    return name in inspect.signature(method).parameters


__all__ = [
    "INPLACE", "MAGIC", "REFLECTABLE", "TAKEN", "CodeGen", "PythonCode", "_PyTreeCodeGen", "_PyTreeInfo", "attribute",
    "builtins_of_code",
]  # fmt: skip
