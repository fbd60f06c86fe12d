"""``torch._inductor``: PyTorch's code generator, which gradwire lacks. Its settings are stored without effect."""

from __future__ import annotations

from typing import Any

from .._core.surface import stand_ins
from ..compiler import cudagraph_mark_step_begin
from . import config

__all__ = ["aot_compile", "compile", "config", "cudagraph_mark_step_begin", "list_mode_options", "list_options"]


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The settings that a mode of ``torch.compile`` stands for: none, since modes have no effect."""
    modes = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune", "lite")
    if mode is None:
        return {name: {} for name in modes}
    if mode not in modes:
        raise RuntimeError(f"Unrecognized mode={mode!r:.60}, should be one of: {', '.join(modes)}")
    return {}


def list_options() -> list[str]:
    """The names of the settings that ``torch.compile(options=...)`` accepts."""
    return list(config.shallow_copy_dict())  # type: ignore[attr-defined]


stand_ins.fill(
    __name__,
    ("aot_compile", "aoti_compile_and_package", "aoti_load_package", "compile", "compile_fx", "cudagraph_trees",
     "standalone_compile"),
    "there is no code generator; torch.compile replays what was recorded",
)  # fmt: skip
