"""``torch.profiler`` for programs whose ops run elsewhere: where the time goes, here, on the way and on the server.

Beside PyTorch's names, :func:`round_trips` tells which lines wait for the server.
"""

from .events import DeviceType
from .lines import round_trips
from .profile import ProfilerActivity, profile, supported_activities
from .ranges import record_function
from .schedules import ProfilerAction, schedule, tensorboard_trace_handler


def kineto_available() -> bool:
    """False: PyTorch's collector has no part in this."""
    return False


__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "round_trips",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
