"""Writes the files that follow from tables in the code, and tells whether they are still right.

``python -m tools.derive`` writes them; ``python -m tools.derive --check`` exits 1 and names those that are stale.

================ ======================================= ===========================================
page             follows from                            which is
================ ======================================= ===========================================
ops.md           ``gradwire_protocol.table.TABLE``       the op table, for people; and what
                                                         :mod:`tools.coverage` says of PyTorch's
ops.json         the same                                what ``GET /v1/ops`` answers
errors.md        ``gradwire_protocol.errors.BY_CODE``    the error vocabulary
settings.md      ``gradwire_server.settings.settings.Settings``   what the environment sets
metrics.md       ``gradwire_server.observability.metrics.METRICS``     what ``/metrics`` tells
libraries.md     ``tests/libraries/results.json``        what :mod:`tools.libraries` says of the last run
missing-names.md ``tools/public_names/torch.json``       what :mod:`tools.public_names` finds that
                                                         gradwire lacks of PyTorch, and why
differences.md   the same                                its derived part: the reasons, counted
================ ======================================= ===========================================

Beside these pages of docs/, the ``.pyi`` files of the client are what :mod:`tools.stubs` finds of its namespaces, and
:mod:`tools.typescript` derives the TypeScript client's table, types and errors. The protocol's ``storage_dtypes.py``
is what :mod:`tools.storage_dtypes` finds in PyTorch, the client's ``aten_names.py`` what :mod:`tools.aten_names`
does. ``docker/grafana/dashboard.json`` is what :mod:`tools.dashboard` makes of the metrics. The conformance vectors of
``protocol/vectors`` are what :mod:`tools.vectors` makes of the protocol and the engine.
"""

from __future__ import annotations

import builtins
import inspect
import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import typer

from gradwire_protocol import dtypes, ops
from gradwire_protocol import storage_dtypes as support
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import BY_CODE, GradwireError
from gradwire_protocol.frames import PROTOCOL_VERSION
from gradwire_protocol.table import TABLE, Op
from gradwire_server.observability.metrics import METRICS, PREFIX
from gradwire_server.routes.ops import encoded
from gradwire_server.settings.settings import Settings, variable

from . import aten_names, coverage, dashboard, libraries, storage_dtypes, stubs, typescript
from .public_names import page as missing_names
from .vectors import derivation
from .vectors.store import FOLDER as VECTORS
from .vectors.store import Broken

DOCS: Final = Path(__file__).parents[1] / "docs"
HEADER: Final = "<!-- Derived from {source}: change that, and run `make derive`. -->\n"
COUNTS: Final = ("no result", "one result", *(f"{n} results" for n in ("two", "three", "four", "five", "six")))

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?([^`]*)`")


_ANGLES: Final = str.maketrans({"<": "&lt;", ">": "&gt;"})


def prose(doc: str) -> str:
    """A docstring as Markdown: a paragraph a line, reStructuredText's code and cross-references as code."""
    pieces = re.split(r"(``.+?``)", _ROLE.sub(r"``\1``", inspect.cleandoc(doc)), flags=re.DOTALL)
    told = [f"`{' '.join(p[2:-2].split())}`" if p.startswith("``") else p.translate(_ANGLES) for p in pieces]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in "".join(told).split("\n\n"))


def _cell(doc: str) -> str:
    """:func:`prose` for a table."""
    return prose(doc).replace("\n\n", "<br>").replace("|", "\\|")


# The op table


def families() -> dict[str, list[Op]]:
    """The ops by family, both in alphabetical order. In-place forms stand with the op they belong to."""
    found: dict[str, list[Op]] = {}
    for name in sorted(TABLE):
        if TABLE[name].base is None and not TABLE[name].internal:
            found.setdefault(TABLE[name].family, []).append(TABLE[name])
    return dict(sorted(found.items()))


def ops_page() -> str:
    """The op table as a page."""
    grouped = families()
    forms = sum(op.base is not None and not op.internal for op in TABLE.values())
    lines = [
        HEADER.format(source="`protocol/gradwire_protocol/ops/`"),
        "# The op table\n",
        f"{sum(map(len, grouped.values()))} operations and {forms} in-place forms, by family. A signature is the",
        "schema of a record in a frame: arguments travel in this order, trailing defaults may be left out, tensors",
        "are references ([protocol.md](protocol.md)). The same table as JSON is [ops.json](ops.json), or what",
        "`GET /v1/ops` answers.\n",
    ]
    for family, members in grouped.items():
        listed = " ".join(f"[{op.name}](#{op.name})" for op in members)
        lines.append(f"- **[{family}](#the-{family}-family)**: {listed}")
    lines.append("\nAt the end: [how much of PyTorch this covers](#the-op-database-of-pytorch), entry by entry.")
    for family, members in grouped.items():
        about = inspect.getdoc(import_module(f"{ops.__name__}.{family}")) or ""
        lines += [f"\n## The {family} family\n", prose(about.split("\n\n")[0])]
        for op in members:
            lines += ["", f"### {op.name}", "", f"```text\n{op.signature}\n```", ""]
            lines += [prose(op.doc), "", f"*{'; '.join(facts(op))}.*"]
    return "\n".join([*lines, *coverage.section()]) + "\n"


def _named(listed: list[DType]) -> str:
    return ", ".join(f"`{dtype.name}`" for dtype in listed)


def facts(op: Op) -> Iterator[str]:
    """What the table says of an op beside its signature and its documentation."""
    yield "Number of results depends on the arguments" if op.results is None else COUNTS[op.results].capitalize()
    if op.grad_fn is not None:
        operands = ", ".join(f"`{p.name}`" for p in op.params if p.name in op.differentiable)
        yield f"differentiable in {operands} (`{op.grad_fn}`)"
    elif not op.control:
        yield "not differentiable"
    if op.underived:
        operands = ", ".join(f"`{p.name}`" for p in op.params if p.name in op.underived)
        yield f"{operands} must not require grad"
    stored = [dtype for dtype in dtypes.STORED if op.name in support.TAKEN[dtype]]
    if stored:
        yield "takes " + ("all dtypes for storage" if len(stored) == len(dtypes.STORED) else _named(stored))
    form = TABLE.get(op.name + "_")
    if form is not None and form.base is op:
        yield f"in place: `{form.name}`"
    if op.mutates is not None:
        yield f"writes into `{op.params[op.mutates].name}`"
    if op.random:
        yield "draws random numbers"
    if op.dynamic:
        yield "the shape depends on data"
    if op.control:
        yield "acts on the session"


def ops_json() -> str:
    """What ``GET /v1/ops`` answers, with one op a line, so that a change of one op is a change of one line."""
    rows = json.loads(encoded()[0])["ops"]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{{"protocol": {PROTOCOL_VERSION}, "ops": [\n{lines}\n]}}\n'


# The error vocabulary


def errors_page() -> str:
    """The error vocabulary as a page."""
    lines = [
        HEADER.format(source="`protocol/gradwire_protocol/errors.py`"),
        "# Errors\n",
        "Every error on the wire has a stable `code`: branch on it in any language. The Python client raises the class",
        "of the code. The class also derives from the built-in exception that PyTorch raises in the same situation, so",
        "`except RuntimeError` keeps working. Over HTTP an error is an `application/problem+json` document (RFC 9457)",
        "with the status; on a stream it is part of a reply. If a retry can help, the same request may succeed",
        "later.\n",
        "| code | class | also a | HTTP status | a retry can help | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for cls in sorted(set(BY_CODE.values()), key=lambda cls: (cls.status, cls.code)):
        retry = "yes" if cls.retryable else "no"
        cells = [f"`{cls.code}`", f"`{cls.__name__}`", f"`{_builtin(cls)}`", str(cls.status), retry]
        lines.append(f"| {' | '.join(cells)} | {_cell(cls.__doc__ or '')} |")
    return "\n".join(lines) + "\n"


def _builtin(cls: type[GradwireError]) -> str:
    """The built-in exception that a class stands for."""
    found = [base for base in cls.__mro__ if base.__module__ == builtins.__name__]
    return found[0].__name__


# The server's settings


def settings_page() -> str:
    """The server's settings as a page."""
    lines = [
        HEADER.format(source="`server/gradwire_server/settings/settings.py`"),
        "# Settings of the server\n",
        "Each setting is an environment variable. An invalid value stops the start of the server with a message that",
        "names the variable and the allowed values. An empty variable counts as unset. The server warns about unknown",
        "`GRADWIRE_` variables. `gradwire serve --help` lists the settings that are also options. An embedded server",
        "takes limits, logging and the device from the variables of its program. It ignores those for data, keys,",
        "TLS, proxies and quotas.\n",
        "| variable | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        cells = [f"`{variable(name)}`", _type(field.annotation), _default(name, field.default)]
        lines.append(f"| {' | '.join(cells)} | {_cell(field.description or '')} |")
    return "\n".join(lines) + "\n"


WORDS: Final = {int: "integer", float: "number", str: "text", bool: "true or false", Path: "path"}


def _type(annotation: Any) -> str:
    """A field's type in words."""
    options = [a for a in get_args(annotation) if isinstance(a, str)]
    if options:
        return " or ".join(f"`{option}`" for option in options)
    if isinstance(annotation, type) and not get_args(annotation):
        return {int: "integer", float: "number", str: "text", bool: "true or false", Path: "path"}.get(
            annotation, "text"
        )
    inner = get_args(annotation)
    if str in inner or tuple in inner:
        return "list" if type(None) not in inner else "text"
    return next((_type(a) for a in inner if a is not type(None)), "text")


def _default(name: str, value: Any) -> str:
    if value is None or value == ():
        return "none"
    if name.endswith("_bytes") and isinstance(value, int) and value:
        return f"{value} ({_binary(value)})"
    return f"`{value}`" if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _binary(size: int) -> str:
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


# The server's metrics


def metrics_page() -> str:
    """The server's metrics as a page."""
    lines = [
        HEADER.format(source="`server/gradwire_server/observability/metrics.py`"),
        "# Metrics of the server\n",
        "`GET /metrics` returns them in Prometheus' text format; [observability.md](observability.md) has queries.",
        "Labels are bounded: their values never contain ids, keys or names that a client chooses. The server's process",
        "counts frames of all sessions, those in worker processes included. prometheus-client adds its own `process_*`",
        "and `python_*` metrics.\n",
        "| metric | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for row in METRICS:
        labels = "<br>".join(f"`{name}`: {values}" for name, values in row.labels)
        lines.append(f"| `{PREFIX}{row.name}` | {row.kind.__name__.lower()} | {labels} | {_cell(row.text)} |")
    return "\n".join(lines) + "\n"


# Writing and checking


def differences_page() -> str:
    """The page as it is written by hand, with its derived part renewed."""
    return missing_names.with_table((DOCS / "differences.md").read_text(encoding="utf-8"))


PAGES: Final[dict[str, Callable[[], str]]] = {
    "ops.md": ops_page,
    "ops.json": ops_json,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "dashboard.json": dashboard.dashboard,
    "storage_dtypes.py": storage_dtypes.table,
    "aten_names.py": aten_names.table,
    "libraries.md": libraries.page,
    missing_names.PAGE: missing_names.page,
    "differences.md": differences_page,
    **stubs.STUBS,
    **typescript.PAGES,
}
ELSEWHERE: Final = (
    stubs.FILES
    | typescript.FILES
    | {"storage_dtypes.py": Path(support.__file__), "aten_names.py": aten_names.FILE, "dashboard.json": dashboard.FILE}
)
"""Where a file belongs that is no page of docs/."""


def place(folder: Path, name: str) -> Path:
    """Where a file is written: all of them in one folder, if that is not docs/."""
    return ELSEWHERE.get(name, folder / name) if folder == DOCS else folder / name


def shown(path: Path) -> str:
    """A path as messages name it."""
    root = DOCS.parent
    return str(path.relative_to(root)) if path.is_relative_to(root) else f"docs/{path.name}"


def stale(folder: Path = DOCS) -> list[str]:
    """The pages that are missing there or say something else than the tables."""

    def held(name: str) -> str | None:
        path = place(folder, name)
        return path.read_text(encoding="utf-8") if path.exists() else None

    return [name for name, page in PAGES.items() if held(name) != page()]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    check: Annotated[bool, typer.Option(help="Write nothing; exit 1 if a page is stale.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the pages are.", show_default="docs")] = DOCS,
) -> None:
    """Write the files that follow from tables in the code."""
    old = stale(folder)
    if check:
        if old:
            print(f"stale, run `make derive`: {', '.join(shown(place(folder, name)) for name in old)}")
        wrong = derivation.stale(VECTORS) if folder == DOCS else []
        if wrong:
            print(f"{len(wrong)} conformance vectors, run `make derive`:", *wrong[:20], sep="\n  ")
        if old or wrong:
            raise typer.Exit(1)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in old:
        path = place(folder, name)
        path.write_text(PAGES[name](), encoding="utf-8")
        print(f"written: {shown(path)}")
    if folder == DOCS:
        try:
            for path in derivation.update(VECTORS):
                print(f"written: {shown(path)}")
        except Broken as error:
            print(error)
            raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
