"""What commands share that ask a server: the options, one request, and errors as a line without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, NoReturn, TypeVar

import typer

from gradwire_protocol.errors import GradwireError

from .._core.wire.rest import RestClient
from .doctor.address import read
from .printing import plain

T = TypeVar("T")

DEFAULT_URL: Final = "http://127.0.0.1:8000"
TIMEOUT_S: Final = 30.0

Url = Annotated[str, typer.Option(envvar="GRADWIRE_URL", help="URL of the server.")]
ApiKey = Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="An API key of the server.")]
AdminKey = Annotated[str, typer.Option(envvar="GRADWIRE_API_KEY", help="An API key with the scope admin.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def request(url: str, api_key: str, method: str, path: str, body: Any = None, timeout: float = TIMEOUT_S) -> Any:
    """The JSON answer of a server; a refusal is printed and ends the command with 1."""

    def ask(rest: RestClient) -> Any:
        if method == "POST":
            return rest.post(path, body)
        return rest.get(path) if method == "GET" else rest.delete(path)

    return with_rest(url, api_key, ask, timeout)


def with_rest(url: str, api_key: str, use: Callable[[RestClient], T], timeout: float = TIMEOUT_S) -> T:
    """What ``use`` makes of a client; errors of the server and of files are printed and end the command with 1."""
    checked_url(url)
    rest = None
    try:
        rest = RestClient(url, api_key or None, timeout=timeout)
        return use(rest)
    except GradwireError as error:
        fail(error)
    except OSError as error:
        typer.echo(f"{error.filename or 'the file'}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
    except UnicodeEncodeError:  # the headers of a request are ASCII
        typer.echo("GRADWIRE_API_KEY: the key contains characters that no key has; copy it again", err=True)
        raise typer.Exit(1) from None
    finally:
        if rest is not None:
            rest.close()


def checked_url(url: str) -> None:
    """End the command with 1 and the right form when the URL has a wrong one."""
    refused, address = read(url, "--url or GRADWIRE_URL")
    if address is None:
        typer.echo(plain(f"{refused.text}; {refused.advice}"), err=True)
        raise typer.Exit(1)


def fail(error: GradwireError) -> NoReturn:
    """Print an error and end the command with 1."""
    typer.echo(f"{error.code}: {plain(error.message)}", err=True)
    raise typer.Exit(1)
