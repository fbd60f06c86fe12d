"""``torch.distributed.elastic.multiprocessing.errors``: how a rank tells its launcher of an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Main = TypeVar("Main", bound=Callable[..., Any])


class ChildFailedError(Exception):
    """A rank has failed. `gradwire run` prints its traceback and ends with its exit code instead of raising this."""

    def __init__(self, name: str, failures: dict[int, Any]) -> None:
        super().__init__(f"{name} failed on ranks {sorted(failures)}")
        self.name: str = name
        self.failures: dict[int, Any] = failures


def record(fn: Main, error_handler: Any = None) -> Main:
    """Marks the main function of a rank. Its traceback comes by its error output, so nothing is added here."""
    return fn
