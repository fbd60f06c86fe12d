"""Benchmarks of gradwire, side by side with torch on the same machine: ``python -m benchmarks``."""

import os

# PyTorch is measured without the device that gradwire registers with it; what measures that registers it.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
