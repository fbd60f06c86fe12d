"""``torch.utils.data._utils``: the parts of data loaders under PyTorch's names. Workers are threads here."""

import sys

from . import collate, fetch, pin_memory, signal_handling, worker

IS_WINDOWS = sys.platform == "win32"
MP_STATUS_CHECK_INTERVAL = 5.0
HAS_NUMPY = True
python_exit_status = False

__all__ = [
    "HAS_NUMPY", "IS_WINDOWS", "MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "python_exit_status",
    "signal_handling", "worker",
]  # fmt: skip
