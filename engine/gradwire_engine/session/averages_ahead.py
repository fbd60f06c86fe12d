"""Which averages of gradients follow a backward in its frame, so that they can begin while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import Problem, Structure
from gradwire_protocol.records import decode_args
from gradwire_protocol.table import lookup

from ..autograd.failures import Poisoned
from ..autograd.tensor import Tensor
from ..ops.data_parallel import Bucket, EarlyAverages
from .clients import Client

_AVERAGE: Final = "average_gradients"


class RunningFrame(Protocol):
    """The part of :class:`.frame_executor.FrameExecution` that this needs."""

    session: Any
    client: Client
    structure: Structure
    failures: Mapping[int, Problem] | None
    halted: Problem | None

    def _resolve(self, ref: int) -> Tensor: ...


def averages_after(run: RunningFrame, index: int) -> EarlyAverages | None:
    """What starts the averages that come right after the backward at ``index``. None where none does, where their
    parameters are no tensors that exist already, and in a frame that is known to fail."""
    if run.failures is not None or run.halted is not None or run.client.failed_backward is not None:
        return None
    buckets = []
    for record in run.structure.ops[index + 1 :]:
        if record[0] != _AVERAGE or type(record[1]) is not list:
            break
        try:
            buckets.append(Bucket(*decode_args(lookup(_AVERAGE), record[1], run._resolve, iter(()), iter(()))))
        except (GradwireError, Poisoned):
            break
    return EarlyAverages(run.session.engine, buckets) if buckets else None
