"""``torch._inductor.config``: settings of PyTorch's code generator, stored without effect."""

from .._core.compiling.ignored_settings import declare

declare(
    __name__,
    {"aggressive_fusion": False, "allow_buffer_reuse": True, "autotune_local_cache": True,
     "autotune_remote_cache": None, "b2b_gemm_pass": False, "benchmark_kernel": False, "combo_kernels": False,
     "compile_threads": 1, "conv_1x1_as_mm": False, "coordinate_descent_check_all_directions": False,
     "coordinate_descent_tuning": False, "cpp": {"threads": -1, "simdlen": None, "enable_kernel_profile": False},
     "cpp_wrapper": False, "cuda": {"compile_opt_level": "-O1", "enable_cuda_lto": False}, "debug": False,
     "disable_progress": True, "dce": False, "efficient_conv_bn_eval_fx_passes": False,
     "emulate_precision_casts": False, "epilogue_fusion": True, "fallback_random": False,
     "force_fuse_int_mm_with_mul": False, "force_disable_caches": False, "freezing": False, "fx_graph_cache": True,
     "fx_graph_remote_cache": None, "inplace_buffers": True, "joint_graph_constant_folding": True,
     "layout_optimization": True, "max_autotune": False, "max_autotune_gemm": False,
     "max_autotune_gemm_backends": "ATEN,TRITON,CPP", "max_autotune_pointwise": False, "pattern_matcher": True,
     "permute_fusion": False, "post_grad_custom_post_pass": None, "reorder_for_compute_comm_overlap": False,
     "shape_padding": True, "size_asserts": True, "split_reductions": True,
     "trace": {"enabled": False, "graph_diagram": False, "output_code": True},
     "triton": {"cudagraphs": False, "cudagraph_trees": True, "cudagraph_skip_dynamic_graphs": False,
                "unique_kernel_names": True, "descriptive_names": "original_aten"},
     "use_mixed_mm": True, "verbose_progress": False},
    "torch._inductor",
)  # fmt: skip
