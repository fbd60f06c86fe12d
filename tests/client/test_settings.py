"""Global settings of programs, number limits, and PyTorch's legacy tensor types, against torch."""

from __future__ import annotations

import math

import pytest
import torch
from tests.side_by_side import built_in

import gradwire

pytestmark = pytest.mark.usefixtures("session")
LIBS = (torch, gradwire)


@pytest.fixture(autouse=True)
def restored():
    dtypes = torch.get_default_dtype(), gradwire.get_default_dtype()
    threads = torch.get_num_threads()
    yield
    for lib, dtype in zip(LIBS, dtypes, strict=True):
        lib.set_default_dtype(dtype)
        lib.use_deterministic_algorithms(False)
        lib.set_float32_matmul_precision("highest")
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_limits_of_floats_are_torchs(name):
    theirs, ours = torch.finfo(getattr(torch, name)), gradwire.finfo(getattr(gradwire, name))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert math.isclose(getattr(ours, field), getattr(theirs, field), rel_tol=1e-12), field
    assert ours.dtype == theirs.dtype and repr(ours) == repr(theirs)
    assert gradwire.finfo() == gradwire.finfo(gradwire.get_default_dtype())


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_limits_of_integers_are_torchs(name):
    theirs, ours = torch.iinfo(getattr(torch, name)), gradwire.iinfo(getattr(gradwire, name))
    assert (ours.bits, ours.max, ours.min, ours.dtype) == (theirs.bits, theirs.max, theirs.min, theirs.dtype)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", ["finfo", "iinfo"])
def test_limits_of_the_wrong_kind_are_refused(name):
    for lib in LIBS:
        with pytest.raises(TypeError):
            getattr(lib, name)(lib.float32 if name == "iinfo" else lib.int64)


OLD = ["FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "ShortTensor", "CharTensor",
       "ByteTensor", "BoolTensor", "BFloat16Tensor"]  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_old_types_make_and_recognise_tensors(name):
    for lib in LIBS:
        kind = getattr(lib, name)
        made = kind([1, 0, 1])
        assert isinstance(made, kind) and made.tolist() == [1, 0, 1] and tuple(kind(2, 3).shape) == (2, 3)
        assert tuple(kind().shape) == (0,)
        for other in OLD:
            assert isinstance(made, getattr(lib, other)) is (other == name)
    assert repr(getattr(gradwire, name)([1]).dtype) == repr(getattr(torch, name)([1]).dtype)


@pytest.mark.parametrize("name", OLD)
def test_old_types_are_what_a_tensor_is_cast_to(name):
    for lib in LIBS:
        for wanted in (getattr(lib, name), f"torch.{name}"):
            cast = lib.tensor([0.0, 1.0]).type(wanted)
            assert isinstance(cast, getattr(lib, name)) and cast.type() == f"torch.{name}"
            assert lib.tensor([0.0, 1.0]).type(cast.dtype).dtype is cast.dtype
        assert lib.tensor([1]).type(lib.Tensor).dtype is lib.tensor([1]).type("torch.Tensor").dtype is lib.float32
        assert lib.zeros(1, dtype=lib.complex64).type() == "torch.ComplexFloatTensor"
        assert lib.nn.Linear(1, 1).type(lib.DoubleTensor).weight.dtype is lib.float64
        with pytest.raises(ValueError):
            lib.zeros(1).type("torch.InventedTensor")


def test_old_types_set_the_default_dtype():
    for lib in LIBS:
        lib.set_default_tensor_type(lib.DoubleTensor)
        assert lib.tensor(1.0).dtype is lib.float64
        lib.set_default_tensor_type("torch.FloatTensor")
        assert lib.tensor(1.0).dtype is lib.float32
        with pytest.raises(TypeError):
            lib.set_default_tensor_type(lib.LongTensor)


def test_nothing_is_ever_being_compiled():
    def function(x):
        return x + 1

    assert not gradwire.compiler.is_compiling() and gradwire.compiler.disable(function) is function


def test_determinism_is_remembered():
    for lib in LIBS:
        assert not lib.are_deterministic_algorithms_enabled() and lib.get_deterministic_debug_mode() == 0
        lib.use_deterministic_algorithms(True, warn_only=True)
        assert lib.are_deterministic_algorithms_enabled() and lib.is_deterministic_algorithms_warn_only_enabled()
        assert lib.get_deterministic_debug_mode() == 1
        lib.set_deterministic_debug_mode("error")
        assert lib.get_deterministic_debug_mode() == 2 and not lib.is_deterministic_algorithms_warn_only_enabled()
        with pytest.raises(RuntimeError):
            lib.set_deterministic_debug_mode("invented")


def test_precision_and_threads_are_remembered():
    for lib in LIBS:
        assert lib.get_float32_matmul_precision() == "highest"
        lib.set_float32_matmul_precision("medium")
        assert lib.get_float32_matmul_precision() == "medium"
        lib.set_num_threads(2)
        assert lib.get_num_threads() == 2
        with pytest.raises(RuntimeError):
            lib.set_num_threads(0)
        assert isinstance(lib.set_flush_denormal(False), bool)
        assert lib.get_num_interop_threads() >= 1


@pytest.mark.parametrize("attempt", [lambda lib: lib.set_num_threads("x"), lambda lib: lib.set_num_threads(-1)])
def test_nonsense_is_refused_as_torch_refuses_it(attempt):
    raised = []
    for lib in LIBS:
        try:
            attempt(lib)
            raised.append(None)
        except Exception as error:
            raised.append(built_in(error))
    assert raised[0] == raised[1]
