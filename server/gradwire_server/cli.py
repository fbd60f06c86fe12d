"""The command ``gradwire-server``: runs one server in the foreground."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gradwire_engine.kernels.cpu import toolchain

from .settings import tuning
from .settings.version import VERSION

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .auth import KeyStore
    from .http.serving import DrainingServer
    from .settings.settings import Settings

EXIT_UNABLE = 1
EXIT_USAGE = 2

NEEDED: Final = ("fastapi", "limits", "prometheus_client", "pydantic", "pydantic_settings", "structlog", "uvicorn")
"""Packages of the extra ``server`` that it cannot do without, by the names they are imported by."""


def parser() -> argparse.ArgumentParser:
    """The command line. ``GRADWIRE_*`` variables set everything else."""
    result = argparse.ArgumentParser(
        prog="gradwire-server",
        description="Serve autograd sessions over HTTP and WebSocket.",
        epilog="Environment variables set all limits; --settings lists them. "
        "'gradwire-server keys' manages API keys without a running server; 'gradwire-server warm' compiles the CPU "
        "kernels ahead of the first start.",
    )
    result.add_argument("--host", help="address to listen on (default: GRADWIRE_HOST, else 127.0.0.1)")
    result.add_argument(
        "--port", type=int, help="port to listen on, 0 for any free port (default: GRADWIRE_PORT, else 8000)"
    )
    result.add_argument("--announce", action="store_true", help="print one line of JSON to stdout when listening")
    result.add_argument("--ready-file", type=Path, metavar="PATH", help="write the same line to PATH when listening")
    result.add_argument("--exit-with-parent", action="store_true", help="stop when stdin closes (for embedded servers)")
    levels = ("debug", "info", "warning", "error")
    result.add_argument("--log-level", choices=levels, help="minimum level (default: GRADWIRE_LOG_LEVEL, else info)")
    result.add_argument(
        "--log-format",
        choices=("console", "json"),
        help="format of the log on stderr (default: GRADWIRE_LOG_FORMAT, else console)",
    )
    result.add_argument(
        "--session-host",
        choices=("inline", "process", "ray"),
        help="where sessions run (default: GRADWIRE_SESSION_HOST, else inline); ray makes this a gateway of a fleet",
    )
    result.add_argument("--settings", action="store_true", help="list all settings and exit")
    result.add_argument("--json", action="store_true", help="with --settings: print JSON")
    result.add_argument("--version", action="version", version=f"gradwire {VERSION}", help="print the version and exit")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0 after a requested stop, 1 for a failed start, 2 for invalid
    settings."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"gradwire-server: the server is not installed, only the client: {', '.join(missing)} cannot be imported. "
            "Run: pip install 'gradwire[server]'",
            file=sys.stderr,
        )
        return EXIT_UNABLE
    if arguments[:1] == ["keys"]:
        from .auth import key_command

        return key_command.main(arguments[1:])
    if arguments[:1] == ["warm"]:
        return warm(arguments[1:])
    options = parser().parse_args(arguments)
    if os.getpid() == 1:
        # The kernel ignores signals to PID 1 of a container that have no handler: a stop during the start would take
        # the whole grace period. The server installs its own handler when it listens.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    tuning.before_numpy()
    from pydantic import ValidationError

    from .settings.refused_settings import describe_errors, unknown_variables
    from .settings.settings import Settings, variable

    if options.settings and options.json:
        rows = [
            {"variable": variable(name), "default": field.get_default(), "description": field.description}
            for name, field in Settings.model_fields.items()
        ]
        print(json.dumps({"settings": rows}, indent=2, default=str))
        return 0
    if options.settings:
        for name, field in Settings.model_fields.items():
            print(f"{variable(name)}={field.default!r}\n    {field.description}")
        return 0
    given = {name: getattr(options, name) for name in ("host", "port", "session_host", "log_level", "log_format")}
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        for line in describe_errors(error):
            print(f"gradwire-server: {line}", file=sys.stderr)
        return EXIT_USAGE
    for line in unknown_variables():
        print(f"gradwire-server: {line}", file=sys.stderr)
    if options.exit_with_parent and "log_level" not in settings.model_fields_set:
        # An embedded server shares its parent's terminal, so it logs only problems.
        settings = settings.model_copy(update={"log_level": "warning"})
    return serve(settings, options.announce, options.ready_file, options.exit_with_parent)


def warm(arguments: Sequence[str]) -> int:
    """``gradwire-server warm``: compile the CPU kernels into ``GRADWIRE_CACHE_DIR``, as for an image. Returns the exit
    status."""
    command = argparse.ArgumentParser(
        prog="gradwire-server warm",
        description="Compile the CPU kernels for this processor into GRADWIRE_CACHE_DIR (default: the user's cache "
        "folder), so that servers which start with that folder load them in seconds. Takes a minute or two; does "
        "nothing where they are compiled already.",
    )
    command.parse_args(arguments)
    began = time.monotonic()
    print("gradwire-server: compiling the CPU kernels for this processor", file=sys.stderr, flush=True)
    try:
        folder = toolchain.warm(os.environ.get("GRADWIRE_CACHE_DIR"))
    except (ImportError, OSError, RuntimeError) as error:
        print(f"gradwire-server: kernels cannot be compiled here: {error}", file=sys.stderr)
        return EXIT_UNABLE
    print(f"compiled kernels are in {folder}, after {time.monotonic() - began:.1f} s")
    return 0


def serve(settings: Settings, announce: bool, ready_file: Path | None, exit_with_parent: bool) -> int:
    """Serve until a signal, or the parent's exit, stops the server."""
    from .app import create_app
    from .auth import KeyStore
    from .hosting.hosts import warm_up
    from .http.certificate import check_certificate
    from .http.serving import DrainingServer, listen
    from .observability.logging import configure

    configure(settings)
    try:
        check_certificate(settings)
        if settings.session_host != "ray":
            check_device(settings)
    except ValueError as error:
        print(f"gradwire-server: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        keys = KeyStore.configured(settings)
        generated = None if keys.has_valid_key() else keys.make_for_this_run()
        app = create_app(settings, keys) if settings.session_host != "ray" else open_gateway(settings, keys)
    except (ValueError, OSError) as error:
        print(f"gradwire-server: {_named(error, settings)}", file=sys.stderr)
        return EXIT_UNABLE

    def started(url: str) -> None:
        facts: dict[str, Any] = {"url": url, "pid": os.getpid(), "version": VERSION}
        if generated is not None:
            if announce:
                facts["api_key"] = generated
            else:
                print(f"API key (valid for this run, shown once): {generated}", file=sys.stderr, flush=True)
        publish_start(facts, announce, ready_file)
        if not announce:
            print(f"gradwire {VERSION} listening on {url}", file=sys.stderr, flush=True)

    try:
        listening = listen(settings)
    except OSError as error:
        where = f"GRADWIRE_HOST={settings.host}, GRADWIRE_PORT={settings.port}"
        print(f"gradwire-server: {where}: {error.strerror}", file=sys.stderr)
        return EXIT_UNABLE
    server = DrainingServer(app, settings, started)
    if exit_with_parent:
        threading.Thread(target=_watch_stdin, args=(server,), name="parent-watch", daemon=True).start()
    if settings.session_host != "ray":
        warm_up()
    tuning.after_start()
    try:
        server.run([listening])
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    # Threads that still run an op are daemons, but numeric libraries may join them at exit.
    sys.stdout.flush()
    sys.stderr.flush()
    # A server that lost its sessions is to be started again.
    status = EXIT_UNABLE if app.state.server.registry.lost else 0
    if server.force_exit or any(t.name.startswith("s_") for t in threading.enumerate()):
        os._exit(status)
    return status


def open_gateway(settings: Settings, keys: KeyStore) -> FastAPI:
    """The application of a gateway, connected to Ray.

    Raises:
        ValueError: when Ray is not installed, or there is no cluster at ``RAY_ADDRESS``.
    """
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ValueError("GRADWIRE_SESSION_HOST=ray requires Ray: pip install 'gradwire[cluster]'") from None
    from .fleet.gateway_app import create_gateway
    from .fleet.joining import connect_ray

    connect_ray()
    return create_gateway(settings, keys)


def check_device(settings: Settings) -> None:
    """Check that this machine has the default device.

    Raises:
        ValueError: when it does not.
    """
    from gradwire_engine.runtime.backends import available_devices

    known = available_devices()
    device = settings.default_device
    if device not in known and not (device == "cuda" and len(known) > 1):
        raise ValueError(f"GRADWIRE_DEFAULT_DEVICE={device!r}: must be a device of this machine: {', '.join(known)}")


def _named(error: Exception, settings: Settings) -> str:
    """The text of an error, with the variable that set the failing path, if any."""
    if isinstance(error, OSError) and error.filename is not None:
        failed = Path(os.fsdecode(error.filename))
        for name in ("audit_log", "data_dir"):
            path = getattr(settings, name)
            if path is not None and (failed.is_relative_to(path) or path.is_relative_to(failed)):
                return f"GRADWIRE_{name.upper()}={path}: {error.strerror}: {failed}"
    return str(error)


def publish_start(facts: dict[str, Any], announce: bool, ready_file: Path | None) -> None:
    """Tell the process that started the server that it listens."""
    line = json.dumps(facts)
    if announce:
        print(line, flush=True)
    if ready_file is not None:
        # Rename, because a reader may be polling. The file is private, because it may hold this run's key.
        partial = ready_file.with_name(ready_file.name + ".part")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(line + "\n")
        partial.replace(ready_file)


def _watch_stdin(server: DrainingServer) -> None:
    """Stop the server at once when its parent exits or closes the pipe: nobody waits for replies then."""
    while os.read(0, 4096):
        pass
    server.stop()
    server.stop()
