"""The op table as pages: a page a family, with shapes, dtypes, formula and gradient of each operation.

Signature, description and facts are those of the table. Examples of shapes and dtypes are what an op's rule answers to
the tests' samples (:mod:`tools.rule_samples`). A gradient is the rule that the engine runs, from its source.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

import gradwire_engine.ops  # noqa: F401  fills the registry
from gradwire_engine.autograd.registry import ROWS
from gradwire_protocol import ops
from gradwire_protocol.table import TABLE, Op
from tools import coverage, rule_samples
from tools.derive import facts, families, prose

EXAMPLES: Final = 4
"""Examples of shapes and dtypes of an op, at most."""
LONG: Final = 60
"""Characters of an argument that an example shows."""

INTRODUCTION: Final = """\
# Operations

{} operations and {} in-place forms, by family. A signature is the schema of a record in a frame: arguments travel in
this order, trailing defaults may be left out, tensors are references ([protocol](../protocol.md)). The same as JSON is
[ops.json](../ops.json), or what `GET /v1/ops` answers. [How much of PyTorch this covers](coverage.md) is a page of its
own.

Each entry has the signature, what it computes, examples of shapes and dtypes (what the op's rule answers, as
`dtype[shape]`; `?` depends on data), and the gradient as the engine computes it. Functions that it calls stand in
`engine/gradwire_engine/ops`. The engine sums gradients over broadcast dimensions and casts them to the operand's dtype.

"""


def page_of(family: str) -> str:
    """The path of a family's page in the manual."""
    return f"ops/{family}"


def anchors() -> dict[str, str]:
    """The page of each anchor of docs/ops.md."""
    found = {"the-op-database-of-pytorch": "ops/coverage"}
    for family, members in families().items():
        found[f"the-{family}-family"] = page_of(family)
        found |= {op.name.lower(): page_of(family) for op in members}
    return found


@cache
def _examples() -> dict[str, list[tuple[list[Any], Any]]]:
    found: dict[str, list[tuple[list[Any], Any]]] = {}
    for line in rule_samples.lines():
        name, arguments, results = json.loads(line)
        found.setdefault(name, []).append((arguments, results))
    return found


def _argument(value: Any) -> str:
    if isinstance(value, dict):
        if "tensor" in value:
            dtype, shape = value["tensor"]
            return f"{dtype}{shape}"
        if "complex" in value:
            return "complex(" + ", ".join(value["complex"]) + ")"
        return str(next(iter(value.values())))
    if isinstance(value, list):
        return "[" + ", ".join(map(_argument, value)) + "]"
    return repr(value)


def _kinds(value: Any) -> str:
    """The dtypes of an example's tensors: examples of other dtypes say more than ones of other shapes."""
    return " ".join(part["tensor"][0] for part in _tensors(value))


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and "tensor" in value:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _tensors(item)


def _shapes(op: Op) -> Iterator[str]:
    """A table of what the rule infers for a few samples: of as many dtypes as possible, the largest shapes first."""
    fine = [(a, r) for a, r in _examples().get(op.name, []) if isinstance(r, list) and r]
    chosen: dict[str, tuple[list[Any], Any]] = {}
    for arguments, results in fine:
        kinds = _kinds(arguments)
        size = sum(len(part["tensor"][1]) for part in _tensors(arguments))
        if kinds not in chosen or size > sum(len(part["tensor"][1]) for part in _tensors(chosen[kinds][0])):
            chosen[kinds] = (arguments, results)
    if not chosen:
        return
    # Common dtypes first, then those whose results have another dtype.
    order = sorted(chosen, key=lambda kinds: (not kinds.startswith("float32"), not kinds.startswith(("int64", "comp"))))
    yield "| arguments | results |"
    yield "|---|---|"
    for kinds in order[:EXAMPLES]:
        arguments, results = chosen[kinds]
        shown = [
            f"{param.name}={_argument(value)}"
            for param, value in zip(op.params, arguments, strict=True)
            if param.required or encoded_default(param.default) != value
        ]
        short = [text if len(text) <= LONG else text[: LONG - 1] + "…" for text in shown]
        answers = ", ".join(
            f"{dtype}{['?' if n < 0 else n for n in shape]}".replace("'", "") for dtype, shape in results
        )
        yield (
            f"| `{', '.join(short)}` | `{answers}` |".replace("|", "\\|")
            .replace("\\| `", "| `")
            .replace("` \\|", "` |")
        )
    yield ""


def encoded_default(value: Any) -> Any:
    """A parameter's default as examples have it."""
    return json.loads(json.dumps(rule_samples.encoded(value), default=str))


@cache
def _calls(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def _rule(function: Callable[..., Any]) -> str:
    """The source of a rule: of a lambda its expression, else the function."""
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        return ""
    code = function.__code__
    lines, first = inspect.getsourcelines(function)
    if function.__name__ != "<lambda>":
        return textwrap.dedent("".join(lines)).rstrip()
    with open(code.co_filename, encoding="utf-8") as file:
        text = file.read()
    columns = {position[2:] for position in code.co_positions() if None not in position and position[0] == first}
    starts = [start for start, end in columns if start or end]
    for node in ast.walk(_calls(code.co_filename)):
        if not isinstance(node, ast.Lambda) or node.lineno > first or (node.end_lineno or 0) < first:
            continue
        if starts and node.lineno == first and not node.col_offset <= min(starts) <= (node.end_col_offset or 0):
            continue
        arguments = [argument.arg for argument in node.args.args]
        if tuple(arguments) == code.co_varnames[: code.co_argcount]:
            expression = textwrap.dedent(f"{' ' * node.body.col_offset}{ast.get_source_segment(text, node.body)}")
            return f"lambda {', '.join(arguments)}: {expression}"
    return ""


def _gradient(op: Op) -> Iterator[str]:
    """The derivative, as the engine computes it."""
    entry = ROWS.get(op.name)
    if entry is None or not (entry.rules or entry.joint):
        return
    yield "**Gradient** (`g` is the gradient of the result, `s` has what was saved and the arguments):\n"
    if entry.joint is not None:
        saved = ", ".join(f"`{name}`" for name in entry.saves) or "nothing"
        yield f"All operands together; saves {saved}.\n"
        yield f"```python\n{_rule(entry.joint)}\n```\n"
    short, long = [], []
    for operand, (saves, function) in entry.rules.items():
        source = _rule(function)
        saved = f"  # saves {', '.join(saves)}" if saves else ""
        if source.startswith("lambda s, g: "):
            expression = source.removeprefix("lambda s, g: ")
            between = f"grad_{operand} = " if "\n" not in expression else f"grad_{operand} = \\\n    "
            short.append(f"{between}{expression}{saved}")
        elif source:
            short.append(f"grad_{operand} = {name_of(function)}(s, g){saved}")
            if source not in long:
                long.append(source)
    if short:
        code = "\n\n".join(["\n".join(short), *long])
        yield f"```python\n{code}\n```\n"


def name_of(function: Callable[..., Any]) -> str:
    """How the example calls a rule that is no expression: by its name, a lambda by a word."""
    return "rule" if function.__name__ == "<lambda>" else function.__name__


def pages() -> Iterator[tuple[str, str]]:
    """The pages: their paths in the manual, and their text in Markdown."""
    grouped = families()
    forms = sum(op.base is not None and not op.internal for op in TABLE.values())
    listed = []
    for family, members in grouped.items():
        about = prose((inspect.getdoc(import_module(f"{ops.__name__}.{family}")) or "").split("\n\n")[0])
        names = " ".join(f"[{op.name}]({family}.md#{op.name.lower()})" for op in members)
        listed.append(f"* **[{family}]({family}.md)**: {about} {names}")
        lines = [f"# {family.replace('_', ' ').capitalize()} operations\n", f"(the-{family}-family)=", f"{about}\n"]
        for op in members:
            lines += [f"## {op.name}", "", f"```text\n{op.signature}\n```", "", prose(op.doc), ""]
            lines += [f"*{'; '.join(facts(op))}.*", "", *_shapes(op), *_gradient(op)]
        yield page_of(family), "\n".join(lines) + "\n"
    hidden = "\n".join(["```{toctree}\n:hidden:\n", *grouped, "coverage", "```"])
    yield (
        "ops/index",
        INTRODUCTION.format(sum(map(len, grouped.values())), forms) + "\n".join(listed) + f"\n\n{hidden}\n",
    )
    yield "ops/coverage", "\n".join(coverage.section()).replace("\n## ", "# ", 1) + "\n"
