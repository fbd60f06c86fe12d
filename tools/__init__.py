"""What is done to the project rather than by it."""

import os

# What is derived from PyTorch is PyTorch's alone, without the device that gradwire registers with it.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
