"""``profile``: records client and server during a section of a program, or for steps of a loop."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, Unsupported

from .._core.context.call_sites import user_depth
from .._core.session import current_session
from .._core.session.profile_ranges import record_function
from .._core.session.profile_recorder import ProfileRecorder
from . import chrome
from .events import EventList, build
from .schedules import ProfilerAction, always


class ProfilerActivity(Enum):
    """PyTorch's profiler activities. Here a profile always covers the program, the network and the server."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class NotStarted(ArgumentError, AssertionError):
    """The profile has recorded nothing yet. PyTorch raises an ``AssertionError``."""


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """``CPU``, and ``CUDA`` if the server of the current session has a GPU."""
    session = current_session._current
    on_gpu = session is not None and any(name.startswith("cuda") for name in session.link.devices)
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if on_gpu else {ProfilerActivity.CPU}


def _activities(given: Iterable[Any] | None) -> set[ProfilerActivity]:
    if given is None:
        return supported_activities()
    found: list[ProfilerActivity] = []
    wrong: list[Any] = []
    for item in given:
        if isinstance(item, ProfilerActivity):
            found.append(item)
        elif isinstance(item, dict):
            found += item
        else:
            wrong.append(item)
    if not found:
        raise NotStarted("activities names no ProfilerActivity: there is nothing to profile")
    if wrong:
        raise ArgumentTypeError(f"activities takes ProfilerActivity, not {type(wrong[0]).__name__}")
    for activity in found:
        if found.count(activity) > 1:
            raise ArgumentValueError(f"activities names {activity} more than once")
    return set(found)


class profile:  # PyTorch's name
    """Record what sessions do, as a context or from :meth:`start` to :meth:`stop`. It costs no round trip.

    Args:
        activities: PyTorch's choice of activities, checked but otherwise without effect: a profile always covers the
            program, the network and the server.
        schedule: which steps to record, such as :func:`schedule` makes; the program calls :meth:`step` after each.
        on_trace_ready: called with the profile after each cycle of the schedule, and at the end.
        record_shapes: record the shapes of operands.
        profile_memory: show the memory of ops in tables.
        with_stack: record the whole stack of program lines of each op, not only the last line.
        with_modules: for TorchScript only, in PyTorch as well; without effect.
        acc_events: keep the events of earlier cycles of the schedule.
        use_cuda: PyTorch's old form of ``activities``.
        custom_trace_id_callback: creates the id of a trace.
        post_processing_timeout_s: without effect; only the server's last replies are awaited.

    Raises:
        AssertionError: for ``activities`` without any.
        Unsupported: for ``with_flops``, ``experimental_config`` and ``execution_trace_observer``.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        unavailable = {
            "with_flops": with_flops,
            "experimental_config": experimental_config,
            "execution_trace_observer": execution_trace_observer,
        }
        for name, value in unavailable.items():
            if value:
                raise Unsupported(
                    f"profile({name}=...) does not exist in gradwire: docs/observability.md tells what does"
                )
        if use_cuda is not None:
            warnings.warn("use_cuda is an old form of activities", FutureWarning, stacklevel=user_depth())
        self.activities: set[ProfilerActivity] = _activities(activities)
        self.record_shapes: bool = record_shapes
        self.profile_memory: bool = profile_memory
        self.with_stack: bool = with_stack
        self.with_modules: bool = with_modules
        self.acc_events: bool = acc_events
        self.custom_trace_id_callback: Callable[[], str] | None = custom_trace_id_callback
        self.schedule = schedule or always
        self.record_steps: bool = schedule is not None
        self.on_trace_ready: Callable[..., Any] | None = on_trace_ready
        self.step_num: int = 0
        self.step_rec_fn: record_function | None = None
        self.current_action: ProfilerAction = self._action(0)
        self._metadata: dict[str, str] = {}
        self._recorder: ProfileRecorder | None = None
        self._ready = False
        self._trace_id = ""

    def _action(self, step: int) -> ProfilerAction:
        found = self.schedule(step)
        if found is ProfilerAction.DEVICE_STOPPED:
            raise ArgumentValueError("a schedule may not return DEVICE_STOPPED: that is PyTorch's own")
        return found

    # Beginning, steps, end

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step.

        Raises:
            RuntimeError: while another profile records.
        """
        self._change(ProfilerAction.NONE, self.current_action)
        self._mark_step()

    def stop(self) -> None:
        """End with the current step.

        Raises:
            AssertionError: if it was not started.
        """
        if self._recorder is None and self.current_action is not ProfilerAction.NONE:
            raise NotStarted("the profile was not started: there is nothing to stop")
        self._end_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """Mark the beginning of the loop's next step."""
        self._end_step()
        following = self._action(self.step_num + 1)
        before, self.current_action = self.current_action, following
        self.step_num += 1
        if self._recorder is not None or before is ProfilerAction.NONE:
            self._change(before, following)
        self._mark_step()

    def _mark_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change(self, before: ProfilerAction, following: ProfilerAction | None) -> None:
        """Change from one action to the next; ``None`` is the end."""
        if before is ProfilerAction.RECORD and following in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            warnings.warn("the schedule ends a recording without RECORD_AND_SAVE: nobody is told of it", stacklevel=3)
        if before is ProfilerAction.WARMUP and following is ProfilerAction.NONE:
            warnings.warn("the schedule warms up and then records nothing", stacklevel=3)
        ends = before is ProfilerAction.RECORD_AND_SAVE or (before in _RECORDS and following not in _RECORDS)
        if ends:
            self.stop_trace()
            if before is ProfilerAction.RECORD_AND_SAVE or following is None:
                self._trace_ready()
        if following is not None and following is not ProfilerAction.NONE and (ends or before not in _RECORDS):
            if before is not ProfilerAction.WARMUP:
                self.prepare_trace()
            if following in _RECORDS:
                self.start_trace()

    def prepare_trace(self) -> None:
        """Get ready to record. Discards the previous cycle, unless ``acc_events``."""
        if self._recorder is None or not self.acc_events:
            self._recorder = ProfileRecorder(shapes=self.record_shapes, stacks=self.with_stack)
            make = self.custom_trace_id_callback
            self._trace_id = make() if make is not None else uuid.uuid4().hex.upper()

    def start_trace(self) -> None:
        """Start to record."""
        self._recorded("recording").start()

    def stop_trace(self) -> None:
        """Stop recording, without sending or waiting."""
        self._recorded("stopping").stop()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _recorded(self, what: str) -> ProfileRecorder:
        if self._recorder is None:
            raise NotStarted(f"{what} takes a profile that was started: use it as a context, or call start()")
        return self._recorder

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the averages, once something was recorded; it waits for the replies on their way."""
        return None if self._recorder is None else self.key_averages()._repr_html_()

    # What was recorded. Each waits for the replies that are still on their way

    def events(self) -> EventList:
        """All events, by start time."""
        recorder = self._recorded("events()")
        recorder.settle()
        return build(recorder, self.profile_memory)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Averages by name of ops, backward nodes, named ranges and waits.

        Args:
            group_by_input_shape: separate by shapes; needs ``record_shapes``.
            group_by_stack_n: apart by so many lines of the program; more than one need ``with_stack``.
            group_by_overload_name: without effect: ops have no overloads here.
        """
        self._recorded("key_averages()")
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """Write the trace for Perfetto or chrome://tracing; compressed if the name ends in ``.gz``."""
        recorder = self._recorded("export_chrome_trace()")
        recorder.settle()
        flags = {name: 1 for name in ("record_shapes", "profile_memory", "with_stack") if getattr(self, name)}
        about: dict[str, Any] = {"trace_id": self._trace_id, "traceName": os.fspath(path), **flags, **self._metadata}
        chrome.write(path, chrome.of_recording(recorder, about))

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their times for flame graphs. Without ``with_stack`` each stack has one line."""
        self._recorded("export_stacks()")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """PyTorch's plot of memory over time.

        Raises:
            Unsupported: always.
        """
        raise Unsupported("export_memory_timeline does not exist in gradwire: the trace has each op's bytes")

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause (False) or resume (True) recording. This applies to all activities, whichever are named."""
        _activities(activities)
        recorder = self._recorder
        if recorder is not None:
            (recorder.start if enable else recorder.stop)()

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace file's metadata."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the trace file's metadata.

        Raises:
            ValueError: for invalid JSON.
        """
        import json

        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value before the profile starts."""
        self.add_metadata_json(key, value)

    def get_trace_id(self) -> str | None:
        """The id of the trace; ``None`` before it starts."""
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Set the function that creates trace ids."""
        self.custom_trace_id_callback = callback
