"""``torch.compiler.config``: settings of PyTorch's compiler, stored without effect."""

from .._core.compiling.ignored_settings import declare

declare(
    __name__,
    {"cache_key_tag": "", "dynamic_sources": "", "force_disable_caches": False, "job_id": None,
     "unbacked_sources": "", "recompile_limit": 8, "accumulated_recompile_limit": 256, "verbose": False,
     "capture_scalar_outputs": False, "capture_dynamic_output_shape_ops": False},
    "torch.compiler",
)  # fmt: skip
