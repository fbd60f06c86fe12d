"""Schedules: which steps of a loop a profile records."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from gradwire_protocol.errors import ArgumentError

from .._core.context.call_sites import user_depth

if TYPE_CHECKING:
    from .profile import profile


class ProfilerAction(Enum):
    """A profile's action in a step: nothing, warm up, record, or record and deliver the result at the end."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class WrongSchedule(ArgumentError, AssertionError):
    """An invalid schedule. PyTorch raises an ``AssertionError``."""


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule for :class:`profile`: skip ``skip_first`` steps, then repeatedly wait, warm up and record.

    Args:
        wait, warmup, active: steps of each part of a cycle.
        repeat: how many cycles; 0 for as long as the profile runs.
        skip_first: steps before the first cycle.
        skip_first_wait: other than 0, the first cycle does not wait.

    Raises:
        AssertionError: for a number below 0, or no active step.
    """
    given = {"wait": wait, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}
    wrong = [f"{name}={value}" for name, value in given.items() if value < 0]
    if active <= 0:
        wrong.append(f"active={active}")
    if wrong:
        raise WrongSchedule(
            f"{', '.join(wrong)}: a schedule takes numbers of steps that are not below 0, and at least one active step"
        )
    if warmup == 0:
        warnings.warn("the schedule has no warmup, so that the first step may be slower", stacklevel=user_depth())
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise WrongSchedule(f"step {step}: steps are counted from 0")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        if repeat > 0 and step >= repeat * cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def always(step: int) -> ProfilerAction:
    """Record every step; the default without a schedule."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """For ``on_trace_ready``: write each trace into this folder, under the name that TensorBoard's plugin expects.

    Args:
        worker_name: what the files begin with; the host's name and the process's number by default.
        use_gzip: compress them.
        use_python_export: PyTorch's choice between two writers; there is one here.
    """
    import socket
    import time

    def write(profiled: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"the folder {dir_name} cannot be made: {error.strerror}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        profiled.export_chrome_trace(os.path.join(dir_name, name))

    return write
