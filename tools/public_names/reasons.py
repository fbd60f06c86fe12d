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
        torch.Tensor.*indices torch.Tensor.values torch.Tensor.dense_dim torch.*_indices_copy torch.indices_copy
        torch.values_copy torch.smm torch.dsmm torch.hsmm torch.spmm torch.hspmm torch.saddmm torch.sspaddmm
        torch.Tensor.smm torch.Tensor.sspaddmm
    """,
    "Nested and masked tensors are not supported": """
        torch.nested* torch.Tensor.to_padded_tensor torch.masked.*
    """,
    "Quantized tensors are not supported": """
        torch.ao torch.quantization* torch.nn.quantiz* torch.nn.qat* torch.nn.intrinsic* torch.q* torch.Tensor.q*
        torch.*quantize* torch.*qparams* torch.fbgemm* torch.int_repr torch.Tensor.int_repr torch.Tensor.dequantize
        torch.dequantize torch.backends.quantized torch.fused_moving_avg_obs_fake_quant torch.jit.quantized*
        torch.utils.mobile_optimizer
    """,
    "Named dimensions are not supported": "torch.*(names=)",
    "Element types smaller than a byte, and types that no library computes with, are not supported": """
        torch.bit torch.bits* torch.int[1-7] torch.uint[1-7] torch.float4* torch.float8* torch.complex32 torch.chalf
        torch.Tensor.chalf torch.quint*
    """,
    "No Python is compiled from its source, and no program of TorchScript exists": """
        torch.*Type torch.jit.* torch.Script* torch.JITException torch.CompilationUnit torch.AliasDb torch.Argument*
        torch.Block torch.CallStack torch.Code torch.CompleteArgumentSpec torch.ConcreteModuleTypeBuilder
        torch.ErrorReport torch.ExecutionPlan torch.FileCheck torch.FunctionSchema torch.Gradient torch.Graph
        torch.GraphExecutorState torch.IODescriptor torch.LiteScriptModule torch.LockingLogger torch.NoopLogger
        torch.Node torch.OperatorInfo torch.PyTorchFile* torch.DeserializationStorageContext torch.DeepCopyMemoTable
        torch.SerializationStorageContext torch.StaticModule torch.TracingState torch.Type torch.Use torch.Value
        torch.import_ir_module* torch.parse_* torch.merge_type_from_type_comment torch.unify_type_list torch.fork
        torch.wait torch.BenchmarkConfig torch.BenchmarkExecutionStats torch.ThroughputBenchmark torch.Capsule
        torch.utils.ThroughputBenchmark torch.utils.throughput_benchmark torch.utils.bundled_inputs
        torch.utils.jit* torch.utils.model_dump torch.BufferDict torch.ModuleDict torch.ParameterDict
        torch.InferredType torch.get_num_interop_threads
    """,
    "No exported programs: a program runs where it is written": """
        torch.export* torch.nativert* torch.onnx* torch.package* torch.fx.experimental* torch.fx.passes*
        torch.fx.tensor*
        torch.sym_* torch.Sym* torch.cond torch.compiler.* torch.compile(*=) torch.Tag torch.DispatchKey*
        torch.ExcludeDispatchKeyGuard torch.overrides.redispatch_function torch.overrides.enable_reentrant_dispatch
        torch.func.functionalize torch.utils.mkldnn
    """,
    "The server has CPUs and CUDA GPUs, no other devices": """
        torch.xpu.* torch.mps.* torch.mtia* torch.*miopen* torch.*mkldnn* torch.backends.* torch.*_ipu_* torch.*_xla_*
        torch.*.ipu torch.*.mtia torch.*.xpu torch.is_vulkan_available torch.profiler.DeviceType.*
        torch.profiler.itt torch.utils.*privateuse1* torch.utils.backend_registration torch.utils.xpu*
        torch.serialization.validate_hpu_device torch.contrib*
    """,
    "The memory, streams and libraries of a GPU are the server's": """
        torch.cuda.* torch.Stream.* torch.Event.* torch.accelerator.* torch.cpu.* torch.cudnn_* torch.StreamObjType
        torch.autograd.graph.*stream* torch.numa*
    """,
    "Ranks meet on the server and exchange tensors there; each has whole tensors": "torch.distributed.*",
    "Averages of data parallel programs are made on the server": "torch.nn.parallel.*",
    "The profiler measures the server's ops, not PyTorch's": "torch.profiler.* torch.autograd.profiler*",
    "Workers of loaders are threads; data pipes left PyTorch": "torch.utils.data.* torch.multiprocessing.*",
    "PyTorch itself raises, warns or does nothing there": """
        torch.Tensor.eig torch.Tensor.lstsq torch.Tensor.symeig torch.Tensor.solve torch.Tensor.volatile
        torch.Tensor.reinforce torch.autograd.Function.* torch.autograd.function.Function.*
        torch.autograd.variable.* torch.has_* torch.testing.assert_allclose torch.nn.Container
        torch.nn.modules.container.Container
    """,
    "A part of PyTorch's implementation": """
        torch.utils.* torch.autograd.* torch.nn.* torch.optim.* torch.overrides.* torch.serialization.* torch.types.*
        torch.*_copy torch.batch_norm_* torch.func.* torch.amp.* torch.distributions.* torch.random.* torch.monitor*
        torch.finfo.* torch.iinfo.* torch.dtype.* torch.Generator.* torch.signal.* torch.fft.* torch.version.*
        torch.native_norm torch.AVG torch.SUM torch.AggregationType torch.FatalError torch.init_num_threads
        torch.thread_safe_generator torch.slice_inverse torch.Tensor.slice_inverse torch.Tensor.index
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
