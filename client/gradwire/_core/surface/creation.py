"""Tensors made from Python values, arrays, sizes and random numbers."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.accepts import check_exists
from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    DeviceError,
    DTypeError,
    GradwireError,
    NumberTooLarge,
)
from gradwire_protocol.meta import meta
from gradwire_protocol.ops.control import INFERENCE_MODE, check_can_require_grad
from gradwire_protocol.out import Out
from gradwire_protocol.promotion import ScalarKind, join
from gradwire_protocol.shapes import MAX_DIMS

from ..context.default_device import PLACES
from ..context.late_signatures import called_as, takes_options
from ..context.layouts import asked_order, check_layout, contiguous_format, layout, memory_format, preserve_format
from ..context.modes import MODES
from ..context.numpy_dtypes import DTYPES, NUMPY_DTYPES, cast
from ..context.size import Size
from ..context.size import device as Device
from ..dispatch.dispatch import call, tell
from ..dispatch.out_argument import accepts_out
from ..session.current_session import current_session
from ..session.session import Session
from ..tensor.reading import REMEMBERED_BYTES
from ..tensor.tensor import Tensor
from .generator import takes_generator


def place(device: Any, session: Session | None = None) -> str:
    """The wire name of a device argument; ``None`` is where new tensors live.

    Raises:
        DeviceError: when the server has no such device.
    """
    if device is None and PLACES.current is None:
        return (session or current_session()).device
    where = (device if isinstance(device, Device) else Device(device)).wire if device is not None else PLACES.current
    assert where is not None
    if where not in ("cpu", "meta"):
        there = (session or current_session()).link.devices
        if where not in there:
            raise DeviceError(f"the server has no device {where}: it has {', '.join(there) or 'cpu'}")
    return where


def finish(made: Tensor, requires_grad: bool) -> Any:
    """Let a fresh tensor require grad, if asked to."""
    if requires_grad:
        if made._inference or made._requires or made._id < 0 or made._node is not None or made._versions is not None:
            made.requires_grad_()
        else:  # the same for a new leaf, by the fast path
            check_can_require_grad(made._form)
            made._requires = True
            tell("requires_grad_", [made, True])
    return made


def upload(
    array: np.ndarray[Any, Any], dtype: DType, device: Device | str | int | None = None, requires_grad: bool = False
) -> Tensor:
    """A new leaf with the values of an array."""
    session = current_session()
    where = place(device, session)
    number = session.builder.nowhere() if where == "meta" else session.upload(array, dtype, where)
    made = Tensor._make(session, number, meta(array.shape, dtype, where))
    made._inference = bool(MODES.flags & INFERENCE_MODE)
    if dtype is dtypes.int64 and array.nbytes <= REMEMBERED_BYTES and where != "meta":
        made._uploaded = array.copy()
    return finish(made, requires_grad)


def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Device | str | int | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of ``data``: a number, nested sequences of numbers, a NumPy array, or a tensor.

    The dtype follows the data: bool, int64, the default float dtype or its complex partner for Python numbers, the
    array's own for NumPy.

    Raises:
        ArgumentValueError: for sequences of uneven length.
        ArgumentTypeError: for data that is not numbers.
        DTypeError: when a gradient is asked for and the dtype cannot have one.
    """
    dtype = OF_PYTHON_TYPES.get(dtype, dtype)  # type: ignore[call-overload]
    if isinstance(data, Tensor):
        made = data.detach().clone()
        if dtype is not None or device is not None:
            made = made.to(dtype=dtype, device=device)
        return finish(made, requires_grad)
    if dtype is None and requires_grad and isinstance(data, (bool, int)):
        raise DTypeError(f"a tensor of dtype {'bool' if isinstance(data, bool) else 'int64'} cannot require a gradient")
    check_exists("tensor", dtype)
    array, found = _gather(data, dtype)
    if requires_grad and found.category < dtypes.FLOATING:
        raise DTypeError(
            f"a tensor of dtype {found.name} cannot require a gradient, only floating point and complex ones"
        )
    return upload(array, found, device, requires_grad)


def _gather(data: Any, dtype: DType | None) -> tuple[np.ndarray[Any, Any], DType]:
    """An array of the data, and its dtype by PyTorch's rules."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        if array.dtype not in DTYPES:
            raise ArgumentTypeError(f"a NumPy array of dtype {array.dtype} cannot become a tensor")
        found = dtype or DTYPES[array.dtype]
    elif hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return _gather(np.asarray(data), dtype)
    else:
        arrays: set[DType] = set()
        try:
            shape, flat = _flatten(data, arrays)
        except RecursionError:
            kind = ArgumentValueError if _first_leads_on(data) else ArgumentTypeError  # as PyTorch, which looks there
            raise kind("the sequences are nested too deeply, or one contains itself") from None
        if len(shape) > MAX_DIMS:
            raise ArgumentValueError(f"a tensor has at most {MAX_DIMS} dimensions, not {len(shape)}")
        found = dtype or _dtype_of(flat, arrays)
        try:
            numbers = [_plain(v) for v in flat]
            if found is dtypes.uint64:
                numbers = [_of_64_bits(v) for v in numbers]
            array = np.array(numbers, dtype=_carrier(found)).reshape(shape)
            _check_fits(array, found)
        except NumberTooLarge:
            raise
        except OverflowError:
            if found.category >= dtypes.FLOATING:
                raise NumberTooLarge(f"a value does not fit into {found.name}") from None
            raise ArgumentValueError(f"a value does not fit into {found.name}") from None
        except GradwireError:
            raise
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"the data cannot become {found.name}: {error}") from None
    if array.dtype.kind == "c" and found is not dtypes.bool_ and not found.is_complex:
        array = array.real
    return cast(array, found), found  # a copy: the caller's array may change


def _of_64_bits(value: Any) -> int:
    """A number as a uint64, which PyTorch makes of Python's unsigned integers only.

    Raises:
        NumberTooLarge: for a negative number, or one of more bits.
    """
    number = operator.index(value)
    if not 0 <= number < 1 << 64:
        raise NumberTooLarge(f"{number} does not fit into uint64, which holds 0 to {(1 << 64) - 1}")
    return number


def _carrier(dtype: DType) -> Any:
    """The dtype to read Python numbers with, before the cast: wide, so that it wraps or rounds only once."""
    if dtype.is_complex:
        return np.complex128
    if dtype is dtypes.uint64:
        return np.uint64
    return np.float64 if dtype.is_floating_point else None


def _check_fits(array: np.ndarray[Any, Any], dtype: DType) -> None:
    """Refuse what an integer dtype cannot hold. Negative numbers wrap in an unsigned one, down to its range below 0.

    Raises:
        ArgumentValueError: for a number of more than 64 bits.
        ArgumentError: for others out of range, infinities and NaN.
        ArgumentTypeError: for complex numbers.
    """
    if dtype.category != dtypes.INTEGRAL or dtype is dtypes.uint64 or not array.size or array.dtype.kind == "b":
        return
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"a complex number does not become {dtype.name}: give its real part")
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "u" and int(array.max()) >= 1 << 63):
        raise ArgumentValueError(f"a value does not fit into {dtype.name}: it has more than 64 bits")
    held = np.iinfo(NUMPY_DTYPES[dtype])
    wraps = held.min == 0 and array.dtype.kind == "i"
    lowest, most, least = -held.max if wraps else held.min, array.max(), array.min()
    if not (lowest <= least and most <= held.max) or (array.dtype.kind == "f" and most >= 2.0**63):
        wrong = least if lowest > least else most
        raise ArgumentError(f"{wrong} does not fit into {dtype.name}, which holds {held.min} to {held.max}")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _is_sequence(data: Any) -> bool:
    """Whether it has entries by position, as lists have."""
    known = hasattr(type(data), "__len__") and hasattr(type(data), "__getitem__")
    return known and not isinstance(data, (str, bytes, Mapping, Tensor, np.ndarray, np.generic))


def _flatten(data: Any, arrays: set[DType]) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of nested sequences, and their entries. The dtypes of arrays among them are added to ``arrays``."""
    if isinstance(data, Tensor) and data.ndim > 0:
        arrays.add(data.dtype)
        data = data.tolist()
    if not isinstance(data, (list, tuple)) and not _is_sequence(data):
        if isinstance(data, (np.ndarray, np.generic)):
            array = np.asarray(data)
            if isinstance(data, np.ndarray) and array.dtype in DTYPES:
                arrays.add(DTYPES[array.dtype])
            return array.shape, list(array.reshape(-1)) if isinstance(data, np.ndarray) else [data]
        if ScalarKind.of(data) is None and not isinstance(data, Tensor):
            kind = ArgumentTypeError if isinstance(data, (str, bytes)) else ArgumentError
            raise kind(f"a tensor is made from numbers, not from {data!r:.60} of type {type(data).__name__}")
        return (), [data]
    if not len(data):
        return (0,), []
    if not isinstance(data, (list, tuple)):
        try:
            data = list(data)
        except Exception as error:
            raise ArgumentValueError(f"the entries of {type(data).__name__} cannot be read: {error!r:.80}") from None
    if isinstance(data[0], str):
        raise ArgumentValueError(f"a tensor is made from numbers, not from strings as in {list(data)!r:.60}")
    if all(type(v) in (int, float, bool) for v in data):
        return (len(data),), list(data)
    if isinstance(data[0], Tensor) or not hasattr(type(data[0]), "__len__"):
        data = [_element(v) if isinstance(v, Tensor) else v for v in data]
    parts = [_flatten(v, arrays) for v in data]
    first = parts[0][0]
    for i, (shape, _) in enumerate(parts):
        if shape != first:
            raise ArgumentValueError(
                f"nested sequences must have equal lengths: entry 0 has shape {list(first)}, entry {i} {list(shape)}"
            )
    return (len(data), *first), [v for _, flat in parts for v in flat]


def _first_leads_on(data: Any) -> bool:
    """Whether the first entries of sequences are sequences for more dimensions than a tensor has."""
    depth = 0  # PyTorch's range is defined here
    while depth <= MAX_DIMS and isinstance(data, (list, tuple)) and data:
        data, depth = data[0], depth + 1
    return depth > MAX_DIMS


def _element(tensor: Tensor) -> Any:
    """A tensor among numbers is one itself, whatever its shape.

    Raises:
        ArgumentTypeError, ArgumentValueError: for one that has not just one element, of integers or others.
    """
    if tensor.numel() != 1:
        kind = ArgumentValueError if tensor.is_floating_point() else ArgumentTypeError
        raise kind(f"a tensor among numbers has one element, not {tensor._form!r}: use torch.stack for more")
    return tensor.detach().reshape(()) if tensor.ndim else tensor


def _dtype_of(flat: list[Any], arrays: set[DType]) -> DType:
    """The dtype that all entries fit into: Python's numbers have the default ones, tensors and NumPy's their own."""
    default: DType = current_session().default_dtype
    of_kinds = (dtypes.bool_, dtypes.int64, default, default.to_complex())
    found = set(arrays)
    for value in flat:
        kind = ScalarKind.of(value)
        if isinstance(value, Tensor):
            found.add(value.dtype)
        elif isinstance(value, np.generic) and value.dtype in DTYPES:
            found.add(DTYPES[value.dtype])
        elif kind is not None:
            found.add(of_kinds[kind.category])
        else:
            raise ArgumentTypeError(
                f"a tensor is made from numbers, not from {value!r:.60} of type {type(value).__name__}"
            )
    return reduce(join, found) if found else default


def as_tensor(data: Any, dtype: DType | None = None, device: Device | str | int | None = None) -> Tensor:
    """``data`` itself where it already is such a tensor, else a new tensor of its values."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(ndarray: np.ndarray[Any, Any], /) -> Tensor:
    """A tensor with the values of a NumPy array. Unlike PyTorch's it shares no memory with it."""
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentTypeError(f"from_numpy takes a NumPy array, not {type(ndarray).__name__}")
    return tensor(ndarray)


def legacy_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """``Tensor(2, 3)``, ``Tensor([1, 2])`` and ``Tensor()``: of a size, from data, or empty, in the default dtype.

    Raises:
        ArgumentError: for a tensor and a device.
    """
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)) and not isinstance(args[0], Size):
        return tensor(args[0], dtype=current_session().default_dtype, **kwargs)
    if len(args) == 1 and isinstance(args[0], Tensor):
        if kwargs.get("device") is not None:
            raise ArgumentError("Tensor() of a tensor takes no device: use torch.as_tensor, or .to()")
        return args[0].detach()
    return empty(*args, **kwargs) if args or "size" in kwargs else empty(0, **kwargs)


def _sized(name: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    try:
        return tuple(v.__index__() for v in size)
    except AttributeError:
        raise ArgumentTypeError(f"{name}: a size is a sequence of ints, got {size!r:.80}") from None


def _make(name: str, size: tuple[Any, ...], options: dict[str, Any], **more: Any) -> Any:
    """One of the creations by size, with PyTorch's common keyword arguments."""
    if "size" in options:
        size = (options.pop("size"),)
    dtype, device, requires = factory_options(name, options)
    made = call(name, _sized(name, size), **more, dtype=_float_default(dtype), device=place(device))
    return finish(made, requires)


def factory_options(name: str, options: dict[str, Any]) -> tuple[Any, Any, bool]:
    """The dtype, the device and whether a gradient is wanted, of a function that makes tensors.

    Raises:
        ArgumentTypeError: for an option that no such function has.
    """
    dtype, device = OF_PYTHON_TYPES.get(dtype := options.pop("dtype", None), dtype), options.pop("device", None)
    requires = bool(options.pop("requires_grad", False))
    options.pop("pin_memory", None)
    check_layout(name, options.pop("layout", None))
    if options:
        raise ArgumentTypeError(f"{name} got an unexpected argument {sorted(options)[0]!r}")
    return dtype, device, requires


def _float_default(dtype: DType | None) -> DType:
    return dtype if dtype is not None else current_session().default_dtype


@accepts_out
@takes_options
def zeros(*size: int | Sequence[int], **options: Any) -> Tensor:
    """Zeros of a size, given as ints or as one sequence."""
    return _make("zeros", size, options)


@accepts_out
@takes_options
def ones(*size: int | Sequence[int], **options: Any) -> Tensor:
    """Ones of a size, given as ints or as one sequence."""
    return _make("ones", size, options)


@accepts_out
@takes_options
def empty(*size: int | Sequence[int], memory_format: memory_format | None = None, **options: Any) -> Tensor:
    """A tensor of a size whose values are whatever the memory held.

    Raises:
        ArgumentError: for a memory format that is for another number of dimensions, or that keeps one.
    """
    if memory_format is None or memory_format is contiguous_format:
        return _make("empty", size, options)
    if memory_format is preserve_format:
        raise ArgumentError("empty: preserve_format keeps an order, there is none to keep")
    wanted = _sized("empty", (options["size"],) if "size" in options else size)
    return _make("empty", size, options, **asked_order(memory_format, len(wanted)))


@accepts_out
@takes_generator
@takes_options
def rand(*size: int | Sequence[int], **options: Any) -> Tensor:
    """Uniform random numbers from [0, 1)."""
    return _make("rand", size, options)


@accepts_out
@takes_generator
@takes_options
def randn(*size: int | Sequence[int], **options: Any) -> Tensor:
    """Standard normal random numbers."""
    return _make("randn", size, options)


@accepts_out
@takes_options
def full(size: int | Sequence[int], fill_value: complex | Tensor, **options: Any) -> Tensor:
    """One value everywhere. The dtype follows the value unless it is given."""
    dtype, device, requires = factory_options("full", options)
    size = size if isinstance(size, (tuple, list)) else (size,)
    if isinstance(fill_value, Tensor) and fill_value.requires_grad:
        raise ArgumentTypeError("full: fill_value is a number, a tensor that requires grad would lose its history")
    if dtype is None:
        kind = ScalarKind.of(fill_value)
        if kind is ScalarKind.FLOAT or kind is ScalarKind.COMPLEX:
            default = current_session().default_dtype
            dtype = default if kind is ScalarKind.FLOAT else default.to_complex()
    return finish(call("full", _sized("full", tuple(size)), fill_value, dtype=dtype, device=place(device)), requires)


@accepts_out
@takes_options
def arange(
    start: float | Tensor, end: float | Tensor | None = None, step: float | Tensor = 1, **options: Any
) -> Tensor:
    """Values from ``start`` (0 when only one number is given) up to, not including, ``end``."""
    if end is None:
        start, end = 0, start
    dtype, device, requires = factory_options("arange", options)
    numbers = [_number("arange", v) for v in (start, end, step)]
    if dtype is None and any(isinstance(v, float) for v in numbers):
        dtype = current_session().default_dtype
    return finish(call("arange", *numbers, dtype=dtype, device=place(device)), requires)


def _number(name: str, value: Any) -> Any:
    """A number, also one that comes as a tensor.

    Raises:
        ArgumentTypeError: for a tensor with dimensions, or one that requires grad.
    """
    if isinstance(value, Tensor) and (value.ndim or value.requires_grad):
        raise ArgumentTypeError(f"{name} takes numbers, and 0-dim tensors that require no grad, not {value._form!r}")
    return value.item() if hasattr(value, "item") else value


def _end(name: str, value: Any) -> Any:
    """A bound, also one that comes as a tensor.

    Raises:
        ArgumentError: for a tensor with dimensions.
    """
    if not isinstance(value, Tensor):
        return value
    if value.ndim:
        raise ArgumentError(f"{name}: a bound is a number or a 0-dim tensor, not {value._form!r}")
    return value.item()


@partial(accepts_out, how=Out.COUNTED)
@takes_options
def range(
    start: float | Tensor = 0, end: float | Tensor | None = None, step: float | Tensor = 1, **options: Any
) -> Tensor:
    """Values from ``start`` to ``end``, the end included where a step meets it. Deprecated: use :func:`arange`.

    Raises:
        ArgumentError: for a step of 0, or one away from the end.
    """
    if end is None:
        raise ArgumentTypeError("range needs an end")
    warnings.warn("range is deprecated, as it includes its end: use arange", UserWarning, stacklevel=3)
    dtype, device, requires = factory_options("range", options)
    first, last, distance = (_number("range", v) for v in (start, end, step))
    if distance == 0 or (last - first) * distance < 0:
        raise ArgumentError(f"range: no steps of {distance} lead from {first} to {last}")
    count = int((last - first) / distance) + 1
    made = call("arange", 0, count, 1, dtype=dtypes.float64, device=place(device)) * distance + first
    return finish(made.to(_float_default(dtype)), requires)


def _between_default(dtype: DType | None, start: Any, end: Any) -> DType:
    """The dtype of numbers between two: complex where one of them is."""
    default = _float_default(dtype)
    complexes = (isinstance(v, complex) or (isinstance(v, Tensor) and v.is_complex()) for v in (start, end))
    return default.to_complex() if dtype is None and any(complexes) else default


@accepts_out
@takes_options
def linspace(start: complex | Tensor, end: complex | Tensor, steps: int, **options: Any) -> Tensor:
    """``steps`` values from ``start`` to ``end``, both included."""
    dtype, device, requires = factory_options("linspace", options)
    start, end = _end("linspace", start), _end("linspace", end)
    dtype = _between_default(dtype, start, end)
    made = call("linspace", start, end, steps, dtype=dtype, device=place(device))
    return finish(made, requires)


@accepts_out
@takes_options
def logspace(start: complex | Tensor, end: complex | Tensor, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """``steps`` powers of ``base`` with exponents from ``start`` to ``end``."""
    dtype, device, requires = factory_options("logspace", options)
    start, end = _end("logspace", start), _end("logspace", end)
    dtype = _between_default(dtype, start, end)
    made = call("logspace", start, end, steps, base, dtype=dtype, device=place(device))
    return finish(made, requires)


@accepts_out
@takes_options
def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    dtype, device, requires = factory_options("eye", options)
    return finish(call("eye", n, m, dtype=_float_default(dtype), device=place(device)), requires)


def _randint_form(
    low: int, high: int | Sequence[int], size: Sequence[int] | None = None, *, dtype: DType | None = None,
    layout: layout | None = None, device: Device | str | int | None = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    raise NotImplementedError


@accepts_out
@takes_generator
@called_as(_randint_form)
def randint(*args: Any, **options: Any) -> Tensor:
    """``randint([low,] high, size)``: random integers from low (0) up to, not including, high."""
    low = options.pop("low", 0)
    values = list(args)
    if "high" in options:
        values.insert(len(values) if len(values) < 2 else 1, options.pop("high"))
    if "size" in options:
        values.append(options.pop("size"))
    if len(values) == 2:
        values.insert(0, low)
    dtype, device, requires = factory_options("randint", options)
    low, high, size = values
    made = call("randint", low, high, tuple(size), dtype=dtype or dtypes.int64, device=place(device))
    return finish(made, requires)


@accepts_out
@takes_generator
@takes_options
def randperm(n: int, **options: Any) -> Tensor:
    """A random permutation of 0 to n - 1."""
    dtype, device, requires = factory_options("randperm", options)
    return finish(call("randperm", n, dtype=dtype or dtypes.int64, device=place(device)), requires)
