"""A stand-in for CuPy on machines without a GPU.

Its arrays wrap NumPy's and refuse what CuPy's refuse: implicit conversion to ``numpy.ndarray``, and use in NumPy
functions. Its ``xp`` offers NumPy's functions as far as CuPy 14.2 has them, with CuPy's parameters, on these arrays
only, with CuPy's values where a run on a GPU found others (``VALUES``). Code that passes here can still fail on a GPU;
code that fails here will.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import scipy.special

from gradwire_engine.runtime.backends import NumpyBackend
from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Shape

# Public names of NumPy 2.4 that CuPy 14.2 does not have, by module.
LACKING: dict[str, frozenset[str]] = {
    "numpy": frozenset(
        "False_ ScalarType True_ asmatrix block bmat busday_count busday_offset busdaycalendar bytes_ char "
        "character clongdouble complex256 core ctypeslib datetime64 datetime_as_string datetime_data dtypes "
        "einsum_path emath errstate f2py flexible float128 frompyfunc fromregex geomspace get_include getbufsize "
        "geterr geterrcall histogram_bin_edges info insert is_busday isnat little_endian longdouble ma matrix "
        "matvec memmap nanpercentile nanquantile ndenumerate nditer nested_iters object_ polyder polydiv polyint "
        "rec recarray record sctypeDict setbufsize seterr seterrcall show_runtime spacing str_ strings test "
        "timedelta64 typecodes typing unstack vecdot vecmat void".split()
    ),
    "numpy.linalg": frozenset(
        "diagonal matrix_norm multi_dot outer svdvals tensordot trace vecdot vector_norm eig eigvals".split()
    ),
    "numpy.fft": frozenset(),
    "numpy.lib": frozenset("array_utils format introspect mixins npyio scimath".split()),
    "numpy.lib.stride_tricks": frozenset({"broadcast_shapes"}),
}

# What cupyx.scipy has of SciPy's modules.
HAVING: dict[str, frozenset[str]] = {
    "scipy.special": frozenset(
        "i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e y0 y1 yn bdtr bdtrc bdtri btdtr btdtri fdtr fdtrc fdtri gdtr gdtrc nbdtr "
        "nbdtrc nbdtri pdtr pdtrc pdtri chdtr chdtrc chdtri ndtr log_ndtr ndtri logit expit log_expit boxcox boxcox1p "
        "inv_boxcox inv_boxcox1p entr huber kl_div pseudo_huber rel_entr gamma gammaln loggamma gammasgn gammainc "
        "gammaincinv gammaincc gammainccinv beta betaln betainc betaincinv psi rgamma polygamma multigammaln digamma "
        "poch erf erfc erfcx erfinv erfcinv lpmv expn softmax log_softmax zeta cbrt exp10 exp2 radian cosdg sindg "
        "tandg cotdg log1p expm1 round xlogy xlog1py sinc ellipk ellipkm1 ellipj sici exprel binom wrightomega "
        "lambertw".split()
    ),
    "scipy.linalg": frozenset("lu lu_factor lu_solve solve_triangular expm toeplitz kron tri tril triu".split()),
    "scipy.fft": frozenset(
        "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 hfftn ihfftn "
        "next_fast_len fftshift ifftshift fftfreq rfftfreq dct dctn dst dstn idct idctn idst idstn".split()
    ),
}

# Parameters of NumPy's functions that CuPy's functions of the same name do not take.
LACKING_PARAMETERS: dict[str, frozenset[str]] = {
    name: frozenset(parameters.split())
    for name, parameters in {
        "all": "where", "amax": "initial where", "amin": "initial where", "any": "where",
        "argpartition": "order", "argsort": "order stable", "clip": "min max", "count_nonzero": "keepdims",
        "indices": "sparse", "isin": "kind", "lexsort": "axis", "max": "initial where", "mean": "where",
        "min": "initial where", "nanmax": "initial where", "nanmean": "where", "nanmin": "initial where",
        "nanprod": "initial where", "nanstd": "where mean correction", "nansum": "initial where",
        "nanvar": "where mean correction", "partition": "order", "percentile": "weights",
        "prod": "initial where", "quantile": "weights", "sort": "order stable", "std": "where mean correction",
        "sum": "initial where", "take": "mode", "trim_zeros": "axis", "unique": "sorted", "unpackbits": "count",
        "var": "where mean correction",
    }.items()
}  # fmt: skip

# Methods of arrays that CuPy has, beside those handled below.
METHODS = frozenset(
    "all any argmax argmin argpartition argsort choose clip compress conj conjugate copy cumprod cumsum diagonal "
    "dot flatten max mean min nonzero partition prod ravel repeat reshape round squeeze std sum swapaxes take trace "
    "transpose var view".split()
)
# What only adds up and multiplies: CuPy's other ufuncs have no reduce and no accumulate.
REDUCING = {np.add: ("reduce", "accumulate"), np.multiply: ("reduce", "accumulate")}
# The dtypes that ``ufunc.at`` takes.
_WHOLE = "iIlLqQ"
SCATTERING: dict[Any, str] = {
    np.add: _WHOLE + "efd", np.subtract: "iI", np.maximum: _WHOLE + "fd", np.minimum: _WHOLE + "fd",
    np.bitwise_and: _WHOLE, np.bitwise_or: _WHOLE, np.bitwise_xor: _WHOLE,
}  # fmt: skip
WITHOUT_COMPLEX = frozenset("logical_and logical_or logical_xor logical_not".split())


# Functions whose values differ from those of NumPy and SciPy.


def _arg_extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of several NaN any is found: here the last one."""

    def find(x: Any, axis: int | None = None, **kwargs: Any) -> Any:
        if x.dtype.kind != "f" or not x.size:
            return function(x, axis=axis, **kwargs)
        axis, x = (0, x.reshape(-1)) if axis is None else (axis, x)
        missing = np.isnan(x)
        last = x.shape[axis] - 1 - np.flip(missing, axis).argmax(axis, **kwargs)
        return np.where(missing.any(axis, **kwargs), last, function(x, axis=axis, **kwargs))

    return find


def _at_infinity(name: str, value: float) -> Callable[..., Any]:
    """A Bessel function with a value where SciPy's is NaN."""
    function = getattr(scipy.special, name)
    return lambda x: np.where(np.isposinf(x), x.dtype.type(value), function(x))


def _scaled(name: str) -> Callable[..., Any]:
    """A scaled Bessel function, by an exponential that over- and underflows."""
    function = getattr(scipy.special, name.removesuffix("e"))
    return lambda x: np.exp(x if name[0] == "k" else -np.abs(x)) * function(x)


def _phases(count: int, dtype: Any) -> Any:
    """A sign or phase for each vector."""
    turns = np.arange(count) * (1.1j if np.dtype(dtype).kind == "c" else np.pi * 1j)
    return np.exp(turns).astype(dtype) if np.dtype(dtype).kind == "c" else np.exp(turns).real.round().astype(dtype)


def _eigh(x: Any, UPLO: str = "L") -> tuple[Any, Any]:
    values, vectors = np.linalg.eigh(x, UPLO)
    return values, vectors * _phases(x.shape[-1], x.dtype)


def _svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return np.linalg.svd(x, full_matrices, compute_uv=False)
    u, values, vh = np.linalg.svd(x, full_matrices)
    return u * _phases(u.shape[-1], x.dtype), values, vh * _phases(vh.shape[-2], x.dtype).conj()[:, None]


VALUES: dict[str, Callable[..., Any]] = {
    "argmax": _arg_extreme(np.argmax), "argmin": _arg_extreme(np.argmin), "eigh": _eigh, "svd": _svd,
    "sinc": lambda x: np.where(np.abs(x) > 1e-9, np.sinc(x), x.dtype.type(1)),
    "xlog1py": lambda x, y: np.where(x == 0, x.dtype.type(0), x * np.log1p(y)),
    **{name: _at_infinity(name, np.inf if name[0] == "i" else 0) for name in "i0 i1 j0 j1 y0 y1".split()},
    **{name: _scaled(name) for name in "i0e i1e k0e k1e".split()},
}  # fmt: skip


_WRAPPERS: WeakValueDictionary[int, StrictArray] = WeakValueDictionary()
"""Wrappers by the array they wrap: a view's base is one object, however often one asks."""


LAUNCHES: list[Callable[[], object]] | None = None
"""While a stream captures (``tests/cuda_emulation/capturing.py``): what was computed, to be computed again."""


def waits() -> None:
    """What a stream that captures refuses: to wait for it, or to copy from the host."""
    if LAUNCHES is not None:
        raise RuntimeError("operation not permitted when stream is capturing")


def noted(found: Any, again: Callable[[], Any]) -> Any:
    """What a function returned. Computed again, it is written to the same memory."""
    if LAUNCHES is not None:
        parts = found if isinstance(found, (list, tuple)) else [found]

        def launch() -> None:
            fresh = again()
            for part, value in zip(parts, fresh if isinstance(fresh, (list, tuple)) else [fresh], strict=True):
                if isinstance(part, StrictArray) and part._array.flags.writeable:  # else a view
                    part._array[...] = value

        LAUNCHES.append(launch)
    return found


class Pointer:
    """``cupy.cuda.MemoryPointer``: an address, and who owns what is there."""

    def __init__(self, ptr: int, owner: Any) -> None:
        self.ptr, self.owner = ptr, owner

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.ptr + offset, self.owner)


class StrictArray:
    """An array that only its own library's functions accept."""

    __slots__ = ("__weakref__", "_array")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        _WRAPPERS[id(array)] = self

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed: use the backend's to_host")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} was called on an array that is not NumPy's: use xp")

    @property
    def flags(self) -> Any:
        return self._array.flags

    @property
    def base(self) -> Any:
        base = self._array.base
        if not isinstance(base, np.ndarray):
            return base
        found = _WRAPPERS.get(id(base))
        return found if found is not None and found._array is base else StrictArray(base)

    @property
    def shape(self) -> Any:
        return self._array.shape

    @property
    def strides(self) -> Any:
        return self._array.strides

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @property
    def itemsize(self) -> int:
        return self._array.itemsize

    @property
    def data(self) -> Any:
        return Pointer(self._array.ctypes.data, self)

    @property
    def device(self) -> Any:
        return types.SimpleNamespace(id=0)

    @property
    def T(self) -> StrictArray:
        return StrictArray(self._array.T)

    @property
    def mT(self) -> StrictArray:
        return StrictArray(self._array.mT)

    @property
    def real(self) -> StrictArray:
        return StrictArray(self._array.real)

    @real.setter
    def real(self, value: Any) -> None:
        self._array.real = _unwrap(value)

    @property
    def imag(self) -> StrictArray:
        return StrictArray(self._array.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._array.imag = _unwrap(value)

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"cupy.ndarray is not known to have {name!r}")
        function = partial(VALUES[name], self._array) if name in VALUES else getattr(self._array, name)
        return _Function(f"ndarray.{name}", function)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> StrictArray:
        cast = self._array.astype(dtype, order=order, copy=copy)
        if cast is self._array:
            return self
        return noted(StrictArray(cast), lambda: self._array.astype(dtype))

    def sort(self, axis: int = -1, kind: str | None = None) -> None:
        _check_kind(kind)
        self._array.sort(axis, kind=kind)
        noted(None, lambda: self._array.sort(axis, kind=kind))

    def fill(self, value: Any) -> None:
        self._array.fill(_unwrap(value))
        noted(None, lambda: self._array.fill(_unwrap(value)))

    def item(self, *args: Any) -> Any:
        waits()
        return self._array.item(*args)

    def tolist(self) -> Any:
        waits()
        return self._array.tolist()

    def get(self) -> Any:
        waits()
        return self._array.copy()

    def __getitem__(self, index: Any) -> StrictArray:
        return noted(_wrap(self._array[_unwrap(index)]), lambda: self._array[_unwrap(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[_unwrap(index)] = _unwrap(value)
        noted(None, lambda: self._array.__setitem__(_unwrap(index), _unwrap(value)))

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        waits()
        return bool(self._array)

    def __int__(self) -> int:
        waits()
        return int(self._array)

    def __float__(self) -> float:
        waits()
        return float(self._array)

    def __complex__(self) -> complex:
        waits()
        return complex(self._array)

    def __index__(self) -> int:
        waits()
        return self._array.__index__()

    def __repr__(self) -> str:
        return f"strict {self._array!r}"


def _operator(name: str) -> Any:
    def apply(self: StrictArray, *others: Any) -> Any:
        given = [_unwrap(other) for other in others]
        result = getattr(self._array, name)(*given)
        if result is self._array:  # in place
            return noted(self, lambda: getattr(self._array, name)(*given))
        return result if result is NotImplemented else noted(_wrap(result), lambda: getattr(self._array, name)(*given))

    return apply


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    for _prefix in ("", "r", "i"):
        setattr(StrictArray, f"__{_prefix}{_name}__", _operator(f"__{_prefix}{_name}__"))
for _name in "lt le gt ge eq ne neg pos abs invert".split():
    setattr(StrictArray, f"__{_name}__", _operator(f"__{_name}__"))


def _wrap(value: Any) -> Any:
    """CuPy has no scalars: its reductions give 0-dim arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(value))
    if isinstance(value, list):
        return [_wrap(v) for v in value]
    if isinstance(value, tuple):
        parts = [_wrap(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _unwrap(value: Any) -> Any:
    if isinstance(value, StrictArray):
        return value._array
    if isinstance(value, np.ndarray):
        raise TypeError("a NumPy array meets an array of another library: convert it with xp.asarray")
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_unwrap(v) for v in value)
    if isinstance(value, dict):
        return {k: _unwrap(v) for k, v in value.items()}
    return value


def _to_host(value: Any) -> Any:
    waits()
    return _unwrap(value)


def _check_kind(kind: Any) -> None:
    if kind not in (None, "stable"):
        raise ValueError(f"CuPy sorts in one way only, kind={kind!r} is not accepted")


def _scatter(function: Any, target: StrictArray, places: Any, values: Any) -> None:
    if target.dtype.char not in SCATTERING[function]:
        raise TypeError(f"cupy.{function.__name__}.at does not support {target.dtype} as data type")
    function.at(*_unwrap((target, places, values)))


class _Function:
    """A function of NumPy that takes and returns strict arrays."""

    def __init__(self, name: str, function: Any) -> None:
        self.__name__ = name
        self._function = VALUES.get(name, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.removeprefix("ndarray.")
        refused = LACKING_PARAMETERS.get(name, frozenset()) & set(kwargs)
        if refused:
            raise TypeError(f"cupy's {name} takes no {sorted(refused)}")
        if name in ("sort", "argsort"):
            _check_kind(kwargs.get("kind"))
            kwargs.setdefault("kind", "stable")
        if name in ("array", "asarray", "ascontiguousarray") and args and isinstance(args[0], np.ndarray):
            waits()
            return _wrap(self._function(*args, **kwargs))  # how host memory gets to a device
        if name == "repeat" and len(args) > 1 and isinstance(args[-1], StrictArray):
            raise TypeError("cupy's repeat takes its counts from the host")
        if name == "searchsorted" and not isinstance(args[1], StrictArray):
            raise NotImplementedError("cupy's searchsorted looks for an array, not for a number")
        if name == "where" and not isinstance(args[0], StrictArray):
            raise AttributeError("cupy's where takes an array for a mask, not a number")
        if name in WITHOUT_COMPLEX and any(getattr(a, "dtype", np.dtype("?")).kind == "c" for a in args):
            raise TypeError(f"Wrong type of arguments for cupy_{name}")
        out = kwargs.get("out")
        result = self._function(*_unwrap(args), **_unwrap(kwargs))
        found = out if isinstance(out, StrictArray) else _wrap(result)
        return noted(found, lambda: self._function(*_unwrap(args), **_unwrap(kwargs)))

    def __getattr__(self, name: str) -> Any:
        function = self._function
        if isinstance(function, np.ufunc):
            if name == "at" and function in SCATTERING:
                return partial(_scatter, function)
            if name in REDUCING.get(function, ()):
                return _Function(name, getattr(function, name))
            if name == "outer":
                return _Function(name, function.outer)
        raise AttributeError(f"cupy.{self.__name__} has no {name!r}")


class _Module:
    """A module of NumPy, as far as CuPy has it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        module = self._module
        if name == "asnumpy" and module is np:
            return _to_host
        having = HAVING.get(module.__name__)
        lacks = name in LACKING[module.__name__] if having is None else name not in having
        if name.startswith("_") or lacks:
            raise AttributeError(f"{module.__name__.replace('numpy', 'cupy')} has no {name!r}")
        found = getattr(module, name)
        if isinstance(found, types.ModuleType):
            if found.__name__ not in LACKING:
                raise AttributeError(f"kernels use no {found.__name__}")
            found = _Module(found)
        elif isinstance(found, type) and issubclass(found, BaseException):
            pass
        elif found is np.ndarray:
            found = StrictArray
        elif callable(found) and not isinstance(found, type):
            found = _Function(name, found)
        setattr(self, name, found)
        return found


if "cupyx" not in sys.modules:  # what kernels import of it on a GPU
    _stub = types.ModuleType("cupyx")
    _stub.errstate = lambda **_: nullcontext()  # type: ignore[attr-defined]
    sys.modules["cupyx"] = _stub
    sys.modules["cupyx.scipy"] = types.ModuleType("cupyx.scipy")
    for _part in ("special", "linalg", "fft"):
        sys.modules[f"cupyx.scipy.{_part}"] = _Module(importlib.import_module(f"scipy.{_part}"))  # type: ignore[assignment]


class StrictBackend:
    """The surface of ``NumpyBackend`` over strict arrays."""

    device = "cpu"
    array_type: Any = StrictArray
    fused: Any = None
    graphs: Any = None
    _plain = NumpyBackend()

    def __init__(self) -> None:
        self.xp: Any = _Module(np)

    def empty_bytes(self, nbytes: int) -> Any:
        return StrictArray(self._plain.empty_bytes(nbytes))

    def view(self, memory: Any, shape: Shape, stride: Shape, offset: int, dtype: DType) -> Any:
        return StrictArray(self._plain.view(_unwrap(memory), shape, stride, offset, dtype))

    def memory_of(self, array: Any) -> Any:
        memory = self._plain.memory_of(_unwrap(array))
        return None if memory is None else StrictArray(memory)

    def from_host(self, array: Any) -> Any:
        return StrictArray(array)

    def to_host(self, array: Any) -> Any:
        plain: Any = _unwrap(array)
        return plain

    def expect(self, array: Any) -> None:
        pass

    def forget_reads(self) -> None:
        pass

    def asarray(self, value: Any, dtype: Any) -> Any:
        if isinstance(value, StrictArray):
            return StrictArray(value._array.astype(dtype, copy=False))
        return StrictArray(np.asarray(value, dtype))

    def synchronize(self) -> None:
        pass

    def trim(self) -> None:
        pass

    def pooled_bytes(self) -> int:
        return 0
