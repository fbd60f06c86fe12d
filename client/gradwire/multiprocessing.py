"""``torch.multiprocessing``: Python's, whose processes see gradwire in torch's place as their parent does.

A process opens a session of its own, unless it is sent a tensor or a module: as an argument of a spawned process, or
through a queue or a pipe. Then it joins the sender's session and computes there, with the sent tensors' own memory.
Their gradients are each process's own. Ranks exchange tensors by ``torch.distributed``.
"""

from __future__ import annotations

import multiprocessing as _python
import os as _os
import time as _time
from collections.abc import Callable, Sequence
from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _names
from multiprocessing.connection import wait as _wait
from typing import Any

from ._core.pickles import sent_tensors as _sent_tensors

_sent_tensors.register()

__all__ = [
    *_names, "ProcessContext", "ProcessRaisedException", "get_all_sharing_strategies", "get_sharing_strategy",
    "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip


def get_all_sharing_strategies() -> set[str]:
    """How memory of tensors is shared between processes: by joining the session that holds it."""
    return {"session"}


def get_sharing_strategy() -> str:
    """``"session"``."""
    return "session"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted, without effect."""


class ProcessRaisedException(Exception):
    """A process that :func:`spawn` started has failed: number ``error_index``, with ``exit_code``."""

    def __init__(self, message: str, error_index: int, exit_code: int) -> None:
        super().__init__(message)
        self.error_index = error_index
        self.exit_code = exit_code


class ProcessContext:
    """Processes that run together.

    Attributes:
        processes: in the order of their numbers.
    """

    def __init__(self, processes: Sequence[Any]) -> None:
        self.processes: list[Any] = list(processes)

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all have ended, or for ``timeout`` seconds. Returns whether all have.

        Raises:
            ProcessRaisedException: when one has failed. The others are ended.
        """
        end = None if timeout is None else _time.monotonic() + timeout
        while running := [process for process in self.processes if process.exitcode is None]:
            left = None if end is None else max(end - _time.monotonic(), 0.0)
            ready = _wait([process.sentinel for process in running], left)
            for process in running:
                if process.sentinel in ready:
                    process.join()
            if any(process.exitcode for process in self.processes):
                break
            if not ready:
                return False
        failed = next(((i, p.exitcode) for i, p in enumerate(self.processes) if p.exitcode), None)
        if failed is None:
            return True
        for process in self.processes:
            if process.exitcode is None:
                process.terminate()
        for process in self.processes:
            process.join(grace_period or 30)
        text = f"process {failed[0]} ended with exit code {failed[1]}; its traceback is in the error output"
        raise ProcessRaisedException(text, *failed)


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call ``fn(i, *args)`` in processes 0 to ``nprocs - 1``. Without ``GRADWIRE_URL`` they share one embedded server,
    so that they can be the ranks of a job.

    Raises:
        ProcessRaisedException: with ``join``, when one has failed.
    """
    context: Any = _python.get_context(start_method)
    shared: dict[str, str] = {}
    if not _os.environ.get("GRADWIRE_URL") and nprocs > 1:
        from ._core.wire.embedded_server import embedded_server

        server = embedded_server()
        shared = {"GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    processes = [context.Process(target=_called, args=(fn, i, args, shared), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    found = ProcessContext(processes)
    if not join:
        return found
    found.join()
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """As :func:`start_processes`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def _called(fn: Callable[..., Any], i: int, args: tuple[Any, ...], shared: dict[str, str]) -> None:
    _os.environ.update(shared)
    fn(i, *args)
