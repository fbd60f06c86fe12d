"""Writes what the TypeScript client derives from the op table and from the error vocabulary.

============================== ==================================================================================
file of client/typescript/src/ what it is
============================== ==================================================================================
errors/codes.ts                the class of each error code, its HTTP status, and whether a retry can help
ops/dtypes.ts                  the dtypes
ops/table.ts                   a row an op: parameters, results, exposure, rules for shapes and dtypes, facts
ops/methods.ts                 the types and documentation of the tensor's methods
surface/functions.ts           the same of functions, by namespace, and their names as exports
============================== ==================================================================================
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import gradwire_protocol.ops  # noqa: F401  fills the table
from gradwire_protocol import dtypes
from gradwire_protocol.choices import choices
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import BY_CODE
from gradwire_protocol.meta import Meta
from gradwire_protocol.params import FLOAT, REAL, FreePosition, Kind, Param, Payload, Position
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE, Op

from .derived_rules import Rule, rule_of

SOURCE: Final = Path(__file__).parents[1] / "client" / "typescript" / "src"
HEADER: Final = "// Derived from {source}: change that, and run `make derive`.\n"
OPS: Final = "protocol/gradwire_protocol/ops/"

UNPREDICTABLE: Final = frozenset({"callbacks", "control"})
"""Families whose rules tell little of what their results are."""

LABELS: Final = {
    **dict.fromkeys(
        ("sort", "topk", "cummax", "cummin", "mode", "kthvalue", "max_dim", "min_dim", "median_dim", "nanmedian_dim"),
        ("values", "indices"),
    ),
    **dict.fromkeys(("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"),
                    ("values", "indices")),
    **dict.fromkeys(("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"), ("values", "indices")),
    "aminmax": ("min", "max"), "frexp": ("mantissa", "exponent"), "slogdet": ("sign", "logabsdet"),
    "var_mean": ("variance", "mean"), "std_mean": ("std", "mean"),
}  # fmt: skip
"""The names of an op's results, where it has several."""

RESERVED: Final = frozenset({"delete", "in", "new", "this", "typeof", "var", "void", "with"})
"""Words that TypeScript does not accept as the name of a constant; as a property they are fine."""

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?\.?([^`]*)`")


def camel(name: str) -> str:
    """A name as TypeScript spells it: ``log_softmax`` is ``logSoftmax``, ``clamp_min_`` is ``clampMin_``."""
    end = "_" if name.endswith("_") else ""
    first, *rest = name.removesuffix("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest) + end


# Types and defaults


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types of a union, or the type itself."""
    if get_origin(annotation) in (UnionType, Union):
        return tuple(inner for part in get_args(annotation) for inner in alternatives(part))
    return (annotation,)


def type_names(param: Param) -> list[str]:
    """The types of a parameter's arguments, as the rows of the table name them. Data begins with a capital letter."""
    found = [_type_name(member) for member in alternatives(param.annotation)]
    if {"bool", "int", "float", "complex"} <= set(found):
        found = ["number", *(name for name in found if name not in ("bool", "int", "float", "complex"))]
    return list(dict.fromkeys(found))


def _type_name(member: Any) -> str:
    plain = {
        Meta: "Tensor", ScalarKind: "Scalar", NoneType: "null", DType: "dtype", Payload: "Payload",
        Position: "Position", FreePosition: "Position",
    }  # fmt: skip
    if member in plain:
        return plain[member]
    origin = get_origin(member)
    if origin is Annotated:
        return {FLOAT: "Float", REAL: "Real"}.get(get_args(member)[1], "Scalar")
    if origin in (list, tuple):
        inner = [_type_name(part) for part in alternatives(get_args(member)[0])]
        return f"{inner[0]}?[]" if "null" in inner else f"{inner[0]}[]"
    return str(member.__name__)


def default_text(value: Any) -> str:
    """A default as JSON. Floats keep their point, which makes them floats."""
    if isinstance(value, DType):
        return json.dumps(value.name)
    return json.dumps(value)


def parameters(op: Op) -> str:
    """The parameters of an op in a row of the table."""
    shown = []
    for param in op.params:
        default = "" if param.required else f" = {default_text(param.default)}"
        shown.append(f"{param.name}: {' | '.join(type_names(param))}{default}")
    if op.keyword_only:
        shown.insert(op.by_position, "*")
    return ", ".join(shown)


def typescript_type(op: Op, param: Param) -> str:
    """The type of a parameter's arguments in TypeScript."""
    words = choices(op, param)
    shown: list[str] = []
    for name in type_names(param):
        if name == "str" and words:
            shown += [json.dumps(word) for word in words]
        else:
            shown.append(_TYPES[name])
    if "int[]" in type_names(param) and param.name != op.variadic:
        shown.insert(0, "number")  # stands for a list of one
    return " | ".join(dict.fromkeys(shown))


_TYPES: Final = {
    "Tensor": "Tensor", "Scalar": "Scalar", "Float": "Real", "Real": "Real", "Position": "number | bigint",
    "Payload": "Payload", "Tensor[]": "readonly Tensor[]", "Tensor?[]": "readonly (Tensor | null)[]",
    "number": "Scalar", "bool": "boolean", "int": "number", "float": "number", "complex": "Complex", "str": "string",
    "dtype": "DTypeName", "int[]": "readonly number[]", "int?[]": "readonly (number | null)[]",
    "float[]": "readonly number[]", "bool[]": "readonly boolean[]", "str[]": "readonly string[]",
    "int[][]": "readonly (readonly number[])[]", "null": "null",
}  # fmt: skip


# The table


@cache
def recordable() -> tuple[Op, ...]:
    """The ops that a client may record."""
    return tuple(op for op in TABLE.values() if not op.internal)


@cache
def rule(op: Op) -> Rule:
    """The general rules of an op, with ``?`` for what is not known."""
    if op.base is not None:
        return rule(op.base)
    if op.family in UNPREDICTABLE and op.results != 0:
        return Rule("?", "?")
    return rule_of(op)


def fact_words(op: Op) -> Iterator[str]:
    """What a row says of an op beside its parameters and results."""
    if op.grad_fn is not None:
        named = [p.name for p in op.params if p.name in op.differentiable]
        takers = [
            p.name for p in op.params if p.kind in (Kind.TENSOR, Kind.TENSORS, Kind.OPTIONAL_TENSORS, Kind.OPERAND)
        ]
        yield "differentiable" if named == takers else f"differentiable:{','.join(named)}"
    if op.underived:
        yield f"underived:{','.join(op.underived)}"
    if op.constant:
        yield f"constant:{','.join(map(str, op.constant))}"
    if op.mutates is not None:
        yield "inplace" if op.base is None else f"inplace:{op.base.name}"
    if op.variadic:
        yield f"variadic:{op.variadic}"
    for word in ("elementwise", "view", "untracked", "random", "dynamic", "control", "after_backward", "duplicates"):
        if getattr(op, word):
            yield word


def table() -> str:
    """The rows of the table."""
    lines = [
        HEADER.format(source=OPS),
        "/**",
        " * A row of the op table: name, parameters, number of results (`null`: it depends on the arguments), where",
        " * clients offer it, the rules for the results' shapes and dtypes, facts.",
        " */",
        "export type Row = readonly [string, string, number | null, string, string, string, string];",
        "",
        "export const ROWS: readonly Row[] = [",
    ]
    for op in recordable():
        shape, dtype = rule(op)
        row = [op.name, parameters(op), op.results, " ".join(op.exposed), shape, dtype, " ".join(fact_words(op))]
        lines.append(f"  {json.dumps(row)},")
    return "\n".join([*lines, "];"]) + "\n"


# Methods and functions


class Call(NamedTuple):
    """One form of a call: what is given by position, and what by name in a last object."""

    positional: Sequence[Param]
    named: Sequence[Param]


def forms(op: Op, params: Sequence[Param]) -> Iterator[Call]:
    """The forms of a call: all by position, or the last ones by name."""
    by_position = [p for p in params if p.name not in op.keyword_only]
    yield Call(by_position, [p for p in params if p.name in op.keyword_only])
    tensors = [i for i, p in enumerate(by_position) if p.required and p.kind is not Kind.ATTRIBUTE]
    first = tensors[-1] + 1 if tensors else 0
    if op.base is not None or not by_position[first:]:
        first = len([p for p in by_position if p.required])
    last = len(by_position)
    for count in range(first, last) if last - first <= 3 else (first, first + 1):
        yield Call(by_position[:count], params[count:])


def creates(op: Op) -> bool:
    """Whether a function makes a tensor out of nothing, or like another: it may be asked to require a gradient."""
    return "device" in op.positions and "function" in op.exposed


def call_text(op: Op, form: Call) -> list[str]:
    """A form's parameters in TypeScript; several where ints may also be given in a row."""
    shown = []
    by_name = all(p.name in op.keyword_only for p in form.named)
    last = "optional" if by_name or (not form.positional and all(not p.required for p in form.named)) else "needed"
    for param in form.positional:
        mark = "" if param.required or last == "needed" else "?"
        name = "input" if param.name == "self" else camel(param.name)
        shown.append(f"{name}{'_' if name in RESERVED else ''}{mark}: {typescript_type(op, param)}")
    if form.named or creates(op):
        fields = "; ".join(f"{camel(p.name)}{'' if p.required else '?'}: {typescript_type(op, p)}" for p in form.named)
        if creates(op):
            fields = "; ".join(filter(None, [fields, "requiresGrad?: boolean; session?: Session"]))
        mark = "?" if last == "optional" and all(not p.required for p in form.named) else ""
        shown.append(f"options{mark}: {{ {fields} }}")
    return shown


def result_type(op: Op, method: bool) -> str:
    """What a call returns."""
    if op.mutates is not None and op.results == 0:
        return "this" if method else "Tensor"
    if op.results == 0:
        return "void"
    if op.results == 1:
        return "Tensor"
    if op.results is None:
        return "Tensor[]"
    labels = LABELS.get(op.name)
    if labels:
        return f"[{', '.join(f'{label}: Tensor' for label in labels)}]"
    return f"[{', '.join(['Tensor'] * op.results)}]"


def documented(op: Op, indent: str) -> list[str]:
    """The documentation of an op as TSDoc."""
    doc = op.doc
    if op.base is not None:
        doc = f"In-place form of ``{camel(op.base.name)}``: writes the result into the tensor and returns it."
    text = _ROLE.sub(lambda found: f"``{camel(found[1].rpartition('.')[2])}``", inspect.cleandoc(doc))
    text = re.sub(r"``(.+?)``", lambda found: f"`{' '.join(found[1].split())}`", text, flags=re.DOTALL)
    lines = text.replace("*/", "*\\/").splitlines()
    if len(lines) == 1:
        return [f"{indent}/** {lines[0]} */"]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"]


def declaration(op: Op, name: str, method: bool) -> list[str]:
    """The declaration of a method or a function in an interface."""
    params = op.params[1:] if method else op.params
    lines = documented(op, "  ")
    result = result_type(op, method)
    seen = set()
    for form in forms(op, params):
        texts = call_text(op, form)
        spelled = [", ".join(texts), *_in_a_row(op, form, texts)]
        for arguments in spelled:
            if arguments not in seen:
                seen.add(arguments)
                lines.append(f"  {name}({arguments}): {result};")
    return lines


def _in_a_row(op: Op, form: Call, texts: Sequence[str]) -> Iterator[str]:
    """A form with its ints in a row instead of a list, where the op allows it: then by name what follows them."""
    at = next((i for i, p in enumerate(form.positional) if p.name == op.variadic), None)
    if at is None:
        return
    row = f"...{camel(form.positional[at].name)}: number[]"
    if at == len(form.positional) - 1 and len(texts) > len(form.positional):
        before = "".join(f"{text}, " for text in texts[:at])
        yield f"...args: [{before}{row}, {texts[-1]}]"
    elif not form.named:
        yield ", ".join([*texts[:at], row])


IMPORTS: Final = (
    'import type { Tensor } from "../tensor/tensor.ts";\n'
    'import type { DTypeName } from "./dtypes.ts";\n'
    'import type { Real, Scalar } from "./values.ts";\n'
)


def methods() -> str:
    """The interface of the tensor's methods."""
    lines = [
        HEADER.format(source=OPS),
        IMPORTS,
        "/**",
        " * The methods of a tensor that are ops of the table. Arguments are by position, or the last ones by name",
        " * in a plain object: `x.sum(0, { keepdim: true })`.",
        " */",
        "export interface TensorMethods {",
    ]
    for op in sorted(recordable(), key=lambda op: op.name):
        if "method" in op.exposed and op.name not in OVERLOADED:
            lines += declaration(op, camel(op.name), method=True)
    return "\n".join([*lines, "}"]) + "\n"


OVERLOADED: Final = frozenset({"max", "min", "median", "nanmedian", "requires_grad_", "view"})
"""Names under which a client offers several ops, or arguments that are sugar: written by hand in src/surface/."""
BY_HAND: Final = frozenset({*OVERLOADED, "complex", "einsum"})
"""The same for functions."""

NAMESPACES: Final = {"function": "Functions", "nn.functional": "NNFunctions", "special": "SpecialFunctions"}


def members(exposure: str) -> dict[str, Op]:
    """The functions of a namespace, by name in TypeScript."""
    found = {}
    for op in sorted(recordable(), key=lambda op: op.name):
        if exposure in op.exposed and op.name not in BY_HAND:
            found[camel(op.name.removeprefix("special_") if exposure == "special" else op.name)] = op
    return found


def functions() -> str:
    """The interfaces of functions, and the functions as exports."""
    lines = [
        HEADER.format(source=OPS),
        IMPORTS.replace('"./', '"../ops/').replace(
            "import type { DType",
            'import type { Session } from "../session/session.ts";\n'
            'import { functionsOf } from "./calling.ts";\nimport type { DType',
        ),
    ]
    for exposure, interface in NAMESPACES.items():
        lines += [
            f"/** The functions of {'the package' if exposure == 'function' else exposure}. */",
            f"export interface {interface} {{",
        ]
        for name, op in members(exposure).items():
            lines += declaration(op, name, method=False)
        lines += ["}", ""]
    for exposure, interface in NAMESPACES.items():
        constant = {"function": "FUNCTIONS", "nn.functional": "F", "special": "special"}[exposure]
        prefix = ', "special_"' if exposure == "special" else ""
        lines += [f'export const {constant} = functionsOf<{interface}>("{exposure}"{prefix});', ""]
    plain = members("function")
    names = [f"{name}: {name}Of" if name in RESERVED else name for name in plain]
    lines += ["export const {", *_wrapped(names), "} = FUNCTIONS;"]
    lines += [f"export {{ {name}Of as {name} }};" for name in plain if name in RESERVED]
    return "\n".join(lines) + "\n"


def _wrapped(names: Sequence[str]) -> Iterator[str]:
    line = " "
    for name in names:
        if len(line) + len(name) > 116:
            yield line
            line = " "
        line += f" {name},"
    yield line


# Dtypes and errors


def dtype_list() -> str:
    """The dtypes."""
    lines = [
        HEADER.format(source="protocol/gradwire_protocol/dtypes.py"),
        "/** A dtype by PyTorch's name. */",
        "export type DTypeName =",
        *(f"  | {json.dumps(dtype.name)}" for dtype in dtypes.ALL),
    ]
    lines[-1] += ";"
    lines += [
        "",
        "/** Facts of a dtype. Categories: 0 bool, 1 integers, 2 floating point, 3 complex. */",
        "export interface DTypeFacts {",
        "  readonly index: number;",
        "  readonly category: 0 | 1 | 2 | 3;",
        "  readonly itemsize: number;",
        "  readonly safetensors: string | null;",
        "  /** Whether it is for storage, and few operations take it. */",
        "  readonly forStorage: boolean;",
        "}",
        "",
        "export const DTYPES: Readonly<Record<DTypeName, DTypeFacts>> = {",
    ]
    for dtype in dtypes.ALL:
        tag = json.dumps(dtype.safetensors)
        lines.append(
            f"  {dtype.name}: {{ index: {dtype.index}, category: {dtype.category}, itemsize: {dtype.itemsize}, "
            f"safetensors: {tag}, forStorage: {str(dtype.for_storage).lower()} }},"
        )
    return "\n".join([*lines, "};"]) + "\n"


def errors() -> str:
    """The classes of errors by code."""
    lines = [
        HEADER.format(source="protocol/gradwire_protocol/errors.py"),
        'import { GradwireError } from "./error.ts";',
    ]
    classes = {cls.__name__: cls for cls in BY_CODE.values()}
    ordered = sorted(classes.values(), key=lambda cls: (len(cls.__mro__), cls.__name__))
    for cls in ordered:
        base = next(b.__name__ for b in cls.__mro__[1:] if b.__name__ in classes or b.__name__ == "GradwireError")
        doc = " ".join(inspect.cleandoc(cls.__doc__ or "").replace("``", "`").split())
        lines += [
            "",
            f"/** {doc} */",
            f"export class {cls.__name__} extends {base} {{",
            f'  static override readonly code: string = "{cls.code}";',
            f"  static override readonly status: number = {cls.status};",
            f"  static override readonly retryable: boolean = {json.dumps(cls.retryable)};",
            f'  override name: string = "{cls.__name__}";',
            "}",
        ]
    lines += [
        "",
        "/** The class of each code. */",
        "export const BY_CODE: ReadonlyMap<string, typeof GradwireError> = new Map([",
        *(f"  [{json.dumps(code)}, {cls.__name__}]," for code, cls in sorted(BY_CODE.items())),
        "] as [string, typeof GradwireError][]);",
    ]
    return "\n".join(lines) + "\n"


_MADE: Final[dict[str, Callable[[], str]]] = {
    "errors/codes.ts": errors,
    "ops/dtypes.ts": dtype_list,
    "ops/table.ts": table,
    "ops/methods.ts": methods,
    "surface/functions.ts": functions,
}
PAGES: Final = {name.replace("/", "_"): made for name, made in _MADE.items()}
FILES: Final = {name.replace("/", "_"): SOURCE / name for name in _MADE}
"""Where each file belongs."""
