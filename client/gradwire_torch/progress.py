"""How far an upload has come, for those who wait for a large one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

import torch

WATCHING: Final[list[Callable[[int], None]]] = []
"""Called with the bytes of each tensor that is handed over for sending."""


def bytes_of(what: Any) -> int | None:
    """The bytes that an upload will have: of a module, a mapping or list of tensors, a tensor, or so many.

    Memory that several tensors share counts once for each tensor, since each is sent.
    """
    if what is None or isinstance(what, int):
        return what
    if isinstance(what, torch.Tensor):
        return int(what.nbytes)
    if isinstance(what, torch.nn.Module):
        what = [*what.parameters(), *what.buffers()]
    values = what.values() if isinstance(what, Mapping) else what
    return sum(bytes_of(value) or 0 for value in values if isinstance(value, (torch.Tensor, Mapping, list, tuple)))


@contextmanager
def upload_progress(what: Any = None, file: IO[str] | None = None) -> Iterator[None]:
    """A ``with`` that shows how many bytes its body has sent to the server, and waits for the last of them::

        with torch.gradwire.upload_progress(model):
            model.to("gradwire")

    Args:
        what: what is sent, for a bar with an end: a module, a mapping or list of tensors, a tensor, or a number of
            bytes. None shows the bytes alone.
        file: where it is shown; standard error if None.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    import gradwire as gw

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(file=file or sys.stderr)) as bar:
        task = bar.add_task("to the server", total=bytes_of(what))

        def note(nbytes: int) -> None:
            bar.advance(task, nbytes)

        WATCHING.append(note)
        try:
            yield
            gw.current_session().synchronize()
        finally:
            WATCHING.remove(note)


__all__ = ["WATCHING", "bytes_of", "upload_progress"]
