"""NVIDIA's cuBLASLt, called as it is: CuPy has no way to it, and what CuPy has to cuBLAS may not be part of a graph.

CuPy needs the library anyway, so nothing is installed for it. Only its stable interface is used: descriptors with
numbered attributes (``cublasLt.h`` of CUDA 12 and 13 has the same numbers).
"""

from __future__ import annotations

import ctypes
import importlib
from collections import OrderedDict
from ctypes import POINTER, byref, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final, NamedTuple

from gradwire_protocol.errors import KernelError

from .problem import ALIGNMENT, MatmulProblem, Operand

# cudaDataType_t and cublasComputeType_t.
TYPES: Final = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
COMPUTE_32F: Final = 68
COMPUTE_32F_TF32: Final = 77
COMPUTE_64F: Final = 70

# cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t.
DESC_TRANSA: Final = 3
DESC_TRANSB: Final = 4
DESC_EPILOGUE: Final = 7
DESC_BIAS_POINTER: Final = 8
EPILOGUE_BIAS: Final = 4
LAYOUT_BATCH_COUNT: Final = 5
LAYOUT_STRIDED_BATCH_OFFSET: Final = 6
PREF_MAX_WORKSPACE_BYTES: Final = 1
PREF_MIN_ALIGNMENT: Final = (5, 6, 7, 8)  # of A, B, C and D

OP_T: Final = 1
WORKSPACE: Final = 32 << 20
"""Bytes that a product may work in; what one needs of it is taken from the session's pool."""


KEPT: Final = 4096
"""Problems whose algorithm is remembered."""


class _Heuristic(ctypes.Structure):
    _fields_ = [
        ("algo", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int), ("waves", c_float), ("reserved", c_int * 4)
    ]  # fmt: skip


_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "Create": (POINTER(c_void_p),),
    "MatmulDescCreate": (POINTER(c_void_p), c_int, c_int),
    "MatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "MatmulDescDestroy": (c_void_p,),
    "MatrixLayoutDestroy": (c_void_p,),
    "MatrixLayoutCreate": (POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
    "MatrixLayoutSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "MatmulPreferenceCreate": (POINTER(c_void_p),),
    "MatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "MatmulPreferenceDestroy": (c_void_p,),
    "MatmulAlgoGetHeuristic": (*(c_void_p,) * 7, c_int, POINTER(_Heuristic), POINTER(c_int)),
    "Matmul": (*(c_void_p,) * 14, c_size_t, c_void_p),
}


class Prepared(NamedTuple):
    """A problem in the library's terms, with the algorithm chosen for it. It holds for one device."""

    desc: c_void_p
    a: c_void_p
    b: c_void_p
    out: c_void_p
    algo: Any
    workspace: int


class CublasLt:
    """The functions of one ``libcublasLt``, for one thread: a descriptor is changed by each call.

    Raises:
        OSError: when there is no such library.
    """

    def __init__(self, path: str) -> None:
        self._dll = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._dll, f"cublasLt{name}")
            function.argtypes, function.restype = arguments, c_int
        self._handles: dict[int, c_void_p] = {}
        self._prepared: OrderedDict[tuple[int, MatmulProblem], Prepared | None] = OrderedDict()

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._dll, f"cublasLt{name}")(*arguments)
        if status:
            raise KernelError(f"cublasLt{name} failed with status {status}")

    def _set(self, kind: str, descriptor: c_void_p, attribute: int, value: ctypes._SimpleCData[Any]) -> None:
        self._call(f"{kind}SetAttribute", descriptor, attribute, byref(value), ctypes.sizeof(value))

    def layout(self, element: str, operand: Operand, count: int) -> c_void_p:
        """The descriptor of a stack of matrices."""
        found = c_void_p()
        self._call("MatrixLayoutCreate", byref(found), TYPES[element], operand.rows, operand.cols, max(operand.lead, 1))
        if count > 1:
            self._set("MatrixLayout", found, LAYOUT_BATCH_COUNT, c_int32(count))
            self._set("MatrixLayout", found, LAYOUT_STRIDED_BATCH_OFFSET, c_int64(operand.batch))
        return found

    def descriptor(self, problem: MatmulProblem) -> c_void_p:
        """The descriptor of the operation."""
        found = c_void_p()
        double = problem.element == "float64"
        compute = COMPUTE_64F if double else COMPUTE_32F
        if problem.coarse and problem.element == "float32":
            compute = COMPUTE_32F_TF32
        self._call("MatmulDescCreate", byref(found), compute, TYPES["float64" if double else "float32"])
        for attribute, operand in ((DESC_TRANSA, problem.a), (DESC_TRANSB, problem.b)):
            if operand.transposed:
                self._set("MatmulDesc", found, attribute, c_int32(OP_T))
        if problem.bias:
            self._set("MatmulDesc", found, DESC_EPILOGUE, c_uint32(EPILOGUE_BIAS))
            # The choice of an algorithm looks at the alignment of this address; the true one is set for each call.
            self._set("MatmulDesc", found, DESC_BIAS_POINTER, c_void_p(ALIGNMENT))
        return found

    def preference(self, problem: MatmulProblem) -> c_void_p:
        """What an algorithm may need."""
        found = c_void_p()
        self._call("MatmulPreferenceCreate", byref(found))
        self._set("MatmulPreference", found, PREF_MAX_WORKSPACE_BYTES, c_uint64(WORKSPACE))
        for attribute in PREF_MIN_ALIGNMENT:
            self._set("MatmulPreference", found, attribute, c_uint32(ALIGNMENT))
        return found

    def prepare(self, device: int, problem: MatmulProblem) -> Prepared | None:
        """The problem with the algorithm that the library thinks fastest; ``None`` when it has none. Kept, so that a
        problem is always solved in the same way, be it inside a graph or not."""
        key = (device, problem)
        if key in self._prepared:
            self._prepared.move_to_end(key)
        else:
            self._prepared[key] = self._prepare(device, problem)
            if len(self._prepared) > KEPT:
                self._forget(self._prepared.popitem(last=False)[1])
        return self._prepared[key]

    def _forget(self, prepared: Prepared | None) -> None:
        if prepared is not None:
            self._call("MatmulDescDestroy", prepared.desc)
            for layout in (prepared.a, prepared.b, prepared.out):
                self._call("MatrixLayoutDestroy", layout)

    def _handle(self, device: int) -> c_void_p:
        found = self._handles.get(device)
        if found is None:
            found = c_void_p()
            self._call("Create", byref(found))
            self._handles[device] = found
        return found

    def _prepare(self, device: int, problem: MatmulProblem) -> Prepared | None:
        desc, count = self.descriptor(problem), problem.stack
        a, b = (self.layout(problem.element, each, count) for each in (problem.a, problem.b))
        out = self.layout(problem.result, problem.out, count)
        preference, results, made = self.preference(problem), _Heuristic(), c_int()
        status = self._dll.cublasLtMatmulAlgoGetHeuristic(
            self._handle(device), desc, a, b, out, out, preference, 1, byref(results), byref(made)
        )
        self._call("MatmulPreferenceDestroy", preference)
        if status or not made.value or results.state:
            return None
        return Prepared(desc, a, b, out, (c_uint64 * 8)(*results.algo), results.workspace)

    def multiply(
        self, device: int, stream: int, problem: MatmulProblem, prepared: Prepared, a: int, b: int, out: int, alpha:
            float,
        beta: float, bias: int, workspace: int,
    ) -> None:  # fmt: skip
        """Put a product on a stream. Operands, result and working memory are given by address.

        Raises:
            KernelError: with the library's status.
        """
        kind = c_double if problem.element == "float64" else c_float
        if problem.bias:
            self._set("MatmulDesc", prepared.desc, DESC_BIAS_POINTER, c_void_p(bias))
        self._call(
            "Matmul", self._handle(device), prepared.desc, byref(kind(alpha)), a, prepared.a, b, prepared.b,
            byref(kind(beta)), out, prepared.out, out, prepared.out, prepared.algo, workspace, prepared.workspace,
            stream,
        )  # fmt: skip


def find(cupy: Any) -> CublasLt | None:
    """The library of the CUDA that CuPy runs on; ``None`` when it is not where CuPy's own libraries are."""
    major = int(cupy.cuda.runtime.runtimeGetVersion()) // 1000
    name = f"libcublasLt.so.{major}"
    for path in (name, *_installed(name)):
        try:
            return CublasLt(path)
        except (OSError, AttributeError):  # not there, or of another kind
            continue
    return None


def _installed(name: str) -> list[str]:
    """Where NVIDIA's wheels put it."""
    try:
        places = list(importlib.import_module("nvidia").__path__)
    except ImportError:
        return []
    return sorted(str(path) for place in places for path in Path(place).glob(f"*/lib/{name}"))
