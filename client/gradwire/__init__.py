"""gradwire: PyTorch-style tensors and autograd that compute on a server. ``import gradwire as torch``."""

import math as _math
import sys as _sys
from importlib import import_module as _import_module

from gradwire_protocol.dtypes import NAMED as _named
from gradwire_protocol.dtypes import DType as dtype
from gradwire_protocol.dtypes import (
    bfloat16,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gradwire_protocol.dtypes import bool_ as bool
from gradwire_protocol.errors import (
    ConnectionLost,
    DeviceError,
    DTypeError,
    GradwireError,
    GraphError,
    IndexOutOfRange,
    KernelError,
    LimitExceeded,
    OutOfMemory,
    SessionGone,
    ShapeError,
    Superseded,
    Unauthorized,
    Unavailable,
    Unsupported,
    VersionMismatch,
)

from . import autograd
from ._core import composed
from ._core.compiling import session_repeat
from ._core.context.destructors import keep_interrupts as _keep_interrupts
from ._core.context.layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ._core.context.modes import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_anomaly_enabled,
    set_grad_enabled,
)
from ._core.context.size import Size, device
from ._core.context.version import __version__
from ._core.dispatch import row_prefetch
from ._core.session.batched_read import fetch
from ._core.session.current_session import connect, current_session, get_default_dtype, open_session, set_default_dtype
from ._core.session.session import Session
from ._core.surface import (
    attributes,
    conversions,
    copying,
    layout_names,
    memory,
    methods,
    operators,
    representation,
    reshaping,
    subclasses,
    wait_line,
)
from ._core.surface.creation import (
    arange,
    as_tensor,
    empty,
    eye,
    from_numpy,
    full,
    linspace,
    logspace,
    ones,
    rand,
    randint,
    randn,
    randperm,
    range,
    tensor,
    zeros,
)
from ._core.surface.creation_like import (
    empty_like,
    full_like,
    ones_like,
    rand_like,
    randint_like,
    randn_like,
    zeros_like,
)
from ._core.surface.global_settings import *  # noqa: F403
from ._core.surface.interchange import asarray, from_dlpack, from_file, frombuffer, to_dlpack
from ._core.surface.number_limits import finfo, iinfo
from ._core.surface.predicates import (
    can_cast,
    is_complex,
    is_distributed,
    is_floating_point,
    is_inference,
    is_tensor,
    promote_types,
    result_type,
    typename,
)
from ._core.surface.storages import StorageBase, UntypedStorage, is_storage
from ._core.surface.tensor_types import TYPES as _types
from ._core.surface.typed_storages import LEGACY as _storage_types
from ._core.surface.typed_storages import TypedStorage
from ._core.tensor.printing import get_printoptions, set_printoptions
from ._core.tensor.tensor import Tensor
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
cfloat = complex64
cdouble = complex128
globals().update(_named)
chalf = _named["complex32"]
bit = _named["uint1"]
OutOfMemoryError = OutOfMemory
newaxis = None
pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan

# Functions of the op table, and the overloads written by hand. They shadow built-ins from here on, as torch's do;
# those that are written above, with PyTorch's keyword arguments, stay.
for _name, _function in methods.FUNCTIONS.items():
    globals().setdefault(_name, _function)
methods.name_after(__name__, globals())
globals().update(_types)
globals().update(_storage_types)

from . import func, nn, optim, utils  # noqa: E402  (they use the names above)
from ._core.dispatch.autocasting import (  # noqa: E402
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from .amp import autocast  # noqa: E402
from .func import vmap  # noqa: E402
from .serialization import load, save  # noqa: E402

_keep_interrupts(Tensor.__del__)

_LATER = (
    "_C", "__config__", "_classes", "_custom_ops", "_dynamo", "_functorch", "_guards", "_inductor", "_jit_internal",
    "_ops", "_prims_common", "_subclasses", "_tensor", "_tensor_str", "_utils", "_utils_internal", "accelerator", "aio",
    "amp", "ao", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "export", "fft", "functional",
    "futures", "fx", "hub", "jit", "library", "linalg", "masked", "mps", "multiprocessing", "nested", "onnx", "ops",
    "overrides", "package", "profiler", "quantization", "quasirandom", "return_types", "signal", "sparse", "special",
    "storage", "testing", "torch_version", "types", "version", "viz", "xpu",
)  # fmt: skip
"""Modules that not every program uses: imported at first mention."""
_NUMBERED = (
    "binary_cross_entropy_with_logits", "cosine_embedding_loss", "ctc_loss", "grid_sampler_2d", "grid_sampler_3d",
    "hinge_embedding_loss", "kl_div", "margin_ranking_loss", "poisson_nll_loss", "triplet_margin_loss",
)  # fmt: skip
_PLAIN = (
    "_weight_norm", "as_strided_", "compiled_with_cxx11_abi", "cond", "cudnn_is_acceptable", "detach_", "detach_copy",
    "is_vulkan_available",
)  # fmt: skip
_INSIDE_OF = {
    "Event": "cuda", "GradScaler": "amp", "Stream": "cuda", "classes": "_classes",
    "compile": "_core.compiling.function", "each": "_core.compiling.repeating",
    "embedded_server": "_core.wire.embedded_server", "get_device_module": "accelerator",
    "replace_torch": "cli.running.finder", "ReadLoopWarning": "_core.session.read_loops",
    "AcceleratorError": "accelerator", "AsyncSession": "aio",
    "DisableTorchFunction": "overrides", "DisableTorchFunctionSubclass": "overrides",
    "Future": "futures", "ScriptFunction": "jit", "ScriptModule": "jit",
    **dict.fromkeys(
        (
            "AnyType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType",
            "FloatType", "FutureType", "InferredType", "InterfaceType", "IntType", "ListType", "NoneType",
            "NumberType", "OptionalType", "PyObjectType", "RRefType", "StreamObjType", "StringType",
            "SymIntType", "TensorType", "TupleType", "UnionType",
            "PyTorchFileReader", "PyTorchFileWriter",
        ),
        "_C",
    ),
    **dict.fromkeys(_PLAIN, "_core.composed.plain_names"),
    **dict.fromkeys(_NUMBERED, "nn.functional.numbered"),
    **dict.fromkeys(
        (
            "_assert", "_assert_async", "_check", "_check_index", "_check_is_size", "_check_not_implemented",
            "_check_tensor_all", "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
            "_shape_as_tensor", "_softmax_backward_data",
        ),
        "_core.surface.checks",
    ),
    **dict.fromkeys(
        ("SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
         "sym_sum"),
        "_core.surface.symbolic_numbers",
    ),
}  # fmt: skip
"""Names of such modules."""


def __getattr__(name: str) -> object:
    if name in _INSIDE_OF:
        return getattr(_import_module(f"gradwire.{_INSIDE_OF[name]}"), name)
    if name in _LATER:
        try:
            return _import_module(f"gradwire.{name}")
        except ModuleNotFoundError as error:
            if error.name not in (None, f"gradwire.{name}"):
                raise
    if name.startswith("_foreach_"):
        made = _import_module("gradwire._core.composed.foreach").function(name.removeprefix("_foreach_"))
        if made is not None:
            return made
    if name.startswith("__"):
        raise AttributeError(f"module 'gradwire' has no attribute {name!r}")
    from ._core.surface.unsupported import absent

    raise absent(_sys.modules[__name__], name)
