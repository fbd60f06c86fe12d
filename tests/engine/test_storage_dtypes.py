"""The dtypes for storage against PyTorch: which ops take them, and what they compute.

A run tries a few ops of each dtype, other ones each time; ``GRADWIRE_TEST_SEED`` repeats it.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.session.session import Session
from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import DTypeError, Unsupported
from gradwire_protocol.storage_dtypes import TAKEN
from gradwire_protocol.table import TABLE
from tests.samples import Make, Samples, load

from .test_parity import SEED, Trial, from_numpy, to_ours
from .test_snapshot import MINE, again, apply

STORED = [dtype.name for dtype in dtypes.STORED]
OPS_OF_A_RUN = 12
REFUSED = "neg tril triu argmax argmin amax amin nonzero count_nonzero sgn sign".split()
APART = {"addbmm", "addmm", "linear", "matmul", "mm", "conj", "upload"}
"""Ops whose sums PyTorch rounds on the way, that have no node for real numbers there, or that have no oracle."""


def chosen(dtype: str) -> list[Samples]:
    """Samples of a few ops that take the dtype."""
    taken = [s for name in sorted(TAKEN[dtypes.BY_NAME[dtype]] - APART) for s in load().get(name, ())]
    return random.Random(f"{dtype}{SEED}").sample(taken, min(OPS_OF_A_RUN, len(taken)))


@pytest.mark.parametrize("dtype", STORED)
def test_ops_compute_what_pytorch_computes(dtype: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for samples in chosen(dtype):
            try_samples(samples, dtype)


def try_samples(samples: Samples, dtype: str) -> None:
    engine = Engine()
    try:
        for sample in samples.generate(Make(dtype, SEED)):
            if sample.expects_error:
                continue
            sample.gradients = False  # PyTorch adds up few gradients of 8 bits
            try:
                Trial(engine, samples, sample, dtype).run()
            except Exception as error:
                raise AssertionError(f"{samples.op}{sample!r}\n{error!r}\n(GRADWIRE_TEST_SEED={SEED})") from error
    except (RuntimeError, TypeError):  # PyTorch cannot make the next sample in this dtype
        return


@pytest.mark.parametrize("dtype", STORED)
def test_other_ops_refuse_the_dtype_by_name(dtype: str) -> None:
    engine = Engine()
    x = to_ours(engine, torch.tensor([[1, 2], [3, 4]]).to(getattr(torch, dtype)))
    for name in REFUSED:
        with pytest.raises(Unsupported, match=rf"{name} is not defined for {dtype} tensors"):
            engine.call(name, x)


def numbers(source: DType, target: DType) -> list[float]:
    """Numbers whose cast does not depend on the processor."""
    found = [0, 1, 2.5, 3.75, 17, 100, 200, 255.5, 440]
    if source.category >= dtypes.FLOATING:
        found += [1e-3, 0.1, 2**-9, 1.0625]
    if source.is_signed and (source.category < dtypes.FLOATING or target.category >= dtypes.FLOATING):
        found += [-1, -100]
    if source.category >= dtypes.FLOATING and target.category >= dtypes.FLOATING:
        found += [460, 470, 1e4, 60000, 61440, 1e6, float("inf"), -float("inf"), float("nan")]
    return found


@pytest.mark.parametrize("source", dtypes.ALL, ids=lambda d: d.name)
def test_casts_are_those_of_pytorch(source: DType) -> None:
    engine = Engine()
    for target in dtypes.ALL if source.for_storage else dtypes.STORED:
        given = torch.tensor(numbers(source, target), dtype=torch.float64).to(getattr(torch, source.name))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = given.to(getattr(torch, target.name))
            got = from_numpy(engine.to_numpy(engine.call("to", to_ours(engine, given), dtype=target)))
        assert got.dtype is wanted.dtype
        wide = torch.complex128 if target.is_complex else torch.float64
        assert torch.equal(got.to(wide).nan_to_num(7.5), wanted.to(wide).nan_to_num(7.5)), (target, got, wanted)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_number_of_8_bits_is_read_and_written(dtype: str) -> None:
    every = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    engine = Engine()
    for name in ("float16", "bfloat16", "float32", "float64"):
        wide = engine.call("to", to_ours(engine, every), dtype=dtypes.BY_NAME[name])
        torch.testing.assert_close(from_numpy(engine.to_numpy(wide)), every.to(getattr(torch, name)), equal_nan=True)
        back = engine.call("to", wide, dtype=dtypes.BY_NAME[dtype])
        torch.testing.assert_close(from_numpy(engine.to_numpy(back)).float(), every.float(), equal_nan=True)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_a_cast_to_8_bits_has_a_gradient(dtype: str) -> None:
    given = torch.tensor([0.3, -1.7, 1000.0], requires_grad=True)
    engine = Engine()
    x = to_ours(engine, given)
    narrow = engine.call("to", x, dtype=dtypes.BY_NAME[dtype])
    wide = engine.call("to", narrow, dtype=dtypes.float32)
    gradient = engine.call("grad", [engine.call("mul", wide, 1.3)], [x], [to_ours(engine, torch.ones(3))])[0]
    wanted = torch.autograd.grad(given.to(getattr(torch, dtype)).float() * 1.3, given, torch.ones(3))[0]
    torch.testing.assert_close(from_numpy(engine.to_numpy(gradient)), wanted, rtol=0, atol=0)
    assert narrow.requires_grad


@pytest.mark.parametrize("dtype", STORED)
def test_an_image_of_a_session_keeps_them(dtype: str) -> None:
    session = Session()
    apply(session, [["ones", [[4], dtype]], ["slice", [0, 0, "int", "int"]]], scalars=[1, 3])
    other = again(session)
    read = apply(other, [["view_dtype", [-1, "uint8"]], ["to", [-2, "float32"]]], [0, 1], external=[MINE + 1, MINE + 2])
    assert not read.errors
    assert read.values[1].dtype == "float32" and read.values[1].shape == [2]


def test_pairs_without_a_common_dtype_are_refused() -> None:
    engine = Engine()
    x = to_ours(engine, torch.tensor([1, 2], dtype=torch.uint16))
    with pytest.raises(DTypeError, match="uint16 and int64 are not promoted"):
        engine.call("mul", x, to_ours(engine, torch.tensor([1, 2])))
    with pytest.raises(DTypeError, match="float8_e5m2 and float32 are not promoted"):
        engine.call("cat", [to_ours(engine, torch.ones(2).to(torch.float8_e5m2)), to_ours(engine, torch.ones(2))])


def test_a_gpu_has_no_floats_of_8_bits() -> None:
    for dtype in (dtypes.float8_e4m3fn, dtypes.float8_e5m2):
        with pytest.raises(Unsupported, match="on the CPU only"):
            TABLE["zeros"].infer([(2,), dtype, "cuda:0"])
    assert TABLE["zeros"].infer([(2,), dtypes.uint16, "cuda:0"]).outs[0].device == "cuda:0"


def test_names_of_dtypes_make_no_tensors() -> None:
    for name, dtype in dtypes.NAMED.items():
        with pytest.raises(Unsupported, match=f"there are no {name} tensors"):
            TABLE["zeros"].infer([(2,), dtype, "cpu"])


def test_the_derived_table_names_ops_of_the_table() -> None:
    for names in TAKEN.values():
        assert names <= TABLE.keys()
