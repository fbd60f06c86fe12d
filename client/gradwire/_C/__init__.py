"""``torch._C``: of PyTorch's compiled module what libraries name: types, questions that have an answer here, hints.

Everything else does not exist, as ``hasattr`` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from gradwire_protocol.dtypes import DType as dtype

from .._core.backward.registered_ops import excluding
from .._core.context.layouts import layout, memory_format
from .._core.context.modes import MODES, is_grad_enabled, is_inference_mode_enabled
from .._core.context.size import Size, device
from .._core.dispatch.overrides import refuses_overrides as _disabled_torch_function_impl
from .._core.pickles.records import PyTorchFileReader as PyTorchFileReader
from .._core.surface import stand_ins
from .._core.surface.generator import Generator, default_generator
from .._core.surface.global_settings import get_default_device as _get_default_device
from .._core.surface.global_settings import get_num_threads, set_num_threads
from .._core.tensor.tensor import Tensor
from ..futures import Future
from ..overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from . import _functorch, _nn

TensorBase = _TensorBase = Tensor
_TensorMeta = type(Tensor)
"""The class of the class of tensors."""

has_lapack = has_openmp = True
has_mkl = has_mps = has_spectral = False
_has_mkldnn = _has_cuda = _has_xpu = _has_mps = _has_cudnn = _has_kleidiai = _has_magma = False
_has_distributed = True
_GLIBCXX_USE_CXX11_ABI = True

_flags: dict[str, Any] = {}


class JITException(Exception):
    """An error inside of a script: never raised, since none runs."""


class DispatchKey(Enum):
    """Kinds of kernels, as :func:`torch.library.Library.impl` names them."""

    Undefined = ""
    CPU = "CPU"
    CUDA = "CUDA"
    Meta = "Meta"
    Autograd = "Autograd"
    AutogradCPU = "AutogradCPU"
    AutogradCUDA = "AutogradCUDA"
    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastXPU = "AutocastXPU"
    CompositeExplicitAutograd = "CompositeExplicitAutograd"
    CompositeImplicitAutograd = "CompositeImplicitAutograd"
    Functionalize = "Functionalize"
    Python = "Python"
    PreDispatch = "PreDispatch"


class DispatchKeySet:
    """Some kinds of kernels."""

    def __init__(self, *keys: DispatchKey) -> None:
        self.keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """These, and one more."""
        return DispatchKeySet(*self.keys, key)

    def has(self, key: DispatchKey) -> bool:
        """Whether one is among them."""
        return key in self.keys


class _ExcludeDispatchKeyGuard(excluding):
    """``with`` in which kernels of some kinds are passed over, in operations of a program's."""

    def __init__(self, keys: DispatchKeySet) -> None:
        names = {key.name for key in keys.keys}
        super().__init__(*(kind for kind in ("Autograd", "Autocast") if any(n.startswith(kind) for n in names)))


class _AutoDispatchBelowAutograd(excluding):
    """``with`` in which kernels of ``Autograd`` are passed over, in operations of a program's."""

    def __init__(self) -> None:
        super().__init__("Autograd")


def _log_api_usage_once(event: str) -> None:
    """Without effect: nothing is counted."""


def _log_api_usage_metadata(event: str, metadata_map: dict[str, Any]) -> None:
    """Without effect: nothing is counted."""


def _get_tracing_state() -> None:
    """None: no trace is being taken."""


def _is_tracing() -> bool:
    """Never."""
    return False


def _jit_set_profiling_executor(profiling_flag: bool) -> bool:
    """Stored, without effect: no scripts run. Returns the value before."""
    return _stored("profiling_executor", profiling_flag)


def _jit_set_profiling_mode(profiling_flag: bool) -> bool:
    """Stored, without effect: no scripts run. Returns the value before."""
    return _stored("profiling_mode", profiling_flag)


def _jit_set_texpr_fuser_enabled(enabled: bool) -> bool:
    """Stored, without effect: no scripts run. Returns the value before."""
    return _stored("texpr_fuser", enabled)


def _jit_set_nvfuser_enabled(enabled: bool) -> bool:
    """Stored, without effect: no scripts run. Returns the value before."""
    return _stored("nvfuser", enabled)


def _jit_override_can_fuse_on_cpu(override: bool) -> None:
    """Without effect: no scripts run."""


def _jit_override_can_fuse_on_gpu(override: bool) -> None:
    """Without effect: no scripts run."""


def _jit_can_fuse_on_cpu() -> bool:
    """No: no scripts run."""
    return False


def _jit_can_fuse_on_gpu() -> bool:
    """No: no scripts run."""
    return False


def _stored(name: str, value: bool) -> bool:
    before = bool(_flags.get(name, False))
    _flags[name] = value
    return before


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Stored, without effect: attention in half precision is computed in float32."""
    _flags["sdp_reduction"] = enabled


def _get_math_sdp_allow_fp16_bf16_reduction() -> bool:
    """What was stored."""
    return bool(_flags.get("sdp_reduction", False))


def _get_cudnn_enabled() -> bool:
    """The setting ``torch.backends.cudnn.enabled``."""
    from ..backends import cudnn

    return bool(cudnn.enabled)


def _get_accelerator(check: bool | None = None) -> device:
    """The kind of accelerator of the server, or the CPU."""
    from .. import accelerator

    return accelerator.current_accelerator(check_available=True) or device("cpu")


def _get_privateuse1_backend_name() -> str:
    """PyTorch's name for a device that is registered from outside; there is none."""
    return "privateuseone"


def _cuda_clearCublasWorkspaces() -> None:
    """Without effect: the server has its own memory."""


def _cuda_isInBadFork() -> bool:
    """No: a forked process has a session of its own."""
    return False


def _cuda_getDeviceCount() -> int:
    """The number of the server's GPUs."""
    from .. import cuda

    return cuda.device_count()


def _are_functorch_transforms_active() -> bool:
    """Whether a ``vmap`` or another transform is running."""
    from .._core.graph.forward_levels import OPEN

    return bool(MODES.maps) or bool(OPEN)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode handles operations."""
    return bool(MODES.functions)


def _len_torch_function_stack() -> int:
    """How many modes handle operations."""
    return len(MODES.functions)


def _len_torch_dispatch_stack() -> int:
    """How many modes handle operations below autograd: none."""
    return 0


def _is_torch_function_enabled() -> bool:
    """Whether operations are left to classes of tensors."""
    return not MODES.without_classes


def _infer_size(a: Sequence[int], b: Sequence[int]) -> Size:
    """The shape that two shapes are broadcast to."""
    from .._core.composed.arranging import broadcast_shapes

    return broadcast_shapes(a, b)


TYPES_OF_SCRIPTS = (
    "AnyType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType", "FloatType",
    "FutureType", "InferredType", "InterfaceType", "IntType", "ListType", "NoneType", "NumberType",
    "OptionalType", "PyObjectType", "RRefType", "StreamObjType", "StringType", "SymIntType", "TensorType",
    "TupleType", "UnionType",
)  # fmt: skip
stand_ins.fill(__name__, TYPES_OF_SCRIPTS, "gradwire has no scripts")
stand_ins.fill(__name__, ("PyTorchFileWriter",), "torch.save writes files")
stand_ins.fill(
    __name__,
    ("AliasDb", "Argument", "BenchmarkConfig", "Block", "CompilationUnit", "FunctionSchema", "Gradient", "Graph",
     "IODescriptor", "LiteScriptModule", "Node", "ScriptClass", "ScriptFunction", "ScriptMethod", "ScriptModule",
     "ScriptObject", "Type", "Use", "Value", "_set_grad_enabled_from_graph", "import_ir_module", "parse_ir",
     "parse_schema"),
    "gradwire has no scripts",
)  # fmt: skip

__all__ = ["DispatchKey", "DispatchKeySet", "DisableTorchFunction", "DisableTorchFunctionSubclass", "Future",
           "Generator", "JITException", "Size", "TensorBase", "_disabled_torch_function_impl", "_functorch",
           "_get_default_device", "_nn", "default_generator", "device", "dtype", "get_num_threads", "is_grad_enabled",
           "is_inference_mode_enabled", "layout", "memory_format", "set_num_threads"]  # fmt: skip
