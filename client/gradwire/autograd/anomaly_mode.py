"""``gradwire.autograd.anomaly_mode``: anomaly detection under the name of PyTorch's module."""

from .._core.context.modes import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
