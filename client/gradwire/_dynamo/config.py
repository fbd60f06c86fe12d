"""``torch._dynamo.config``: settings of PyTorch's compiler, stored without effect."""

from .._core.compiling.ignored_settings import declare

declare(
    __name__,
    {"accumulated_cache_size_limit": 256, "accumulated_recompile_limit": 256, "allow_rnn": False,
     "allow_unspec_int_on_nn_module": False, "assume_static_by_default": True, "automatic_dynamic_shapes": True,
     "cache_size_limit": 8, "caching_precompile": False, "capture_autograd_function": True,
     "capture_dynamic_output_shape_ops": False, "capture_func_transforms": True, "capture_scalar_outputs": False,
     "compiled_autograd": False, "debug_dir_root": "", "disable": False, "do_not_emit_runtime_asserts": False,
     "dynamic_shapes": True, "error_on_nested_fx_trace": True, "error_on_recompile": False,
     "fail_on_recompile_limit_hit": False, "force_parameter_static_shapes": True,
     "force_unspec_int_unbacked_size_like_on_torchrec_kjt": False, "guard_nn_modules": True,
     "inline_inbuilt_nn_modules": True, "log_level": None, "numpy_default_complex": "complex128",
     "numpy_default_float": "float64", "numpy_default_int": "int64", "optimize_ddp": True,
     "prefer_deferred_runtime_asserts_over_guards": False, "raise_on_ctx_manager_usage": True, "recompile_limit": 8,
     "replay_record_enabled": False, "skip_fwd_side_effects_in_bwd_under_checkpoint": False,
     "skip_nnmodule_hook_guards": True, "specialize_float": False, "specialize_int": False, "suppress_errors": False,
     "trace_numpy": True, "traceable_tensor_subclasses": set(), "use_lazy_graph_module": True, "verbose": False},
    "torch._dynamo",
)  # fmt: skip
