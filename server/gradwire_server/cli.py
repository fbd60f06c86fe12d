"""The command ``gradwire-server``: one server, in the foreground."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import tuning
from .version import VERSION

if TYPE_CHECKING:
    from .http.serving import DrainingServer
    from .settings import Settings

EXIT_UNABLE = 1
EXIT_USAGE = 2


def parser() -> argparse.ArgumentParser:
    """The command line. What it does not offer is set by ``GRADWIRE_*`` variables."""
    found = argparse.ArgumentParser(
        prog="gradwire-server",
        description="Serve autograd sessions over HTTP and WebSocket.",
        epilog="Every limit is set by an environment variable; --settings lists them. "
        "gradwire-server keys --help tells how keys are made without a running server.",
    )
    found.add_argument("--host", help="address to listen on (GRADWIRE_HOST, 127.0.0.1)")
    found.add_argument("--port", type=int, help="port to listen on, 0 for any free one (GRADWIRE_PORT, 8000)")
    found.add_argument("--announce", action="store_true", help="write one line of JSON to stdout when listening")
    found.add_argument("--ready-file", type=Path, metavar="PATH", help="write the same line to a file when listening")
    found.add_argument("--exit-with-parent", action="store_true", help="stop when stdin is closed (embedded use)")
    found.add_argument("--log-level", choices=("debug", "info", "warning", "error"))
    found.add_argument("--log-format", choices=("console", "json"))
    found.add_argument("--settings", action="store_true", help="list all settings and exit")
    found.add_argument("--version", action="version", version=f"gradwire {VERSION}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0 when it was told to stop, 1 when it cannot
    listen, 2 for settings it cannot use."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["keys"]:
        from . import key_command

        return key_command.main(arguments[1:])
    options = parser().parse_args(arguments)
    if os.getpid() == 1:
        # The first process of a container gets no signal that it has no handler for: without one, a stop in the
        # first second would wait for its whole grace period. The server sets its own when it listens.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    tuning.before_numpy()
    from pydantic import ValidationError

    from .refused_settings import told, unknown_variables
    from .settings import Settings, variable

    if options.settings:
        for name, field in Settings.model_fields.items():
            print(f"{variable(name)}={field.default!r}\n    {field.description}")
        return 0
    given = {name: getattr(options, name) for name in ("host", "port", "log_level", "log_format")}
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        for line in told(error):
            print(f"gradwire-server: {line}", file=sys.stderr)
        return EXIT_USAGE
    for line in unknown_variables():
        print(f"gradwire-server: {line}", file=sys.stderr)
    if options.exit_with_parent and "log_level" not in settings.model_fields_set:
        # An embedded server shares its parent's terminal: it speaks when something is wrong.
        settings = settings.model_copy(update={"log_level": "warning"})
    return serve(settings, options.announce, options.ready_file, options.exit_with_parent)


def serve(settings: Settings, announce: bool, ready_file: Path | None, exit_with_parent: bool) -> int:
    """Serve until told to stop."""
    from .access import KeyStore
    from .app import create_app
    from .hosts import warm_up
    from .http.certificate import check_certificate
    from .http.serving import DrainingServer, listen
    from .logging import configure

    configure(settings)
    try:
        check_certificate(settings)
        check_device(settings)
    except ValueError as error:
        print(f"gradwire-server: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        keys = KeyStore.configured(settings)
        generated = None if keys.opens() else keys.make_for_this_run()
        app = create_app(settings, keys)
    except (ValueError, OSError) as error:
        print(f"gradwire-server: {_named(error, settings)}", file=sys.stderr)
        return EXIT_UNABLE

    def started(url: str) -> None:
        facts: dict[str, Any] = {"url": url, "pid": os.getpid(), "version": VERSION}
        if generated is not None:
            if announce:
                facts["api_key"] = generated
            else:
                print(f"API key (made for this run, shown once): {generated}", file=sys.stderr, flush=True)
        tell(facts, announce, ready_file)
        if not announce:
            print(f"gradwire {VERSION} listens on {url}", file=sys.stderr, flush=True)

    try:
        listening = listen(settings)
    except OSError as error:
        where = f"GRADWIRE_HOST={settings.host}, GRADWIRE_PORT={settings.port}"
        print(f"gradwire-server: {where}: {error.strerror}", file=sys.stderr)
        return EXIT_UNABLE
    server = DrainingServer(app, settings, started)
    if exit_with_parent:
        threading.Thread(target=_watch_stdin, args=(server,), name="parent-watch", daemon=True).start()
    warm_up()
    tuning.after_start()
    try:
        server.run([listening])
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    # Threads that still run an op are daemons, but numeric libraries may wait for them at exit.
    sys.stdout.flush()
    sys.stderr.flush()
    if server.force_exit or any(t.name.startswith("s_") for t in threading.enumerate()):
        os._exit(0)
    return 0


def check_device(settings: Settings) -> None:
    """Look whether there is what sessions get that ask for no device.

    Raises:
        ValueError: when there is not.
    """
    from gradwire_engine.backends import available_devices

    known = available_devices()
    device = settings.default_device
    if device not in known and not (device == "cuda" and len(known) > 1):
        raise ValueError(f"GRADWIRE_DEFAULT_DEVICE={device!r}: it must be a device of this machine: {', '.join(known)}")


def _named(error: Exception, settings: Settings) -> str:
    """The text of an error; where a path of the settings is behind it, with its variable."""
    if isinstance(error, OSError) and error.filename is not None:
        failed = Path(os.fsdecode(error.filename))
        for name in ("audit_log", "data_dir"):
            path = getattr(settings, name)
            if path is not None and (failed.is_relative_to(path) or path.is_relative_to(failed)):
                return f"GRADWIRE_{name.upper()}={path}: {error.strerror}: {failed}"
    return str(error)


def tell(facts: dict[str, Any], announce: bool, ready_file: Path | None) -> None:
    """Say that the server listens, to whoever started it."""
    line = json.dumps(facts)
    if announce:
        print(line, flush=True)
    if ready_file is not None:
        # Written whole or not at all: a reader may be polling. It holds no secret unless a key was made for this run.
        partial = ready_file.with_name(ready_file.name + ".part")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(line + "\n")
        partial.replace(ready_file)


def _watch_stdin(server: DrainingServer) -> None:
    """Stop the server when its parent is gone, or says so by closing the pipe. Nobody waits for replies then."""
    while os.read(0, 4096):
        pass
    server.stop()
    server.stop()
