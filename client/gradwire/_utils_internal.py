"""``torch._utils_internal``: PyTorch's hooks for its builders."""

from __future__ import annotations

import os
import tempfile
from typing import Any, TypeVar

Anything = TypeVar("Anything")

TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500
USE_GLOBAL_DEPS = USE_RTLD_GLOBAL_WITH_LIBTORCH = False


def get_file_path(*path_components: str) -> str:
    """A path below the package's folder."""
    return os.path.join(os.path.dirname(__file__), *path_components)


def log_torchscript_usage(api: str, **kwargs: Any) -> None:
    """Without effect: nothing is counted."""


def signpost_event(category: str, name: str, parameters: dict[str, Any]) -> None:
    """Without effect: nothing is logged."""


def get_writable_path(path: str) -> str:
    """The path, or a new folder for temporary files where it cannot be written to."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def compile_time_strobelight_meta(phase_name: str) -> Any:
    """A decorator that changes nothing."""
    return lambda function: function


def justknobs_check(name: str, default: bool = True) -> bool:
    """The default: there are no remote switches."""
    return default
