"""``gradwire doctor``: the command line and what it prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gradwire_protocol.errors import GradwireError

from ..._core.surface.wait_line import enabled
from ..printing import plain, print_json
from .examination import CHECKS, Examination
from .findings import Finding, Status, without

SHOWN: Final = {
    Status.OK: ("OK", "green"), Status.WARNING: ("WARNING", "yellow"), Status.FAILURE: ("FAILURE", "bold red"),
    Status.SKIPPED: ("-", "dim"),
}  # fmt: skip
NAME_WIDTH: Final = 9
STATUS_WIDTH: Final = 7


def doctor(
    context: typer.Context,
    url: Annotated[str, typer.Option(envvar="GRADWIRE_URL", help="URL of the server. Default: embedded.")] = "",
    api_key: Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="An API key of the server.")] = "",
    timeout: Annotated[float, typer.Option(min=0.1, max=600, help="Seconds for each request.")] = 5.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the way from this machine to a server, and the server: what is wrong, and what to do.

    Without a URL it checks the embedded server that programs would start. Exits with 1 if a check fails; warnings do
    not count. No text contains the key.
    """
    examination = Examination(
        url, _source(context, "url", "GRADWIRE_URL"), api_key, _source(context, "api_key", "GRADWIRE_API_KEY"), timeout
    )
    found: list[Finding] = []
    console = Console()
    try:
        # The generator is closed, so that its session is deleted also after Ctrl-C.
        with closing(examination.findings()) as findings, _waiting(console, json) as wait_for:
            wait_for(CHECKS[0])
            for finding in findings:
                wait_for(CHECKS[min(len(found) + 1, len(CHECKS) - 1)])
                safe = _safe(examination, finding)
                found.append(safe)
                if not json and safe.status is not Status.SKIPPED:
                    _print(console, safe)
    finally:
        examination.close()
    failed = any(finding.status is Status.FAILURE for finding in found)
    if json:
        rows = [{"check": each.check, "status": each.status.value, "text": each.text, "advice": each.advice,
                 "facts": each.facts} for each in found]  # fmt: skip
        print_json({"ok": not failed, "checks": rows})
    else:
        _print_end(console, found)
    if failed:
        raise typer.Exit(1)


def _wanted() -> bool:
    try:
        return enabled()
    except GradwireError:  # the variable has a value that it cannot have, of which programs are told
        return False


@contextmanager
def _waiting(console: Console, json: bool) -> Iterator[Callable[[str], None]]:
    """A line on a terminal that names the check under way, which may take seconds."""
    if json or not console.is_terminal or not _wanted():
        yield lambda name: None
        return
    with console.status("") as status:
        yield lambda name: status.update(f"checking {name}")


def _source(context: typer.Context, parameter: str, variable: str) -> str:
    given = context.get_parameter_source(parameter)
    return f"--{parameter.replace('_', '-')}" if given is not None and given.name == "COMMANDLINE" else variable


def _safe(examination: Examination, finding: Finding) -> Finding:
    """The finding without keys, and without characters that would change the terminal."""
    told: dict[str, Any] = without(
        examination.secrets, {"text": finding.text, "advice": finding.advice, "facts": finding.facts}
    )
    return Finding(finding.check, finding.status, plain(told["text"]), plain(told["advice"]), told["facts"])


def _print(console: Console, finding: Finding) -> None:
    word, style = SHOWN[finding.status]
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(width=STATUS_WIDTH)
    line.add_column(width=NAME_WIDTH)
    line.add_column(overflow="fold")
    text = Text(finding.text)
    if finding.advice:
        text.append(f"\n-> {finding.advice}", "bold" if finding.status is Status.FAILURE else "")
    line.add_row(Text(word, style), finding.check, text)
    console.print(line)


def _print_end(console: Console, found: list[Finding]) -> None:
    # A check that has nothing to look at is told only to programs.
    skipped = [each.check for each in found if each.status is Status.SKIPPED and each.text.startswith("not checked")]
    if skipped:
        _print(console, Finding("not", Status.SKIPPED, f"checked: {', '.join(skipped)}"))
    counts = Counter(each.status for each in found)
    parts = [f"{counts[Status.OK]} OK"]
    for status, one, many in ((Status.WARNING, "warning", "warnings"), (Status.FAILURE, "failure", "failures")):
        if counts[status]:
            parts.append(f"{counts[status]} {one if counts[status] == 1 else many}")
    console.print(Text(", ".join(parts)))
