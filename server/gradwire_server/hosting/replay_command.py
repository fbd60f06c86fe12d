"""``gradwire-server replay``: runs a recorded session again and compares it bit for bit."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.backends import Backends, expect_any_float
from gradwire_protocol.errors import GradwireError

from ..durable.recording import Outcome, compare
from ..settings.version import VERSION
from .threads import SHARED as THREADS

DIFFERS: Final = 1
UNABLE: Final = 2


def main(arguments: Sequence[str]) -> int:
    """Run the command. Returns the exit status: 0 if all is alike, 1 if something differs, 2 if it cannot be run."""
    command = argparse.ArgumentParser(
        prog="gradwire-server replay",
        description="Run a recorded session again, on this machine and version, and compare all tensors bit for bit "
        "after each frame. 'gradwire sessions export --journal' writes the file.",
    )
    command.add_argument("file", type=Path)
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    options = command.parse_args(arguments)
    kernels: Any = os.environ.get("GRADWIRE_COMPILED_KERNELS", "auto")
    toolchain.configure(kernels, os.environ.get("GRADWIRE_CACHE_DIR", ""))
    expect_any_float()
    try:
        with THREADS.fixed(True):
            outcome = compare(options.file, Backends())
    except GradwireError as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        return UNABLE
    except OSError as error:
        print(f"{options.file}: {error.strerror or error}", file=sys.stderr)
        return UNABLE
    print(json.dumps(described(outcome)) if options.json else told(outcome))
    return DIFFERS if outcome.difference is not None else 0


def described(outcome: Outcome) -> dict[str, Any]:
    """The result as JSON."""
    difference = outcome.difference
    return {
        "frames": outcome.frames, "tensors": outcome.tensors, "recorded_by": outcome.about.version, "run_by": VERSION,
        "difference": None if difference is None else difference._asdict(),
    }  # fmt: skip


def told(outcome: Outcome) -> str:
    """The result in words."""
    difference, about = outcome.difference, outcome.about
    by = f"recorded by gradwire {about.version} on {about.machine or 'an unknown machine'}, run by gradwire {VERSION}"
    if difference is None:
        return f"{outcome.frames} frames, {outcome.tensors} tensors: all alike, bit for bit ({by})"
    name = f" ({difference.name})" if difference.name and difference.name not in difference.tensor else ""
    return (
        f"differs first after frame {difference.frame}: tensor {difference.tensor}{name}, shape {difference.shape}; "
        f"expected {difference.expected}, found {difference.found}; {outcome.tensors} tensors before are alike ({by})"
    )
