"""What ``inspect.signature`` and ``help`` tell of functions that are made from the op table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from inspect import Parameter, Signature
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from gradwire_protocol import errors
from gradwire_protocol.dtypes import DType
from gradwire_protocol.table import Kind, Op, Param

from ..context.late_signatures import Annotation, out_of

NUMBERS: Final = {"float": "float", "real": "float", "common": "complex", "element": "complex", None: "complex"}
"""The Python type of a number, by which numbers a parameter takes. To a type checker an int is a float, and a float
is a complex."""
OF_KIND: Final = {
    Kind.TENSOR: "Tensor", Kind.TENSORS: "Sequence[Tensor]", Kind.OPTIONAL_TENSORS: "Sequence[Tensor | None]",
    Kind.POSITION: "int", Kind.PAYLOAD: "bytes",
}  # fmt: skip


def signature_of(op: Op, inplace: bool = False) -> Signature:
    """How the function of an op is called; with ``inplace``, the one whose last argument chooses the in-place form."""
    shown = [*_parameters(op)]
    returned = returned_by(op)
    if inplace:
        shown.append(_parameter("inplace", Parameter.POSITIONAL_OR_KEYWORD, "bool", False))
    if op.random:
        shown.append(_parameter("generator", Parameter.KEYWORD_ONLY, "Generator | None", None))
    if op.results != 0 and op.mutates is None:
        shown.append(_parameter("out", Parameter.KEYWORD_ONLY, out_of(returned), None))
    return Signature(sorted(shown, key=lambda p: p.kind), return_annotation=Annotation(returned))


def _parameter(name: str, kind: Any, annotation: str, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, kind, annotation=Annotation(annotation), default=default)


def _parameters(op: Op) -> Iterator[Parameter]:
    for at, param in enumerate(op.params):
        name = "input" if at == 0 and param.name == "self" else param.name
        if name == op.variadic:
            yield _parameter(name, Parameter.VAR_POSITIONAL, "int | Sequence[int]")
            continue
        by_name = param.name in op.keyword_only or op.variadic in [p.name for p in op.params[:at]]
        kind = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if param.required else param.default
        yield _parameter(name, kind, type_of(param), default)


def returned_by(op: Op) -> str:
    """The type that the function of an op returns."""
    if op.mutates is not None or op.results == 1:
        return "Tensor"
    if op.results == 0:
        return "None"
    return "tuple[Tensor, ...]" if op.results is None else f"tuple[{', '.join(['Tensor'] * op.results)}]"


def type_of(param: Param) -> str:
    """The type of a parameter as a program writes it."""
    numbers = NUMBERS[param.numbers]
    if param.kind is Kind.OPERAND:
        found = [f"Tensor | {numbers}"]
    elif param.kind is Kind.SCALAR:
        found = [numbers]
    elif param.name == "device":
        found = ["device | str | int"]
    elif param.kind is Kind.ATTRIBUTE:
        found = [_attribute(member) for member in param.check]
        if "complex" in found:
            found = [name for name in found if name not in ("bool", "int", "float")]
    else:
        found = [OF_KIND[param.kind]]
    optional = param.optional or (param.default is None and not param.required) or param.name == "device"
    return " | ".join([*dict.fromkeys(found), *(["None"] if optional else [])])


def _attribute(member: Any) -> str:
    if get_origin(member) is tuple:
        return f"Sequence[{' | '.join(_attribute(m) for m in _members(get_args(member)[0]))}]"
    return {DType: "dtype", NoneType: "None"}.get(member) or str(member.__name__)


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)


# Documentation. Every import makes it of every op, so annotations are read as the text they are.

_WORDS: Final = {
    "Scalar": "number", "Factor": "number", "Element": "number", "Number": "number", "Float": "float",
    "Real": "real number", "Ints": "ints", "Dims": "int | ints | None", "tuple[int, ...]": "ints", "Position": "int",
    "DType": "dtype", "list[Tensor]": "tensors", "list[Tensor | None]": "tensors or None each", "Tensor": "tensor",
}  # fmt: skip
_WRITTEN: Final = re.compile("|".join(map(re.escape, sorted(_WORDS, key=len, reverse=True))))
_kinds: dict[str, str] = {}

FACTS: Final = {
    "elementwise": "operands broadcast to one shape, and their dtypes promote to one",
    "elementwise of one": "the result has the shape of the input",
    "reduction": "dimensions that are reduced are left out, or have extent 1 with ``keepdim``",
    "need_matrix": "matrices are the last two dimensions, others are batches",
    "need_square": "matrices are square",
    "need_same_dtype": "all operands have one dtype",
    "_smooth": "integers become the default float dtype",
    "smooth": "integers become the default float dtype",
    "need_float": "integers and bools are refused",
    "_truth": "the result is bool",
}
"""What an op's rule says about shapes and dtypes by calling a function of this name."""
_RAISES: Final = {
    kind: f"\n        {kind.__name__}: {' '.join((kind.__doc__ or '').split())}"
    for kind in vars(errors).values()
    if isinstance(kind, type)
}
_reached: dict[FunctionType, dict[Any, None]] = {}


@cache
def doc_of(op: Op) -> str:
    """The documentation of an op's function: the table's, the arguments, and what the rule tells of shapes, dtypes and
    errors."""
    rule: Any = op.rule if op.base is None else op.base.rule
    code, written = rule.__code__, rule.__annotations__
    names, defaults = code.co_varnames[: code.co_argcount], rule.__defaults__ or ()
    first, tensors = len(names) - len(defaults), 0
    lines = [(op.rule.__doc__ or "").rstrip(), "\n\n    Args:" if names else ""]
    for at, name in enumerate(names):
        kind = written[name]
        tensors += "Tensor" in kind
        shown = _kinds.get(kind) or _kinds.setdefault(kind, _WRITTEN.sub(lambda found: _WORDS[found[0]], kind))
        default = f" = {defaults[at - first]!r}" if at >= first else ""
        lines.append(f"\n        {'input' if name == 'self' else name}: {shown}{default}")
    reached = _reach(rule)
    facts = [name for name in FACTS if name in reached]
    if "elementwise" in facts and tensors == 1:
        facts[0] = "elementwise of one"
    if facts:
        lines.append(f"\n\n    Shapes and dtypes: {'; '.join(dict.fromkeys(FACTS[name] for name in facts))}.")
    lines.append("\n\n    Raises:")
    lines.append(_RAISES[errors.ArgumentTypeError])
    lines += [_RAISES[found] for found in reached if found in _RAISES and found is not errors.ArgumentTypeError]
    return "".join([*lines, "\n    "])


def _reach(function: FunctionType) -> dict[Any, None]:
    """What a rule mentions, itself or in a function that it calls: errors, and names of functions of the protocol."""
    found = _reached.get(function)
    if found is None:
        found = _reached[function] = {}
        known = function.__globals__
        for name in function.__code__.co_names:
            mentioned = known.get(name)
            if type(mentioned) is FunctionType:
                if mentioned.__module__.startswith("gradwire_protocol"):
                    found[name] = None
                    found.update(_reach(mentioned))
            elif type(mentioned) is type and mentioned in _RAISES:
                found[mentioned] = None
    return found
