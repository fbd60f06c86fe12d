"""``torch.profiler`` for programs whose ops run on a server: where time goes in the client, the network and the server.

Besides PyTorch's names, :func:`round_trips` shows which lines wait for the server.
"""

from .._core.session.profile_ranges import record_function
from .events import DeviceType
from .lines import round_trips
from .profile import ProfilerActivity, profile, supported_activities
from .schedules import ProfilerAction, schedule, tensorboard_trace_handler


def kineto_available() -> bool:
    """False: PyTorch's collector has no part in this."""
    return False


__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "round_trips",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
