"""Why gradwire lacks names of PyTorch's. A name has the first reason one of whose patterns it matches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

WHOLE: Final = (
    "torch.ao", "torch.quantization", "torch.nn.quantized", "torch.nn.qat", "torch.nn.intrinsic",
    "torch.nn.quantizable", "torch.export", "torch.distributed.flight_recorder", "torch.distributed.elastic",
    "torch.utils.hipify", "torch.utils.benchmark.op_fuzzers", "torch.nativert", "torch.masked.maskedtensor",
    "torch.package", "torch.utils.data.datapipes", "torch.distributed.checkpoint", "torch.distributed.rpc",
)  # fmt: skip
"""Packages of PyTorch's that are named as a whole."""

REASONS: Final[dict[str, str]] = {
    "Sparse tensors are not supported": """
        torch.sparse* torch.*sparse* torch.Tensor.*sparse* torch.Tensor.coalesce torch.Tensor.is_coalesced
        torch.Tensor.*indices torch.Tensor.values torch.*_indices_copy torch.indices_copy torch.values_copy
        torch.smm torch.hsmm torch.hspmm torch.saddmm torch.sspaddmm torch.Tensor.smm torch.Tensor.sspaddmm
    """,
    "Nested and masked tensors are not supported": "torch.nested* torch.Tensor.to_padded_tensor torch.masked.*",
    "Quantization is not supported": """
        torch.ao torch.quantization torch.nn.quant* torch.nn.qat torch.nn.intrinsic torch.q* torch.Tensor.q*
        torch.*quantize* torch.*qparams* torch.fbgemm* torch.int_repr torch.Tensor.int_repr
        torch.fused_moving_avg_obs_fake_quant torch.jit.quantized* torch.utils.mobile_optimizer
    """,
    "Named dimensions are not supported": "torch.*(names=)",
    "Element types smaller than a byte, and types that no library computes with, are not supported": """
        torch.Tensor.chalf torch.storage.*.float8_*fnuz
    """,
    "Ranks exchange tensors on the server, without PyTorch's back ends, stores, communication hooks and shards": """
        torch.distributed.*
    """,
    "The server averages the gradients of data parallel programs": "torch.nn.parallel.*",
    "PyTorch's prototypes, most of them for kernels of new GPUs": """
        torch.nn.functional.ScalingType torch.nn.functional.SwizzleType torch.nn.functional.*grouped_mm
        torch.nn.functional.scaled_mm torch.nn.attention.* torch.nn.modules.linear_cross_entropy*
        torch.autograd.graph.region_activation_memory_budget torch.*.enforce_grad_layout_policy
    """,
    "No Python is compiled from its source, and no program of TorchScript exists": """
        torch.[A-Z]*Type torch.jit.* torch.Script* torch.JITException torch.CompilationUnit torch.AliasDb
        torch.Argument* torch.Block torch.CallStack torch.Code torch.CompleteArgumentSpec
        torch.ConcreteModuleTypeBuilder torch.ErrorReport torch.ExecutionPlan torch.FileCheck torch.FunctionSchema
        torch.Gradient torch.Graph torch.GraphExecutorState torch.IODescriptor torch.LiteScriptModule
        torch.LockingLogger torch.NoopLogger torch.Node torch.OperatorInfo torch.PyTorchFile*
        torch.DeserializationStorageContext torch.DeepCopyMemoTable torch.SerializationStorageContext
        torch.StaticModule torch.TracingState torch.Type torch.Use torch.Value torch.import_ir_module* torch.parse_*
        torch.merge_type_from_type_comment torch.unify_type_list torch.fork torch.wait torch.BenchmarkConfig
        torch.BenchmarkExecutionStats torch.ThroughputBenchmark torch.Capsule torch.utils.ThroughputBenchmark
        torch.utils.throughput_benchmark torch.utils.bundled_inputs torch.utils.jit* torch.utils.model_dump
        torch.BufferDict torch.ModuleDict torch.ParameterDict
    """,
    "Ops go through the op table, not through PyTorch's dispatcher": """
        torch.DispatchKey* torch.ExcludeDispatchKeyGuard torch.Tag torch.overrides.redispatch_function
        torch.overrides.enable_reentrant_dispatch torch.func.functionalize torch.func.debug_unwrap
        torch.library.get_ctx torch.library.get_kernel torch.library.register_torch_dispatch
        torch.library.Library.register_symm_mem_args
    """,
    "No program is exported or rewritten by a compiler: it runs where it is written, and compile repeats its ops": """
        torch.nativert* torch.export torch.package torch.onnx* torch.fx.experimental* torch.fx.passes*
        torch.fx.tensor* torch.sym_* torch.Sym* torch.compiler.* torch.compile(*=) torch.utils.mkldnn
        torch.fx.graph.Graph.* torch.fx.config torch.fx.operator_schemas.* torch.fx.graph_module.*
        torch.fx.traceback.*
    """,
    "No C++, CUDA or Triton code of a program's own is compiled or loaded": """
        torch.utils.cpp_extension.* torch.utils.hipify* torch.utils.file_baton torch.nn.cpp.*
        torch.library.triton_op torch.library.wrap_triton
    """,
    "The memory, streams and libraries of a GPU are the server's": """
        torch.cuda.* torch.Stream.* torch.Event.* torch.accelerator.* torch.cpu.* torch.cudnn_*
        torch.autograd.graph.*stream* torch.numa* torch.backends.cuda.* torch.backends.cudnn.*
        torch.utils.checkpoint.DefaultDeviceType
        torch.serialization.validate_cuda_device
    """,
    "The server has CPUs and CUDA GPUs, no other devices, and does not use PyTorch's libraries of kernels": """
        torch.xpu.* torch.mps.* torch.mtia* torch.*miopen* torch.*mkldnn* torch.backends.* torch.*_ipu_*
        torch.*_xla_* torch.*.ipu torch.*.mtia torch.*.xpu torch.profiler.DeviceType.* torch.profiler.itt
        torch.utils.*privateuse1* torch.serialization.validate_hpu_device torch.storage.*.hpu torch.storage.*.mps
    """,
    "The profiler measures the server's ops, not PyTorch's": "torch.profiler.* torch.autograd.profiler*",
    "Tools that measure or show PyTorch's own kernels, threads and files": """
        torch.utils.benchmark* torch.utils.module_tracker torch.utils.debug_log
        torch.utils.show_pickle torch.utils.viz torch.utils.*cpp_backtrace torch.monitor* torch.utils.backcompat
    """,
    "The report on the environment is about the client, not about compilers, drivers and PyTorch's build": """
        torch.utils.collect_env.*
    """,
    "Workers of loaders are threads; data pipes left PyTorch": "torch.utils.data.* torch.multiprocessing.*",
    "An optimizer's step is one record, which its class makes": """
        torch.optim.adadelta.adadelta torch.optim.adagrad.adagrad torch.optim.adam.adam torch.optim.adamax.adamax
        torch.optim.adamw.adamw torch.optim.asgd.asgd torch.optim.nadam.nadam torch.optim.radam.radam
        torch.optim.rmsprop.rmsprop torch.optim.rprop.rprop torch.optim.sgd.sgd
        torch.optim.swap_in_optimizer_params_and_state
    """,
    "The ctx of a Function, and the nodes of the graph, have classes of their own": """
        torch.autograd.*Function.* torch.autograd.*NestedIOFunction torch.autograd.function.Function*
    """,
    "A tensor object stays bound to its tensor in the session": "torch.utils.swap_tensors",
    "PyTorch keeps it for old programs alone: there it warns, raises or is about to go": """
        torch.Tensor.eig torch.Tensor.lstsq torch.Tensor.symeig torch.Tensor.solve torch.Tensor.reinforce
        torch.autograd.variable.* torch.has_* torch.nn.Container torch.nn.modules.Container
        torch.nn.modules.container.Container torch.autograd.gradcheck.get_* torch.nn.backends*
        torch.optim.lr_scheduler.SequentialLR.recursive_undo
    """,
    "A part of PyTorch's implementation, or a module that holds what its package offers": """
        torch.utils.* torch.nn.* torch.optim.* torch.overrides.* torch.serialization.* torch.types.*
        torch.batch_norm_* torch.func.* torch.random.* torch.dtype.* torch.signal.* torch.fft.* torch.native_norm
        torch.AVG torch.SUM torch.FatalError torch.init_num_threads torch.thread_safe_generator torch.slice_inverse
        torch.Tensor.slice_inverse torch.Tensor.index torch.return_types.pytree_register_structseq
    """,
}
"""By reason: patterns of full names, as in :mod:`fnmatch`."""


def reason_of(name: str) -> str | None:
    """Why a name is missing."""
    for reason, patterns in REASONS.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return reason
    return None


def unused_patterns(names: list[str]) -> list[str]:
    """Patterns that match no missing name."""
    patterns = [pattern for several in REASONS.values() for pattern in several.split()]
    return [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
