"""PyTorch is the oracle here, without the device that gradwire registers with it when it is imported."""

import os

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
