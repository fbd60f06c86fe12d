# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Sequence
from gradwire import accelerator as accelerator, aio as aio, amp as amp, ao as ao, autograd as autograd, backends as backends, compiler as compiler, cpu as cpu, cuda as cuda, distributed as distributed, distributions as distributions, export as export, fft as fft, func as func, functional as functional, futures as futures, fx as fx, hub as hub, jit as jit, library as library, linalg as linalg, masked as masked, mps as mps, multiprocessing as multiprocessing, nested as nested, nn as nn, onnx as onnx, ops as ops, optim as optim, overrides as overrides, package as package, profiler as profiler, quantization as quantization, quasirandom as quasirandom, random as random, return_types as return_types, serialization as serialization, signal as signal, sparse as sparse, special as special, storage as storage, testing as testing, torch_version as torch_version, types as types, utils as utils, version as version, viz as viz, xpu as xpu
from gradwire._core.compiling.function import compile as compile
from gradwire._core.compiling.repeating import each as each
from gradwire._core.composed.arranging import as_strided as as_strided, as_strided_scatter as as_strided_scatter, broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors, clone as clone, diagflat as diagflat, empty_permuted as empty_permuted, empty_strided as empty_strided, flatten as flatten, fliplr as fliplr, flipud as flipud, meshgrid as meshgrid, positive as positive, ravel as ravel, scalar_tensor as scalar_tensor
from gradwire._core.composed.decompositions import lobpcg as lobpcg, pca_lowrank as pca_lowrank, svd_lowrank as svd_lowrank, vander as vander
from gradwire._core.composed.elementwise import fill as fill
from gradwire._core.composed.joining import block_diag as block_diag, cartesian_prod as cartesian_prod, combinations as combinations
from gradwire._core.composed.layers import batch_norm as batch_norm, bilinear as bilinear, conv_tbc as conv_tbc, convolution as convolution, embedding_bag as embedding_bag, feature_dropout as feature_dropout, feature_dropout_ as feature_dropout_, grid_sampler as grid_sampler, instance_norm as instance_norm, native_channel_shuffle as native_channel_shuffle, native_dropout as native_dropout, pairwise_distance as pairwise_distance
from gradwire._core.composed.plain_names import as_strided_ as as_strided_, compiled_with_cxx11_abi as compiled_with_cxx11_abi, cond as cond, cudnn_is_acceptable as cudnn_is_acceptable, detach_ as detach_, is_vulkan_available as is_vulkan_available
from gradwire._core.composed.recurrent import gru_cell as gru_cell, lstm_cell as lstm_cell, rnn_relu_cell as rnn_relu_cell, rnn_tanh_cell as rnn_tanh_cell
from gradwire._core.composed.searching import is_nonzero as is_nonzero, isclose as isclose, unravel_index as unravel_index
from gradwire._core.composed.spectral import istft as istft, stft as stft
from gradwire._core.composed.statistics import corrcoef as corrcoef, cov as cov, cumulative_trapezoid as cumulative_trapezoid, dist as dist, gradient as gradient, native_group_norm as native_group_norm, native_layer_norm as native_layer_norm, trapezoid as trapezoid, trapz as trapz
from gradwire._core.composed.vmap import vmap as vmap
from gradwire._core.context.argument_types import Device
from gradwire._core.context.layouts import layout as layout, memory_format as memory_format
from gradwire._core.context.modes import enable_grad as enable_grad, inference_mode as inference_mode, is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_anomaly_enabled as set_anomaly_enabled, set_grad_enabled as set_grad_enabled
from gradwire._core.context.size import Size as Size, device as device
from gradwire._core.dispatch.autocasting import autocast_decrement_nesting as autocast_decrement_nesting, autocast_increment_nesting as autocast_increment_nesting, clear_autocast_cache as clear_autocast_cache, get_autocast_cpu_dtype as get_autocast_cpu_dtype, get_autocast_dtype as get_autocast_dtype, get_autocast_gpu_dtype as get_autocast_gpu_dtype, is_autocast_cache_enabled as is_autocast_cache_enabled, is_autocast_cpu_enabled as is_autocast_cpu_enabled, is_autocast_enabled as is_autocast_enabled, set_autocast_cache_enabled as set_autocast_cache_enabled, set_autocast_cpu_dtype as set_autocast_cpu_dtype, set_autocast_cpu_enabled as set_autocast_cpu_enabled, set_autocast_dtype as set_autocast_dtype, set_autocast_enabled as set_autocast_enabled, set_autocast_gpu_dtype as set_autocast_gpu_dtype
from gradwire._core.dispatch.out_argument import resize_as_ as resize_as_
from gradwire._core.pickles.records import PyTorchFileReader as PyTorchFileReader
from gradwire._core.session.batched_read import fetch as fetch
from gradwire._core.session.current_session import connect as connect, current_session as current_session, get_default_dtype as get_default_dtype, open_session as open_session, set_default_dtype as set_default_dtype
from gradwire._core.session.read_loops import ReadLoopWarning as ReadLoopWarning
from gradwire._core.session.session import Session as Session
from gradwire._core.surface.attributes import get_device as get_device, is_same_size as is_same_size, is_signed as is_signed
from gradwire._core.surface.creation import as_tensor as as_tensor, from_numpy as from_numpy, tensor as tensor
from gradwire._core.surface.generator import Generator as Generator
from gradwire._core.surface.global_settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled, get_default_device as get_default_device, get_deterministic_debug_mode as get_deterministic_debug_mode, get_float32_matmul_precision as get_float32_matmul_precision, get_num_interop_threads as get_num_interop_threads, get_num_threads as get_num_threads, is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled, is_warn_always_enabled as is_warn_always_enabled, set_default_device as set_default_device, set_default_tensor_type as set_default_tensor_type, set_deterministic_debug_mode as set_deterministic_debug_mode, set_float32_matmul_precision as set_float32_matmul_precision, set_flush_denormal as set_flush_denormal, set_num_interop_threads as set_num_interop_threads, set_num_threads as set_num_threads, set_warn_always as set_warn_always, use_deterministic_algorithms as use_deterministic_algorithms
from gradwire._core.surface.interchange import asarray as asarray, from_dlpack as from_dlpack, from_file as from_file, frombuffer as frombuffer, to_dlpack as to_dlpack
from gradwire._core.surface.layout_names import dequantize as dequantize, dsmm as dsmm, spmm as spmm
from gradwire._core.surface.methods import adjoint as adjoint, allclose as allclose, conj as conj, einsum as einsum, equal as equal, expand_as as expand_as, imag as imag, is_conj as is_conj, is_neg as is_neg, masked_fill as masked_fill, numel as numel, real as real, repeat as repeat, reshape_as as reshape_as, resolve_conj as resolve_conj, resolve_neg as resolve_neg, view_as as view_as
from gradwire._core.surface.number_limits import finfo as finfo, iinfo as iinfo
from gradwire._core.surface.predicates import can_cast as can_cast, is_complex as is_complex, is_distributed as is_distributed, is_floating_point as is_floating_point, is_inference as is_inference, is_tensor as is_tensor, promote_types as promote_types, typename as typename
from gradwire._core.surface.storages import StorageBase as StorageBase, UntypedStorage as UntypedStorage, is_storage as is_storage
from gradwire._core.surface.symbolic_numbers import sym_float as sym_float, sym_int as sym_int, sym_ite as sym_ite, sym_max as sym_max, sym_min as sym_min, sym_not as sym_not, sym_sum as sym_sum
from gradwire._core.surface.typed_storages import TypedStorage as TypedStorage
from gradwire._core.tensor.printing import get_printoptions as get_printoptions, set_printoptions as set_printoptions
from gradwire._core.tensor.tensor import Tensor as Tensor
from gradwire._core.wire.embedded_server import embedded_server as embedded_server
from gradwire.accelerator import get_device_module as get_device_module
from gradwire.aio import AsyncSession as AsyncSession
from gradwire.amp.autocast_mode import autocast as autocast
from gradwire.amp.grad_scaler import GradScaler as GradScaler
from gradwire.cli.running.finder import replace_torch as replace_torch
from gradwire.cuda.streams import Event as Event, Stream as Stream
from gradwire.futures import Future as Future
from gradwire.jit import ScriptModule as ScriptModule
from gradwire.nn.functional.numbered import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, cosine_embedding_loss as cosine_embedding_loss, ctc_loss as ctc_loss, grid_sampler_2d as grid_sampler_2d, grid_sampler_2d as grid_sampler_3d, hinge_embedding_loss as hinge_embedding_loss, kl_div as kl_div, margin_ranking_loss as margin_ranking_loss, poisson_nll_loss as poisson_nll_loss, triplet_margin_loss as triplet_margin_loss
from gradwire.overrides import DisableTorchFunction as DisableTorchFunction, DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from gradwire.random import get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state
from gradwire.return_types import aminmax as _aminmax, cummax as _cummax, cummin as _cummin, frexp as _frexp, geqrf as _geqrf, histogram as _histogram, histogramdd as _histogramdd, kthvalue as _kthvalue, lu_unpack as _lu_unpack, max as _max, median as _median, min as _min, mode as _mode, nanmedian as _nanmedian, qr as _qr, slogdet as _slogdet, sort as _sort, svd as _svd, topk as _topk, triangular_solve as _triangular_solve
from gradwire.serialization import load as load, save as save
from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType as dtype
from gradwire_protocol.errors import ConnectionLost as ConnectionLost, DTypeError as DTypeError, DeviceError as DeviceError, GradwireError as GradwireError, GraphError as GraphError, IndexOutOfRange as IndexOutOfRange, KernelError as KernelError, LimitExceeded as LimitExceeded, OutOfMemory as OutOfMemory, OutOfMemory as OutOfMemoryError, SessionGone as SessionGone, ShapeError as ShapeError, Superseded as Superseded, Unauthorized as Unauthorized, Unavailable as Unavailable, Unsupported as Unsupported, VersionMismatch as VersionMismatch
from typing import Any, Literal, NoReturn, overload

class AcceleratorError(Tensor): ...
class AnyType(Tensor): ...
class BFloat16Storage(Tensor): ...
class BFloat16Tensor(Tensor): ...
class BoolStorage(Tensor): ...
class BoolTensor(Tensor): ...
class BoolType(Tensor): ...
class ByteStorage(Tensor): ...
class ByteTensor(Tensor): ...
class CharStorage(Tensor): ...
class CharTensor(Tensor): ...
class ClassType(Tensor): ...
class ComplexDoubleStorage(Tensor): ...
class ComplexFloatStorage(Tensor): ...
class ComplexType(Tensor): ...
class DeviceObjType(Tensor): ...
class DictType(Tensor): ...
class DoubleStorage(Tensor): ...
class DoubleTensor(Tensor): ...
class EnumType(Tensor): ...
class FloatStorage(Tensor): ...
class FloatTensor(Tensor): ...
class FloatType(Tensor): ...
class FutureType(Tensor): ...
class HalfStorage(Tensor): ...
class HalfTensor(Tensor): ...
class InferredType(Tensor): ...
class IntStorage(Tensor): ...
class IntTensor(Tensor): ...
class IntType(Tensor): ...
class InterfaceType(Tensor): ...
class ListType(Tensor): ...
class LongStorage(Tensor): ...
class LongTensor(Tensor): ...
class NoneType(Tensor): ...
class NumberType(Tensor): ...
class OptionalType(Tensor): ...
class PyObjectType(Tensor): ...
class PyTorchFileWriter(Tensor): ...
class RRefType(Tensor): ...
class ScriptFunction(Tensor): ...
class ShortStorage(Tensor): ...
class ShortTensor(Tensor): ...
class StreamObjType(Tensor): ...
class StringType(Tensor): ...
class SymBool(Tensor): ...
class SymFloat(Tensor): ...
class SymInt(Tensor): ...
class SymIntType(Tensor): ...
class TensorType(Tensor): ...
class TupleType(Tensor): ...
class UnionType(Tensor): ...
__version__: str
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex number its magnitude, which is real. Not defined on bools."""
def abs_(input: Tensor) -> Tensor:
    """In-place form of :func:`abs`: writes the result into ``self``."""
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; of a complex number its magnitude, which is real. Not defined on bools."""
def absolute_(input: Tensor) -> Tensor:
    """In-place form of :func:`abs`: writes the result into ``self``."""
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle whose cosine is ``self``: NaN outside -1 to 1; integers become floats."""
def acos_(input: Tensor) -> Tensor:
    """In-place form of :func:`acos`: writes the result into ``self``."""
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic cosine: NaN below 1; integers become floats."""
def acosh_(input: Tensor) -> Tensor:
    """In-place form of :func:`acosh`: writes the result into ``self``."""
def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None], *, out: Tensor | None = None) -> Tensor:
    """Means over as many windows as ``output_size``, along the last dimension. See :func:`adaptive_avg_pool2d`."""
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int | None], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows as ``output_size`` along the last dimension, and their indices."""
def adaptive_max_pool2d(input: Tensor, output_size: _int | Sequence[_int | None], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Maxima over the windows of :func:`adaptive_avg_pool2d`, and their indices in the flattened image."""
def adaptive_max_pool3d(input: Tensor, output_size: _int | Sequence[_int | None], *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Maxima over windows that divide volumes into ``output_size``, and their indices in the flattened volume."""
def add(input: Tensor, other: Tensor | _complex, *, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``self + alpha * other``, with broadcasting and promotion. On bools it is a logical or."""
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _complex = 1, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``beta * self + alpha * (batch1 @ batch2).sum(0)``: the products of a batch are summed into one matrix."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``self + value * tensor1 / tensor2``, with broadcasting and promotion; not for a quotient of integers."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``self + value * tensor1 * tensor2``, with broadcasting and promotion. Not defined on bools alone."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _complex = 1, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``beta * self + alpha * (mat1 @ mat2)`` for matrices; ``self`` is expanded to the product's shape."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _complex = 1, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``beta * self + alpha * (mat @ vec)`` for a matrix and a vector."""
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _complex = 1, alpha: _complex = 1) -> Tensor:
    """In-place form of :func:`addmv`: writes the result into ``self``."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _complex = 1, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``beta * self + alpha * outer(vec1, vec2)``. Promotes dtypes; on bools it is ``self or (vec1 and vec2)``."""
def affine_grid_generator(theta: Tensor, size: Sequence[_int], align_corners: _bool, *, out: Tensor | None = None) -> Tensor:
    """The grid of an affine map, for :func:`grid_sampler`: matrices ``(N, 2, 3)`` and a size ``(N, C, H, W)`` give
    ``(N, H, W, 2)``; ``(N, 3, 4)`` and ``(N, C, D, H, W)`` give ``(N, D, H, W, 3)``."""
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What :func:`alias` shows, in new memory."""
def all(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether all elements differ from zero; bool (uint8 for uint8). True where there is none."""
def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """:func:`gradwire.nn.functional.alpha_dropout` with all arguments given."""
def alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place form of :func:`alpha_dropout`."""
def amax(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Largest elements over one or several dimensions; gradients are shared equally among equals."""
def amin(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Smallest elements over one or several dimensions; gradients are shared equally among equals."""
def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Sequence[Tensor] | None = None) -> _aminmax:
    """(smallest, largest) of all elements or along one dimension."""
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The argument of complex numbers, from -pi to pi; of real numbers 0, or pi if negative."""
def any(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether some element differs from zero; bool (uint8 for uint8). False where there is none."""
def arange(start: _float | Tensor, end: _float | Tensor | None = None, step: _float | Tensor = 1, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Values from ``start`` (0 when only one number is given) up to, not including, ``end``."""
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle whose cosine is ``self``: NaN outside -1 to 1; integers become floats."""
def arccos_(input: Tensor) -> Tensor:
    """In-place form of :func:`acos`: writes the result into ``self``."""
def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic cosine: NaN below 1; integers become floats."""
def arccosh_(input: Tensor) -> Tensor:
    """In-place form of :func:`acosh`: writes the result into ``self``."""
def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle whose sine is ``self``: NaN outside -1 to 1; integers become floats."""
def arcsin_(input: Tensor) -> Tensor:
    """In-place form of :func:`asin`: writes the result into ``self``."""
def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic sine; integers become floats."""
def arcsinh_(input: Tensor) -> Tensor:
    """In-place form of :func:`asinh`: writes the result into ``self``."""
def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle whose tangent is ``self``; integers become floats."""
def arctan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point with abscissa ``other`` and ordinate ``self``, from -pi to pi."""
def arctan_(input: Tensor) -> Tensor:
    """In-place form of :func:`atan`: writes the result into ``self``."""
def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats."""
def arctanh_(input: Tensor) -> Tensor:
    """In-place form of :func:`atanh`: writes the result into ``self``."""
def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the first largest element: of the flattened tensor, or along ``dim``. NaN counts as largest."""
def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the first smallest element: of the flattened tensor, or along ``dim``. NaN counts as smallest."""
def argsort(input: Tensor, dim: _int = -1, descending: _bool = False, *, stable: _bool = False, out: Tensor | None = None) -> Tensor:
    """The indices that :func:`sort` gives."""
def argwhere(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Same as :func:`nonzero`."""
def as_strided_copy(input: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int = 0, *, absolute: _bool = False, out: Tensor | None = None) -> Tensor:
    """What :func:`as_strided` shows, in new memory."""
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle whose sine is ``self``: NaN outside -1 to 1; integers become floats."""
def asin_(input: Tensor) -> Tensor:
    """In-place form of :func:`asin`: writes the result into ``self``."""
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic sine; integers become floats."""
def asinh_(input: Tensor) -> Tensor:
    """In-place form of :func:`asinh`: writes the result into ``self``."""
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle whose tangent is ``self``; integers become floats."""
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point with abscissa ``other`` and ordinate ``self``, from -pi to pi."""
def atan_(input: Tensor) -> Tensor:
    """In-place form of :func:`atan`: writes the result into ``self``."""
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse hyperbolic tangent: NaN outside -1 to 1; integers become floats."""
def atanh_(input: Tensor) -> Tensor:
    """In-place form of :func:`atanh`: writes the result into ``self``."""
@overload
def atleast_1d(tensors: Tensor) -> Tensor:
    """Viewed with at least 1 dimensions."""
@overload
def atleast_1d(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(first: Tensor, second: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensors: Tensor) -> Tensor:
    """Viewed with at least 2 dimensions."""
@overload
def atleast_2d(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(first: Tensor, second: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensors: Tensor) -> Tensor:
    """Viewed with at least 3 dimensions."""
@overload
def atleast_3d(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(first: Tensor, second: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]: ...
def avg_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """The mean of every window along the last dimension of ``(N, C, L)`` or ``(C, L)``. See :func:`avg_pool2d`."""
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _complex = 1, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``beta * self + alpha * (batch1 @ batch2)``, matrix by matrix of a batch."""
def bartlett_window(window_length: _int, periodic: _bool = True, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Bartlett's window, a triangle that begins at 0."""
def bernoulli(input: Tensor, p: _float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """1 with the probability that ``self`` holds, else 0; with ``p`` only the shape and dtype of ``self`` count."""
bfloat16: dtype
def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """How often each of 0, 1, 2, ... occurs in a vector of integers, or the sum of the weights where it does."""
def binomial(count: Tensor, prob: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """How many of ``count`` independent trials succeed, each with probability ``prob``; the operands broadcast."""
bit: dtype
bits16: dtype
bits1x8: dtype
bits2x4: dtype
bits4x2: dtype
bits8: dtype
def bitwise_and(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """The bits set in both; on bools the logical and."""
def bitwise_left_shift(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Bits moved up by ``other``; 0 if that is negative or beyond the width."""
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit inverted; on bools the logical not."""
def bitwise_or(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """The bits set in either; on bools the logical or."""
def bitwise_right_shift(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Bits moved down by ``other``, keeping the sign; all of them if that is negative or beyond the width."""
def bitwise_xor(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """The bits set in one of the two; on bools the logical xor."""
def blackman_window(window_length: _int, periodic: _bool = True, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Blackman's window, ``0.42 - 0.5 * cos(2 * pi * k / n) + 0.08 * cos(4 * pi * k / n)``."""
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices, one by one: ``(b, n, k)`` times ``(b, k, m)`` is ``(b, n, m)``."""
bool: dtype
@overload
def broadcast_to(input: Tensor, size: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Same as :meth:`expand`, as a function."""
@overload
def broadcast_to(input: Tensor, *size: _int, out: Tensor | None = None) -> Tensor: ...
def bucketize(input: Tensor | _float, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
    """The number of the interval between sorted ``boundaries`` that each value falls into."""
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after the other along a dimension. Dtypes are promoted; empty vectors fit everything."""
def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The distances in the norm of order ``p`` between each row of ``x1``, ``(..., n, d)``, and each of ``x2``,
    ``(..., m, d)``: ``(..., n, m)``. Batches broadcast. ``compute_mode`` says whether Euclidean distances may come from
    one matrix product, which is faster and less exact: by default from more than 25 points on."""
cdouble: dtype
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Round up; integers stay as they are. The gradient is zero."""
def ceil_(input: Tensor) -> Tensor:
    """In-place form of :func:`ceil`: writes the result into ``self``."""
def celu(input: Tensor, alpha: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """``self`` where positive, else ``alpha * (exp(self / alpha) - 1)``: smooth at 0 for every alpha but 0."""
def celu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """In-place form of :func:`celu`: writes the result into ``self``."""
cfloat: dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the cheapest order; see :func:`gradwire.linalg.multi_dot`."""
chalf: dtype
def channel_shuffle(input: Tensor, groups: _int, *, out: Tensor | None = None) -> Tensor:
    """``(N, C, ...)`` with its channels interleaved: the first of each of ``groups`` groups, then the second, ..."""
channels_last: memory_format
channels_last_3d: memory_format
def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor of Hermitian, positive definite matrices; see :func:`gradwire.linalg.cholesky`."""
def cholesky_inverse(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A, where ``self`` is A's Cholesky factor."""
def cholesky_solve(input: Tensor, input2: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The solution ``X`` of ``A @ X = self``, where ``input2`` is A's Cholesky factor. Batches broadcast."""
def chunk(input: Tensor, chunks: _int, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Views of at most ``chunks`` consecutive parts along a dimension, of equal size except the last."""
def clamp(input: Tensor, min: Tensor | _complex | None = None, max: Tensor | _complex | None = None, *, out: Tensor | None = None) -> Tensor:
    """Cut the values to the range from ``min`` to ``max``; either may be left out, not both."""
def clamp_(input: Tensor, min: Tensor | _complex | None = None, max: Tensor | _complex | None = None) -> Tensor:
    """In-place form of :func:`clamp`: writes the result into ``self``."""
def clamp_max(input: Tensor, max: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Lower values above ``max`` to it."""
def clamp_max_(input: Tensor, max: Tensor | _complex) -> Tensor:
    """In-place form of :func:`clamp_max`: writes the result into ``self``."""
def clamp_min(input: Tensor, min: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Raise values below ``min`` to it."""
def clamp_min_(input: Tensor, min: Tensor | _complex) -> Tensor:
    """In-place form of :func:`clamp_min`: writes the result into ``self``."""
classes: object
def clip(input: Tensor, min: Tensor | _complex | None = None, max: Tensor | _complex | None = None, *, out: Tensor | None = None) -> Tensor:
    """Cut the values to the range from ``min`` to ``max``; either may be left out, not both."""
def clip_(input: Tensor, min: Tensor | _complex | None = None, max: Tensor | _complex | None = None) -> Tensor:
    """In-place form of :func:`clamp`: writes the result into ``self``."""
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the second dimension; tensors of fewer than two dimensions count as columns."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from their parts, which broadcast and have one dtype."""
complex128: dtype
complex32: dtype
complex64: dtype
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after the other along a dimension. Dtypes are promoted; empty vectors fit everything."""
def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after the other along a dimension. Dtypes are promoted; empty vectors fit everything."""
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugates, in memory of their own; a real tensor itself."""
def conj_physical_(input: Tensor) -> Tensor:
    """In-place form of :func:`conj_physical`: writes the result into ``self``."""
def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: _complex = 0, *, out: Tensor | None = None) -> Tensor:
    """Surround with a border of ``value``: ``pad`` holds (before, after) for the last dimension, the one before, ..."""
contiguous_format: memory_format
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | str | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Slide kernels along one dimension: ``(N, C, L)`` or ``(C, L)`` with a weight ``(O, C / groups, K)`` gives
    ``(N, O, L')``. See :func:`conv2d`."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | str | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Slide kernels over images: ``(N, C, H, W)`` or ``(C, H, W)`` with a weight ``(O, C / groups, KH, KW)`` gives
    ``(N, O, H', W')``, as a correlation (the kernel is not flipped)."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | str | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """Slide kernels through volumes: ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with a weight of five dimensions. See
    :func:`conv2d`."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1, *, out: Tensor | None = None) -> Tensor:
    """The transpose of :func:`conv1d`: ``(N, C, L)`` with a weight ``(C, O / groups, K)`` gives ``(N, O, L')``. See
    :func:`conv_transpose2d`."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1, *, out: Tensor | None = None) -> Tensor:
    """The transpose of :func:`conv2d` as a linear map: every input element lays a scaled kernel onto the output."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1, dilation: _int | Sequence[_int] = 1, *, out: Tensor | None = None) -> Tensor:
    """The transpose of :func:`conv3d`, with a weight ``(C, O / groups, KD, KH, KW)``. See :func:`conv_transpose2d`."""
def copysign(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """The magnitude of ``self`` with the sign of ``other``, a negative zero's too. Integers become floats."""
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Cosine of an angle in radians; integers become floats."""
def cos_(input: Tensor) -> Tensor:
    """In-place form of :func:`cos`: writes the result into ``self``."""
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic cosine; integers become floats."""
def cosh_(input: Tensor) -> Tensor:
    """In-place form of :func:`cosh`: writes the result into ``self``."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08, *, out: Tensor | None = None) -> Tensor:
    """The cosine of the angle between vectors along ``dim``, with broadcasting and promotion: their product divided by
    both norms, each at least ``eps``."""
def count_nonzero(input: Tensor, dim: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """How many elements differ from zero (NaN does), in all or over ``dim``; int64."""
def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of 3-vectors along ``dim`` (by default the first dimension of extent 3), with broadcasting."""
def cummax(input: Tensor, dim: _int, *, out: Sequence[Tensor] | None = None) -> _cummax:
    """(running maxima along ``dim``, the index of the latest element that equals each)."""
def cummin(input: Tensor, dim: _int, *, out: Sequence[Tensor] | None = None) -> _cummin:
    """(running minima along ``dim``, the index of the latest element that equals each)."""
def cumprod(input: Tensor, dim: _int, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running products along ``dim``. Bools and integers are multiplied in int64; ``dtype`` converts first."""
def cumsum(input: Tensor, dim: _int, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Running sums along ``dim``. Bools and integers are summed in int64; ``dtype`` converts first."""
default_generator: Generator
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees to radians; integers become floats."""
def deg2rad_(input: Tensor) -> Tensor:
    """In-place form of :func:`deg2rad`: writes the result into ``self``."""
def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of each square matrix. Float and complex dtypes of 32 bits and more."""
def detach(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A view without history: no gradient flows through it. It shares memory and version with ``self``."""
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy without history."""
def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix, copied, or the matrix that has a vector on its diagonal."""
def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """Matrices that have the last dimension on their diagonal and zeros elsewhere, in dimensions ``dim1, dim2``."""
def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A view of the elements whose indices along ``dim1`` and ``dim2`` differ by ``offset``, as a last dimension."""
def diagonal_copy(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """What :func:`diagonal` shows, in new memory."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy with ``src`` in the place of ``self.diagonal(offset, dim1, dim2)``."""
def diff(input: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along a dimension, with values put before or behind it first."""
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of :func:`lgamma`: infinite at 0, NaN at negative integers; integers become floats."""
def div(input: Tensor, other: Tensor | _complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Divide elementwise."""
def divide(input: Tensor, other: Tensor | _complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Divide elementwise."""
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of products of two vectors of equal length, as a 0-dim tensor. Nothing is conjugated."""
double: dtype
def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """:func:`gradwire.nn.functional.dropout` with all arguments given."""
def dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place form of :func:`dropout`."""
def dsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None) -> tuple[Tensor, ...]:
    """Views along dimension 2: so many of equal extent, or cut there."""
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the third dimension."""
e: _float
def eig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: use torch.linalg.eig."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The rows of a table that integer indices name. The row ``padding_idx`` (-1: none) receives no gradient;
    ``scale_grad_by_freq`` divides each row's gradient by the number of times it was named."""
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: _float, norm_type: _float = 2.0) -> Tensor:
    """Shorten the rows of a table that integers name, where their ``norm_type``-norm is above ``max_norm``, to that
    length, in place."""
@overload
def empty(size: Sequence[_int], *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """A tensor of a size whose values are whatever the memory held."""
@overload
def empty(*size: _int, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor: ...
def empty_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Uninitialised, with the shape, dtype and device of another tensor."""
def eq(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether two elements are equal, after promotion. NaN equals nothing."""
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function of real numbers; integers become floats."""
def erf_(input: Tensor) -> Tensor:
    """In-place form of :func:`erf`: writes the result into ``self``."""
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(self)``, exact far out; integers become floats."""
def erfc_(input: Tensor) -> Tensor:
    """In-place form of :func:`erfc`: writes the result into ``self``."""
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`erf`: infinite at -1 and 1, NaN outside; integers become floats."""
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power of ``self``; integers become floats."""
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of ``self``; integers become floats."""
def exp2_(input: Tensor) -> Tensor:
    """In-place form of :func:`exp2`: writes the result into ``self``."""
def exp_(input: Tensor) -> Tensor:
    """In-place form of :func:`exp`: writes the result into ``self``."""
@overload
def expand_copy(input: Tensor, size: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """What :func:`expand` shows, in new memory."""
@overload
def expand_copy(input: Tensor, *size: _int, out: Tensor | None = None) -> Tensor: ...
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(self) - 1``, exact near 0; integers become floats."""
def expm1_(input: Tensor) -> Tensor:
    """In-place form of :func:`expm1`: writes the result into ``self``."""
def eye(n: _int, m: _int | None = None, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
def fake_quantize_per_channel_affine(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def fake_quantize_per_tensor_affine(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """:func:`gradwire.nn.functional.feature_alpha_dropout` with all arguments given."""
def feature_alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place form of :func:`feature_alpha_dropout`."""
def fill_(input: Tensor, value: Tensor | _complex) -> Tensor:
    """Write one value, a number or a 0-dim tensor, into every element."""
def fix(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Round towards zero; integers stay as they are. The gradient is zero."""
def fix_(input: Tensor) -> Tensor:
    """In-place form of :func:`trunc`: writes the result into ``self``."""
@overload
def flip(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """A copy with the order along the given dimensions reversed."""
@overload
def flip(input: Tensor, *dims: _int, out: Tensor | None = None) -> Tensor: ...
float: dtype
float16: dtype
float32: dtype
float4_e2m1fn_x2: dtype
float64: dtype
float8_e4m3fn: dtype
float8_e4m3fnuz: dtype
float8_e5m2: dtype
float8_e5m2fnuz: dtype
float8_e8m0fnu: dtype
def float_power(input: Tensor | _complex, exponent: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Powers in float64 (complex128 for complex operands)."""
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Round down; integers stay as they are. The gradient is zero."""
def floor_(input: Tensor) -> Tensor:
    """In-place form of :func:`floor`: writes the result into ``self``."""
def floor_divide(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """The quotient rounded down, as ``//`` in Python. It keeps integers; dividing one by zero is an error."""
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements; a NaN loses against a number. ``self`` gets the gradient of a tie."""
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements; a NaN loses against a number. ``self`` gets the gradient of a tie."""
def fmod(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """What is left of a division truncated towards zero: it has the sign of the dividend."""
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What :func:`trunc` drops: ``self - trunc(self)``. Floating point only."""
def frac_(input: Tensor) -> Tensor:
    """In-place form of :func:`frac`: writes the result into ``self``."""
def frexp(input: Tensor, *, out: Sequence[Tensor] | None = None) -> _frexp:
    """(mantissa, int32 exponent), where ``self`` is ``mantissa * 2 ** exponent`` and the mantissa's size is from 0.5 to
    1, or 0. Floating point only."""
def frobenius_norm(input: Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The norm of order 2, of all elements or over the dimensions of matrices."""
def full(size: _int | Sequence[_int], fill_value: _complex | Tensor, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """One value everywhere. The dtype follows the value unless it is given."""
def full_like(input: Tensor, fill_value: _complex | Tensor, *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """One value everywhere, with the shape, dtype and device of another tensor."""
def gather(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """For each element of ``index`` the element of ``self`` that it names along ``dim``, at the same place in the
    other dimensions. Indices start at 0; negative ones raise."""
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor, not negative; ``gcd(0, 0)`` is 0. Integers only."""
def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """In-place form of :func:`gcd`: writes the result into ``self``."""
def ge(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self >= other``, after promotion. Complex numbers have no order."""
def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> _geqrf:
    """(a, tau): the QR factorization as LAPACK packs it, for :func:`orgqr` and :func:`ormqr`."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of an element of one vector with one of the other, as a matrix. Promotes dtypes."""
def greater(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self > other``, after promotion. Complex numbers have no order."""
def greater_equal(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self >= other``, after promotion. Complex numbers have no order."""
def group_norm(input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, *, out: Tensor | None = None) -> Tensor:
    """Shift and scale each group of channels of each sample to mean 0 and variance 1; then multiply by ``weight`` and
    add ``bias``, which have one element per channel. Floating point only."""
@overload
def gru(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor]:
    """All layers of a GRU network over ``input`` or, packed, ``data`` with ``batch_sizes``: the outputs of every step and the last states. ``params`` are the weights of all layers and directions, one after the other."""
@overload
def gru(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor]: ...
def gt(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self > other``, after promotion. Complex numbers have no order."""
half: dtype
def hamming_window(window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Hamming's window, ``alpha - beta * cos(2 * pi * k / n)``."""
def hann_window(window_length: _int, periodic: _bool = True, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Hann's window, ``0.5 - 0.5 * cos(2 * pi * k / n)``; with ``periodic=False`` n is one less than the length."""
def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 from ``-lambd`` to ``lambd``, elsewhere ``self``."""
def hash_tensor(input: Tensor, dim: Sequence[_int] | _int | None = None, *, keepdim: _bool = False, mode: _int = 0, out: Tensor | None = None) -> Tensor:
    """Exclusive or, over all elements or over ``dim``, of the bits of each as a float64 or int64, as a uint64."""
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The unit step: 0 below 0, 1 above, and ``values`` at 0. Both are of one dtype, which is not complex."""
def histc(input: Tensor, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements fall into each of ``bins`` intervals of equal width from ``min`` to ``max``, in the dtype of
    the tensor. If both are 0 (or equal), they are the extremes of the elements. What is outside does not count."""
def histogram(input: Tensor, bins: Tensor | _int, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: Sequence[Tensor] | None = None) -> _histogram:
    """(hist, bin_edges): how many elements, or how much ``weight``, falls into each interval."""
def histogramdd(input: Tensor, bins: _int | Sequence[_int] | Sequence[Tensor], *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> _histogramdd:
    """(hist, bin_edges) of points whose coordinates are in the last dimension; ``bin_edges`` has one vector for each."""
def hsmm(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
def hsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None) -> tuple[Tensor, ...]:
    """Views along dimension 1: so many of equal extent, or cut there."""
def hspmm(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the second dimension, along the first for 1-D tensors."""
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sqrt(self**2 + other**2)`` without overflow on the way. Floating point only."""
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0; integers become floats."""
def i0_(input: Tensor) -> Tensor:
    """In-place form of :func:`i0`: writes the result into ``self``."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The lower incomplete gamma function of order ``self`` at ``other``, over the gamma function: from 0 to 1."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - igamma(self, other)``, exact where it is small. Floating point only."""
def index_add(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """A copy with the slices of ``alpha * source`` added at the indices along ``dim``; repeated ones add up."""
def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with the slices of ``source`` written at the indices along ``dim``."""
def index_fill(input: Tensor, dim: _int, index: Tensor, value: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """A copy with the slices at the indices along ``dim`` filled with one number or a 0-dim tensor."""
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """A copy with ``values``, broadcast, written to (or, with ``accumulate``, added at) the elements that
    :func:`index` would read. Where an element is named twice, one of its values stays, or all are added."""
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor:
    """In-place form of :func:`index_put`: writes the result into ``self``."""
def index_reduce(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """A copy in which slice ``i`` of ``source`` is combined with slice ``index[i]`` along a dimension."""
def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of ``self`` that a vector of indices names along ``dim``. Negative indices raise."""
inf: _float
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Contract the last dimensions of both operands. With a 0-dim operand it is an ordinary, promoting product."""
int: dtype
int1: dtype
int16: dtype
int2: dtype
int3: dtype
int32: dtype
int4: dtype
int5: dtype
int6: dtype
int64: dtype
int7: dtype
int8: dtype
def int_repr(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of each square matrix."""
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is neither NaN nor infinite."""
def isin(elements: Tensor | _float, test_elements: Tensor | _float, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor:
    """Which elements occur among the others."""
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is infinite; of a complex number, whether either part is."""
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is NaN; of a complex number, whether either part is."""
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is negative infinity. Not defined on complex numbers."""
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is positive infinity. Not defined on complex numbers."""
def isreal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the imaginary part is 0, which it is for every real number."""
def kaiser_window(window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Kaiser's window, made of the modified Bessel function of order 0."""
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of ``self`` times all of ``other``, block by block. Promotes dtypes."""
def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _kthvalue:
    """(the ``k``-th smallest elements along ``dim``, counted from 1, their indices). NaN counts as largest."""
def layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, *, out: Tensor | None = None) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the last dimensions, which are ``normalized_shape``; then multiply
    by ``weight`` and add ``bias``, both of that shape."""
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple, not negative; 0 where either is 0. Integers only."""
def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """In-place form of :func:`lcm`: writes the result into ``self``."""
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self * 2 ** other``; integers become floats."""
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In-place form of :func:`ldexp`: writes the result into ``self``."""
def le(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self <= other``, after promotion. Complex numbers have no order."""
def lerp(input: Tensor, end: Tensor, weight: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self + weight * (end - self)``. The dtypes do not promote: they must be the same."""
def less(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self < other``, after promotion. Complex numbers have no order."""
def less_equal(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self <= other``, after promotion. Complex numbers have no order."""
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of the gamma function's absolute value; integers become floats."""
def linspace(start: _complex | Tensor, end: _complex | Tensor, steps: _int, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """``steps`` values from ``start`` to ``end``, both included."""
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm: -inf at 0, NaN below; integers become floats."""
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10; integers become floats."""
def log10_(input: Tensor) -> Tensor:
    """In-place form of :func:`log10`: writes the result into ``self``."""
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + self)``, exact near 0; integers become floats."""
def log1p_(input: Tensor) -> Tensor:
    """In-place form of :func:`log1p`: writes the result into ``self``."""
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2; integers become floats."""
def log2_(input: Tensor) -> Tensor:
    """In-place form of :func:`log2`: writes the result into ``self``."""
def log_(input: Tensor) -> Tensor:
    """In-place form of :func:`log`: writes the result into ``self``."""
def log_softmax(input: Tensor, dim: _int, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of :func:`softmax`, computed without its rounding."""
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(exp(self) + exp(other))`` without overflow on the way. Floating point and complex only."""
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log2(2**self + 2**other)`` without overflow on the way. Floating point only."""
def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the running sums of exponentials along ``dim``, without overflow."""
def logdet(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of each determinant; NaN where a real one is negative."""
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether both elements are nonzero."""
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is zero."""
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether at least one element is nonzero."""
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one element is nonzero."""
def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(x / (1 - x))``; with ``eps``, x is first cut to the range from ``eps`` to ``1 - eps``."""
def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """In-place form of :func:`logit`: writes the result into ``self``."""
def logspace(start: _complex | Tensor, end: _complex | Tensor, steps: _int, base: _float = 10.0, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """``steps`` powers of ``base`` with exponents from ``start`` to ``end``."""
def logsumexp(input: Tensor, dim: Sequence[_int] | _int | None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the sum of exponentials over ``dim``, without overflow. Integers become the default float."""
long: dtype
@overload
def lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor, Tensor]:
    """All layers of a LSTM network over ``input`` or, packed, ``data`` with ``batch_sizes``: the outputs of every step and the last states. ``params`` are the weights of all layers and directions, one after the other."""
@overload
def lstm(data: Tensor, batch_sizes: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor, Tensor]: ...
def lstsq(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: use torch.linalg.lstsq."""
def lt(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self < other``, after promotion. Complex numbers have no order."""
@overload
def lu(A: Tensor, pivot: _bool = True, get_infos: Literal[False] = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(LU, pivots), with ``get_infos`` (LU, pivots, infos); see :func:`gradwire.linalg.lu_factor`."""
@overload
def lu(A: Tensor, pivot: _bool = True, *, get_infos: Literal[True], out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The solution of ``A @ X == b`` from A's packed LU factorization."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Sequence[Tensor] | None = None) -> _lu_unpack:
    """(P, L, U) from a packed LU factorization; what is not asked for is empty."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with the places where the mask is true filled from ``source``, one element after the other."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask is true, as a vector; tensor and mask broadcast."""
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product, for vectors, matrices and batches of matrices."""
def matrix_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential ``I + A + A @ A / 2 + ...`` of each square matrix. Halves are computed in float32."""
def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """``input`` multiplied by itself ``n`` times; for negative ``n``, its inverse."""
@overload
def max(input: Tensor) -> Tensor:
    """``max(x)`` over all elements; ``max(x, dim)`` gives (values, indices) along a dimension; ``max(x, other)`` is elementwise maximum."""
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _max: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def max_dim(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(largest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
def max_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The maximum of every window along the last dimension of ``(N, C, L)`` or ``(C, L)``. See :func:`max_pool2d`."""
def max_pool1d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """:func:`max_pool1d`, and the index of each maximum along the last dimension."""
def max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The maximum of every window of ``(N, C, H, W)`` or ``(C, H, W)``."""
def max_pool2d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """:func:`max_pool2d`, and the index of each maximum in its flattened image."""
def max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The maximum of every window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``. See :func:`max_pool2d`."""
def max_pool3d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """:func:`max_pool3d`, and the index of each maximum in its flattened volume."""
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements, NaN if either is. The gradient of a tie is split in halves."""
def mean(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Arithmetic mean over ``dim``. Needs floating point or complex values, or a ``dtype`` that is; NaN if empty."""
@overload
def median(input: Tensor) -> Tensor:
    """The lower of the middle elements; NaN if there is one or the tensor is empty. Equals share the gradient."""
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _median: ...
def median_dim(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(lower medians along ``dim``, their indices). The gradient goes to the element of the index."""
@overload
def min(input: Tensor) -> Tensor:
    """``min(x)`` over all elements; ``min(x, dim)`` gives (values, indices) along a dimension; ``min(x, other)`` is elementwise minimum."""
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _min: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def min_dim(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(smallest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements, NaN if either is. The gradient of a tie is split in halves."""
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices, without broadcasting."""
def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _mode:
    """(most frequent values along ``dim``, the index of each one's last occurrence); the smallest of equally
    frequent ones."""
def moveaxis(input: Tensor, source: Sequence[_int] | _int, destination: Sequence[_int] | _int, *, out: Tensor | None = None) -> Tensor:
    """A view with the dimensions ``source`` moved to the places ``destination``, the others kept in order."""
def movedim(input: Tensor, source: Sequence[_int] | _int, destination: Sequence[_int] | _int, *, out: Tensor | None = None) -> Tensor:
    """A view with the dimensions ``source`` moved to the places ``destination``, the others kept in order."""
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The values in order along the first dimension."""
def mul(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Multiply elementwise, with broadcasting and promotion. On bools it is a logical and."""
def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Draw ``num_samples`` indices along the last dimension, as likely as the weights in ``self`` say."""
def multiply(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Multiply elementwise, with broadcasting and promotion. On bools it is a logical and."""
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``, for elements above ``(p - 1) / 2``."""
nan: _float
def nan_to_num(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Replace NaN by ``nan`` (0) and infinities by ``posinf`` and ``neginf`` (the dtype's extremes)."""
def nan_to_num_(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """In-place form of :func:`nan_to_num`: writes the result into ``self``."""
def nanmean(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Mean of the elements that are not NaN; NaN where there is none."""
@overload
def nanmedian(input: Tensor) -> Tensor:
    """The median of the elements that are not NaN. Equals share the gradient."""
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> _nanmedian: ...
def nanmedian_dim(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(medians along ``dim`` of what is not NaN, their indices)."""
def nanquantile(input: Tensor, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
    """Like :func:`quantile`, leaving NaN out."""
def nansum(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Like :func:`sum`, with NaN counted as zero. Not defined for complex numbers."""
def narrow(input: Tensor, dim: _int, start: Tensor | _int, length: _int) -> Tensor:
    """A view of ``length`` indices from ``start``, a number or a 0-dim integer tensor, along a dimension."""
def narrow_copy(input: Tensor, dim: _int, start: _int, length: _int, *, out: Tensor | None = None) -> Tensor:
    """What :func:`narrow` shows, in new memory."""
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`gradwire.nn.functional.batch_norm`, and in training the mean and the reciprocal deviation of each
    channel."""
def ne(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether two elements differ, after promotion. NaN differs from everything."""
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-self``. Not defined on bools; unsigned integers wrap around."""
def neg_(input: Tensor) -> Tensor:
    """In-place form of :func:`neg`: writes the result into ``self``."""
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-self``. Not defined on bools; unsigned integers wrap around."""
def negative_(input: Tensor) -> Tensor:
    """In-place form of :func:`neg`: writes the result into ``self``."""
newaxis: None
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next floating point number after ``self`` in the direction of ``other``. Floating point only."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor:
    """The indices of elements that are not zero: one row each, or one tensor per dimension with ``as_tuple``, where a
    0-dim tensor counts as one of one element."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1, out: Tensor | None = None) -> Tensor:
    """The indices of the first ``size`` elements that are not zero, a row each; rows beyond hold ``fill_value``.
    Unlike that of :func:`nonzero`, the result's shape does not depend on data."""
def norm(input: Tensor, p: _float | str = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """The vector norm of all elements or along dimensions; ``"fro"`` is the norm of order 2."""
def norm_except_dim(v: Tensor, pow: _float = 2, dim: _int = 0) -> Tensor:
    """The ``pow``-norms of a tensor over all dimensions but one, which stays; ``dim=-1`` leaves none, and gives a
    number."""
def normal(mean: _float | Tensor = 0.0, std: _float | Tensor = 1.0, size: Sequence[_int] | None = None, *, dtype: dtype | None = None, device: Device = None, requires_grad: _bool = False, layout: layout | None = None, pin_memory: _bool = False, out: Tensor | None = None, generator: Generator | None = None) -> Tensor:
    """Normal random numbers: of tensors of means and deviations, or of numbers and a size."""
def not_equal(input: Tensor, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """Whether two elements differ, after promotion. NaN differs from everything."""
def nuclear_norm(input: Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values of matrices."""
@overload
def ones(size: Sequence[_int], *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Ones of a size, given as ints or as one sequence."""
@overload
def ones(*size: _int, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor: ...
def ones_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Ones with the shape, dtype and device of another tensor."""
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of elementary reflectors; see :func:`gradwire.linalg.householder_product`."""
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``Q @ input3`` (``input3 @ Q`` without ``left``) for the square Q that reflectors ``input`` and ``input2`` pack;
    with ``transpose``, Q's adjoint in its place."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of an element of one vector with one of the other, as a matrix. Promotes dtypes."""
def pdist(input: Tensor, p: _float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """The distances in the norm of order ``p`` between all pairs of the n rows: ``n * (n - 1) / 2`` of them, row by row
    of the upper triangle of :func:`cdist`'s matrix."""
@overload
def permute(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """A view with its dimensions in the given order."""
@overload
def permute(input: Tensor, *dims: _int, out: Tensor | None = None) -> Tensor: ...
@overload
def permute_copy(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """What :func:`permute` shows, in new memory."""
@overload
def permute_copy(input: Tensor, *dims: _int, out: Tensor | None = None) -> Tensor: ...
pi: _float
def pinverse(input: Tensor, rcond: _float = 1e-15, *, out: Tensor | None = None) -> Tensor:
    """The pseudo-inverse; singular values up to ``rcond`` times the largest count as 0."""
def pixel_shuffle(input: Tensor, upscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """``(..., C * r * r, H, W)`` as ``(..., C, H * r, W * r)``: channels become the elements of r x r blocks."""
def pixel_unshuffle(input: Tensor, downscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: ``(..., C, H * r, W * r)`` as ``(..., C * r * r, H, W)``."""
def poisson(input: Tensor, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """A number of the Poisson distribution for each rate in ``self``, which are not negative; in its dtype."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from magnitude and angle, which broadcast and have one dtype."""
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The ``n``-th derivative of digamma, for ``n >= 0``."""
def pow(input: Tensor | _complex, exponent: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self`` to the power of ``exponent``; one of them may be a number."""
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self`` where positive, else ``weight * self``."""
preserve_format: memory_format
def prod(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Product of all elements, or along one dimension. Bools and integers are multiplied in int64."""
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """A copy with ``source`` written to (or added at) the places that ``index`` names in the flattened tensor."""
def q_per_channel_axis(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def q_per_channel_scales(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def q_per_channel_zero_points(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def q_scale(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def q_zero_point(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
qint32: dtype
qint8: dtype
def qr(input: Tensor, some: _bool = True, *, out: Sequence[Tensor] | None = None) -> _qr:
    """(Q, R); see :func:`gradwire.linalg.qr`. Without ``some``, Q is square."""
def quantile(input: Tensor, q: Tensor | _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
    """Quantiles of all elements or along ``dim``, for one ``q`` in [0, 1] or a vector of them, which then comes as
    the first dimension of the result. NaN makes its quantile NaN."""
def quantize_per_channel(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def quantize_per_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
def quantize_per_tensor_dynamic(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no quantized dtypes."""
quint2x4: dtype
quint4x2: dtype
quint8: dtype
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians to degrees; integers become floats."""
def rad2deg_(input: Tensor) -> Tensor:
    """In-place form of :func:`rad2deg`: writes the result into ``self``."""
@overload
def rand(size: Sequence[_int], *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Uniform random numbers from [0, 1)."""
@overload
def rand(*size: _int, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
def rand_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None) -> Tensor:
    """Uniform random numbers with the shape, dtype and device of another tensor."""
@overload
def randint(high: _int, size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """``randint([low,] high, size)``: random integers from low (0) up to, not including, high."""
@overload
def randint(low: _int, high: _int, size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor: ...
def randint_like(input: Tensor, low: _int, high: _int | None = None, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, memory_format: memory_format | None = None, generator: Generator | None = None) -> Tensor:
    """Random integers from [low, high), with the shape of another tensor."""
@overload
def randn(size: Sequence[_int], *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Standard normal random numbers."""
@overload
def randn(*size: _int, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None, out: Tensor | None = None) -> Tensor: ...
def randn_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None) -> Tensor:
    """Standard normal random numbers with the shape, dtype and device of another tensor."""
def randperm(n: _int, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """A random permutation of 0 to n - 1."""
def range(start: _float | Tensor = 0, end: _float | Tensor | None = None, step: _float | Tensor = 1, *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Values from ``start`` to ``end``, the end included where a step meets it. Deprecated: use :func:`arange`."""
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / self``; integers become floats."""
def reciprocal_(input: Tensor) -> Tensor:
    """In-place form of :func:`reciprocal`: writes the result into ``self``."""
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``max(self, 0)``; NaN stays. The gradient at 0 is 0."""
def relu_(input: Tensor) -> Tensor:
    """In-place form of :func:`relu`: writes the result into ``self``."""
def remainder(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """What is left by :func:`floor_divide`, as ``%`` in Python: it has the sign of the divisor."""
def renorm(input: Tensor, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
    """Slices along ``dim`` whose norm of order ``p`` is above ``maxnorm``, scaled down to that norm; others as they
    are. ``p`` is positive, ``maxnorm`` not negative."""
def repeat_interleave(input: Tensor, repeats: Tensor | _int | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
    """Each element repeated, so many times each or as often as a tensor says."""
@overload
def reshape(input: Tensor, shape: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """The elements in another shape, one extent of which may be -1. A view where strides allow it, else a copy."""
@overload
def reshape(input: Tensor, *shape: _int, out: Tensor | None = None) -> Tensor: ...
def resize_as_sparse_(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
def result_type(tensor: Any = ..., other: Any = ..., *, scalar: Any = ..., scalar1: Any = ..., scalar2: Any = ...) -> dtype:
    """The dtype that an operation on tensors and Python numbers gives."""
def rms_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dimensions, which are ``normalized_shape``; then multiply by
    ``weight``. ``eps``, by default the dtype's smallest step from 1, is added to the mean square. Floating point only."""
@overload
def rnn_relu(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor]:
    """All layers of a RNN_RELU network over ``input`` or, packed, ``data`` with ``batch_sizes``: the outputs of every step and the last states. ``params`` are the weights of all layers and directions, one after the other."""
@overload
def rnn_relu(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor]: ...
@overload
def rnn_tanh(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool) -> tuple[Tensor, Tensor]:
    """All layers of a RNN_TANH network over ``input`` or, packed, ``data`` with ``batch_sizes``: the outputs of every step and the last states. ``params`` are the weights of all layers and directions, one after the other."""
@overload
def rnn_tanh(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool) -> tuple[Tensor, Tensor]: ...
def roll(input: Tensor, shifts: Sequence[_int] | _int, dims: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy with elements moved along dimensions, those that fall off coming in again at the other end."""
def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = ..., *, out: Tensor | None = None) -> Tensor:
    """A copy rotated ``k`` times by 90 degrees in the plane of two dimensions, from the first towards the second."""
def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Round to ``decimals`` places, halves to the even neighbour. The gradient is zero."""
def round_(input: Tensor, *, decimals: _int = 0) -> Tensor:
    """In-place form of :func:`round`: writes the result into ``self``."""
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the first dimension; 1-D tensors count as rows."""
def rrelu(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, *, generator: Generator | None = None) -> Tensor:
    """``x`` where positive, else ``slope * x``: in training with slopes uniform in [lower, upper), else their mean."""
def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, *, generator: Generator | None = None) -> Tensor:
    """In-place form of :func:`rrelu`."""
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / sqrt(self)``; integers become floats."""
def rsqrt_(input: Tensor) -> Tensor:
    """In-place form of :func:`rsqrt`: writes the result into ``self``."""
def rsub(input: Tensor, other: Tensor | _complex, alpha: _complex = 1, *, out: Tensor | None = None) -> Tensor:
    """``other - alpha * self``: subtraction with its operands exchanged. Not defined on bools."""
def saddmm(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: it is for sparse tensors."""
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor | _complex | None = None, *, value: Tensor | _complex | None = None, reduce: str | None = None, out: Tensor | None = None) -> Tensor:
    """A copy in which ``input[..., index[i], ...]`` is ``src[i]``, or a number; added or multiplied with ``reduce``."""
def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with the elements of ``src`` added at the places along ``dim`` that ``index`` names."""
def scatter_reduce(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """A copy in which the elements of ``src`` that ``index`` sends to one place are combined there."""
def searchsorted(sorted_sequence: Tensor, input: Tensor | _float, *, out_int32: _bool = False, right: _bool = False, side: str | None = None, sorter: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Where each value would have to be inserted to keep the last dimension of ``sorted_sequence`` in order."""
def select(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """A view of one index along a dimension, which disappears."""
def select_copy(input: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """What :func:`select` shows, in new memory."""
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy with ``src`` in the place of ``self.select(dim, index)``."""
def selu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """:func:`elu` with the constants that keep mean 0 and variance 1 from layer to layer."""
def selu_(input: Tensor) -> Tensor:
    """In-place form of :func:`selu`: writes the result into ``self``."""
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign; of a complex number the number of magnitude 1 in its direction, 0 for 0."""
short: dtype
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-self))``; integers become floats."""
def sigmoid_(input: Tensor) -> Tensor:
    """In-place form of :func:`sigmoid`: writes the result into ``self``."""
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1; NaN stays. For complex numbers see :func:`sgn`."""
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign is negative, which that of ``-0.0`` is. Not defined on complex numbers."""
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sine of an angle in radians; integers become floats."""
def sin_(input: Tensor) -> Tensor:
    """In-place form of :func:`sin`: writes the result into ``self``."""
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi * x) / (pi * x)``, 1 at 0; integers become floats."""
def sinc_(input: Tensor) -> Tensor:
    """In-place form of :func:`sinc`: writes the result into ``self``."""
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic sine; integers become floats."""
def sinh_(input: Tensor) -> Tensor:
    """In-place form of :func:`sinh`: writes the result into ``self``."""
def slice_copy(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """What :func:`slice` shows, in new memory."""
def slice_scatter(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy with ``src`` in the place of the slice from ``start`` to ``end`` along ``dim``."""
def slogdet(input: Tensor, *, out: Sequence[Tensor] | None = None) -> _slogdet:
    """(sign, logabsdet) of each determinant; of a complex matrix, the sign is a phase."""
def smm(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: it is for sparse tensors."""
def softmax(input: Tensor, dim: _int, dtype: dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """Exponentials along ``dim``, divided by their sum. NaN where all are -inf. ``dtype`` converts first."""
def solve(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: use torch.linalg.solve."""
def sort(input: Tensor, dim: _int = -1, descending: _bool = False, *, stable: _bool | None = None, out: Sequence[Tensor] | None = None) -> _sort:
    """(the values in order along ``dim``, the indices they came from)."""
sparse_bsc: layout
def sparse_bsc_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
sparse_bsr: layout
def sparse_bsr_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
def sparse_compressed_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
sparse_coo: layout
def sparse_coo_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
sparse_csc: layout
def sparse_csc_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
sparse_csr: layout
def sparse_csr_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: there are no sparse tensors."""
def split(input: Tensor, split_size_or_sections: Sequence[_int] | _int, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Views of consecutive parts along a dimension: of one size (the last may be smaller), or of given sizes."""
def split_copy(input: Tensor, split_size_or_sections: Sequence[_int] | _int, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """What :func:`split` shows, in new memory."""
def split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """Views of the given extents along a dimension."""
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Copies of the given extents along a dimension."""
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root: NaN below 0, an infinite gradient at 0; integers become floats."""
def sqrt_(input: Tensor) -> Tensor:
    """In-place form of :func:`sqrt`: writes the result into ``self``."""
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self * self``; bools become int64."""
def square_(input: Tensor) -> Tensor:
    """In-place form of :func:`square`: writes the result into ``self``."""
def squeeze(input: Tensor, dim: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A view without its dimensions of extent 1: all of them, or those among ``dim``."""
def squeeze_copy(input: Tensor, dim: Sequence[_int] | _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """What :func:`squeeze` shows, in new memory."""
def sspaddmm(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: it is for sparse tensors."""
def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape, side by side along a new dimension. Dtypes are promoted."""
def std(input: Tensor, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Tensor | None = None) -> Tensor:
    """Standard deviation over ``dim``, the square root of :func:`var`."""
def std_mean(input: Tensor, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) over ``dim``; see :func:`std`."""
strided: layout
def sub(input: Tensor, other: Tensor | _complex, *, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``self - alpha * other``, with broadcasting and promotion. Not defined on bools."""
def subtract(input: Tensor, other: Tensor | _complex, *, alpha: _complex = 1, out: Tensor | None = None) -> Tensor:
    """``self - alpha * other``, with broadcasting and promotion. Not defined on bools."""
def sum(input: Tensor, dim: Sequence[_int] | _int | None = None, keepdim: _bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Sum over ``dim`` (an int, several, or all). Bools and integers are summed in int64; ``dtype`` converts first."""
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Sequence[Tensor] | None = None) -> _svd:
    """(U, S, V) with ``input == U @ diag(S) @ V.mH``; see :func:`gradwire.linalg.svd`. Without ``some``, U and V are
    square, without ``compute_uv`` they are zeros of that shape."""
def swapaxes(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """A view with two dimensions exchanged."""
def swapdims(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """A view with two dimensions exchanged."""
def symeig(*args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch: use torch.linalg.eigh."""
def t(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The transposed view of a matrix; a tensor of fewer dimensions as it is."""
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What :func:`t` shows, in new memory."""
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements that ``index`` names in the flattened tensor, in the shape of ``index``. Negative indices count
    from the end."""
def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Like :func:`gather`, with ``self`` and ``indices`` broadcast in the other dimensions; flat without ``dim``."""
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Tangent of an angle in radians; integers become floats."""
def tan_(input: Tensor) -> Tensor:
    """In-place form of :func:`tan`: writes the result into ``self``."""
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent; integers become floats."""
def tanh_(input: Tensor) -> Tensor:
    """In-place form of :func:`tanh`: writes the result into ``self``."""
def tensor_split(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, dim: _int = 0, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None, tensor_indices_or_sections: Tensor | None = None) -> tuple[Tensor, ...]:
    """Views along a dimension: so many of nearly equal extent, or cut before the given positions."""
def tensordot(input: Tensor, other: Tensor, dims: _int | Sequence[Sequence[_int]] = 2, *, out: Tensor | None = None) -> Tensor:
    """Sum products over pairs of dimensions: ``dims`` is how many of the last of ``self`` and first of ``other``, or
    a pair of equally long lists of dimensions. The result has the remaining ones, those of ``self`` first."""
def threshold(input: Tensor, threshold: _float, value: _float, *, out: Tensor | None = None) -> Tensor:
    """``self`` where above ``threshold``, else ``value``."""
def threshold_(input: Tensor, threshold: _float, value: _float) -> Tensor:
    """In-place form of :func:`threshold`: writes the result into ``self``."""
@overload
def tile(input: Tensor, dims: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Like :meth:`repeat`, for the last ``len(dims)`` dimensions if there are more."""
@overload
def tile(input: Tensor, *dims: _int, out: Tensor | None = None) -> Tensor: ...
def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Sequence[Tensor] | None = None) -> _topk:
    """(the ``k`` largest, or smallest, elements along ``dim``, their indices), always in order, NaN as largest."""
def trace(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of a matrix's diagonal. Integers sum to int64."""
def transpose(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """A view with two dimensions exchanged."""
def transpose_copy(input: Tensor, dim0: _int, dim1: _int, *, out: Tensor | None = None) -> Tensor:
    """What :func:`transpose` shows, in new memory."""
def triangular_solve(b: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Sequence[Tensor] | None = None) -> _triangular_solve:
    """(solution, copy of A) of ``A @ X == b`` for triangular A, of ``A.mT @ X == b`` with ``transpose``."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangles of matrices, up to the given diagonal; zeros elsewhere."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: dtype = ..., device: device | str | _int | None = 'cpu', out: Tensor | None = None) -> Tensor:
    """Rows (first) and columns (second) of the elements on and below a diagonal, in row-major order."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangles of matrices, from the given diagonal on; zeros elsewhere."""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: dtype = ..., device: device | str | _int | None = 'cpu', out: Tensor | None = None) -> Tensor:
    """Rows (first) and columns (second) of the elements on and above a diagonal, in row-major order."""
def true_divide(input: Tensor, other: Tensor | _complex, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Divide elementwise."""
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Round towards zero; integers stay as they are. The gradient is zero."""
def trunc_(input: Tensor) -> Tensor:
    """In-place form of :func:`trunc`: writes the result into ``self``."""
uint1: dtype
uint16: dtype
uint2: dtype
uint3: dtype
uint32: dtype
uint4: dtype
uint5: dtype
uint6: dtype
uint64: dtype
uint7: dtype
uint8: dtype
def unbind(input: Tensor, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Views of every index along a dimension, which disappears."""
def unbind_copy(input: Tensor, dim: _int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """What :func:`unbind` shows, in new memory."""
def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """One dimension split into several of the given extents, one of which may be -1."""
def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """What :func:`unfold` shows, in new memory."""
@overload
def unique(input: Tensor, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The distinct elements in ascending order; with their places and counts on request."""
@overload
def unique(input: Tensor, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: _bool = True, *, return_inverse: Literal[False] = False, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: _bool = True, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique(input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor | tuple[Tensor, ...]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The elements without repetitions of the one before; with their places and counts on request."""
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[False] = False, return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Tensor | tuple[Tensor, ...]: ...
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """:func:`chunk` without autograd's knowledge that the parts share memory: they may be changed in place."""
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0) -> tuple[Tensor, ...]:
    """:func:`split` without autograd's knowledge that the parts share memory: they may be changed in place."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
    """:func:`unsafe_split` into parts of the given extents."""
def unsqueeze(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """A view with a dimension of extent 1 inserted at ``dim``."""
def unsqueeze_copy(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """What :func:`unsqueeze` shows, in new memory."""
def var(input: Tensor, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Tensor | None = None) -> Tensor:
    """Variance over ``dim``: squared distances from the mean, divided by (their number - ``correction``)."""
def var_mean(input: Tensor, dim: _int | Sequence[_int] | _bool | None = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: _float | None = 1, out: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """(variance, mean) over ``dim``; see :func:`var`."""
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The dot product of two vectors with ``self`` conjugated."""
def view_as_complex(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A view of pairs as complex numbers: the last dimension has extent 2, and its elements are adjacent."""
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What :func:`view_as_complex` shows, in new memory."""
def view_as_real(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A view of complex numbers as pairs: a last dimension of extent 2 with the real and the imaginary part."""
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What :func:`view_as_real` shows, in new memory."""
@overload
def view_copy(input: Tensor, size: Sequence[_int], *, dtype: dtypes.DType | None = None, out: Tensor | None = None) -> Tensor:
    """What :func:`view` shows, in new memory."""
@overload
def view_copy(input: Tensor, *size: _int, dtype: dtypes.DType | None = None, out: Tensor | None = None) -> Tensor: ...
def vsplit(input: Tensor, indices_or_sections: _int | Sequence[_int] | Tensor | None = None, *, indices: Sequence[_int] | Tensor | None = None, sections: _int | None = None) -> tuple[Tensor, ...]:
    """Views along dimension 0: so many of equal extent, or cut there."""
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along the first dimension; 1-D tensors count as rows."""
@overload
def where(condition: Tensor) -> tuple[Tensor, ...]:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere. With the condition alone, the indices
    of its true elements, one tensor per dimension."""
@overload
def where(condition: Tensor, input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor: ...
def xlogy(input: Tensor | _complex, other: Tensor | _complex, *, out: Tensor | None = None) -> Tensor:
    """``self * log(other)``, 0 where ``self`` is 0 unless ``other`` is NaN. Integers become floats."""
def xlogy_(input: Tensor | _complex, other: Tensor | _complex) -> Tensor:
    """In-place form of :func:`xlogy`: writes the result into ``self``."""
def zero_(input: Tensor) -> Tensor:
    """Write 0 into every element."""
@overload
def zeros(size: Sequence[_int], *, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor:
    """Zeros of a size, given as ints or as one sequence."""
@overload
def zeros(*size: _int, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False, out: Tensor | None = None) -> Tensor: ...
def zeros_like(input: Tensor, *, memory_format: memory_format | None = None, dtype: dtype | None = None, layout: layout | None = None, device: device | str | _int | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """Zeros with the shape, dtype and device of another tensor."""

