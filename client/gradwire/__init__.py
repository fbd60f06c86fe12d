"""gradwire: PyTorch-style tensors and autograd that compute on a server. ``import gradwire as torch``."""

import math as _math

from gradwire_protocol.dtypes import (
    DType as dtype,
)
from gradwire_protocol.dtypes import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from gradwire_protocol.dtypes import (
    bool_ as bool,
)
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
    ShapeError,
    Unauthorized,
    Unavailable,
    Unsupported,
    VersionMismatch,
)
from gradwire_protocol.promotion import join as promote_types

from . import autograd, composed, methods
from .aio import AsyncSession
from .creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    manual_seed,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    tensor,
    zeros,
    zeros_like,
)
from .fetch import fetch
from .modes import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .predicates import can_cast, is_complex, is_floating_point, is_inference, is_tensor, result_type
from .printing import get_printoptions, set_printoptions
from .session import Session
from .sessions import connect, current_session, get_default_dtype, open_session, set_default_dtype
from .size import Size, device
from .tensor import Tensor
from .version import __version__

float = float32
double = float64
half = float16
long = int64
int = int32
short = int16
cfloat = complex64
cdouble = complex128
pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan

# Functions of the op table, and the overloads written by hand. They shadow built-ins from here on, as torch's do;
# those that are written above, with PyTorch's keyword arguments, stay.
for _name, _function in methods.FUNCTIONS.items():
    globals().setdefault(_name, _function)

from . import func, nn, optim, utils  # noqa: E402  (they use the names above)
from .func.vmap import vmap  # noqa: E402
from .serialization import load, save  # noqa: E402


_LATER = ("fft", "linalg", "special", "viz")
"""Modules that not every program uses: imported at first mention."""


def __getattr__(name: str) -> object:
    if name in _LATER:
        from importlib import import_module

        return import_module(f"gradwire.{name}")
    raise AttributeError(f"module 'gradwire' has no attribute {name!r}")
