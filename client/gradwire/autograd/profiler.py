"""``torch.autograd.profiler``: the older form of :mod:`gradwire.profiler`, without schedules."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

from gradwire_protocol.errors import Unsupported

from .._core.context.late_signatures import show_as
from .._core.session.profile_ranges import record_function
from ..profiler.events import EventList, FunctionEvent, FunctionEventAvg
from ..profiler.profile import NotStarted
from ..profiler.profile import profile as _Profile

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


class profile:  # PyTorch's name
    """Record what sessions do in a context. Costs no round trip.

    Args:
        enabled: False makes the context do nothing.
        record_shapes, profile_memory, with_stack: as for :class:`gradwire.profiler.profile`.
        use_cuda, use_device, use_cpu, use_kineto, with_modules: without effect; the server is always seen.

    Raises:
        Unsupported: for ``with_flops`` and ``experimental_config``.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        self.enabled: bool = enabled
        self._found: EventList | None = None
        self._profile = _Profile(
            record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack, with_flops=with_flops,
            experimental_config=experimental_config, acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )  # fmt: skip
        self._entered = self._over = False

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self._entered:
            raise RuntimeError("a profile's context cannot be entered twice")
        self._entered = True
        self._profile.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.enabled:
            self._profile.stop()
            self._over = True

    @property
    def function_events(self) -> EventList:
        """Everything that happened.

        Raises:
            AssertionError: before the context is left.
        """
        if not self._over:
            raise NotStarted("a profile tells what it found when its context is left")
        if self._found is None:
            self._found = self._profile.events()
        return self._found

    def table(self, *args: Any, **kwargs: Any) -> str:
        """See :meth:`gradwire.profiler.events.EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Averages by name; see :meth:`gradwire.profiler.profile.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The engine's time, in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace for Perfetto or chrome://tracing."""
        self._check_over()
        self._profile.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their times, for flame graphs."""
        self.function_events.export_stacks(path, metric)

    def _check_over(self) -> None:
        if not self._over:
            raise NotStarted("a profile tells what it found when its context is left")

    def __str__(self) -> str:
        return str(self.function_events) if self._over else "<profile that is not over>"

    def __repr__(self) -> str:
        return str(self)


show_as(profile.table, lambda: signature(EventList.table))


class emit_nvtx:  # PyTorch's name
    """Marks for NVIDIA's tools, which see only processes of their own machine.

    Raises:
        Unsupported: when it is entered enabled.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled: bool = enabled
        self.record_shapes: bool = record_shapes

    def __enter__(self) -> Self:
        if self.enabled:
            raise Unsupported(
                f"{type(self).__name__} marks ops for a tool on the machine that computes, which is the server's: "
                "gradwire.profiler.profile shows them in its kernel lane"
            )
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing was begun."""


class emit_itt(emit_nvtx):
    """Marks for Intel's tools; see :class:`emit_nvtx`."""
