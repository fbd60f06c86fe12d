"""uint16, uint32, uint64 and the floats of 8 bits in the client, beside PyTorch."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import gradwire as gw
from gradwire_protocol import dtypes

STORED = [dtype.name for dtype in dtypes.STORED]
FLOATS8 = ["float8_e4m3fn", "float8_e5m2"]

SAID: dict[str, str] = {
    "empty": "lib.empty(0, dtype=d)",
    "zeros": "lib.zeros(2, dtype=d)",
    "ones": "lib.ones(2, 2, dtype=d)",
    "full": "lib.full((2,), 7, dtype=d)",
    "full of a negative number": "lib.full((2,), -1, dtype=d)",
    "of a list": "lib.tensor([1, 2], dtype=d)",
    "of a negative number": "lib.tensor([-1], dtype=d)",
    "of fractions": "lib.tensor([1.5, 2.75], dtype=d)",
    "of large numbers": "lib.tensor([70000], dtype=d)",
    "of 63 bits": "lib.tensor(2**63, dtype=d)",
    "of 64 bits": "lib.tensor([2**64 - 1], dtype=d)",
    "asarray": "lib.asarray([1, 2], dtype=d)",
    "frombuffer": "lib.frombuffer(bytearray(range(8)), dtype=d)",
    "arange": "lib.arange(3, dtype=d)",
    "rand": "lib.rand(3, dtype=d)",
    "eye": "lib.eye(2, dtype=d)",
    "not finite": "lib.tensor([1.0, float('nan'), float('inf'), 0.1]).to(d)",
    "summary": "lib.ones(2000).to(d)",
    "zeros_like": "lib.zeros_like(a)",
    "rows": "a[1:]",
    "index": "a[[0, 2]]",
    "mask": "a[lib.tensor([True, False, True])]",
    "bytes": "a.view(lib.uint8)",
    "cat": "lib.cat([a, a])",
    "stack": "lib.stack([a, a])",
    "where": "lib.where(lib.tensor([True, False, True]), a, a)",
    "expand": "a.reshape(3, 1).expand(3, 2)",
    "repeat": "a.repeat(2)",
    "copy_": "a.clone().copy_(lib.tensor([1.5, 2.25, 300.0]))",
    "fill_": "a.clone().fill_(2)",
    "zero_": "a.clone().zero_()",
    "eq": "a == a",
    "ne with a number": "a != 2",
    "lt": "a < a",
    "add": "a + a",
    "mul": "a * a",
    "mul with a fraction": "(a * 1.5).float() if not d.is_floating_point else 0",
    "and": "a & a",
    "invert": "~a",
    "neg": "-a",
    "sum": "a.sum()",
    "max": "a.max()",
    "sort": "a.sort()[0]",
    "unique": "a.unique()",
    "isnan": "a.isnan()",
    "any": "a.any()",
    "float": "a.float()",
    "long": "a.long()",
    "bool": "bool(a[0])",
    "item": "a[1].item()",
    "tolist": "a.tolist()",
    "format": "f'{a[0]}'",
    "numpy": "a.numpy().dtype",
    "type": "a.type()",
    "itemsize": "(a.itemsize, a.element_size(), a.nbytes, d.itemsize)",
    "signed": "(a.is_signed(), d.is_signed, a.is_floating_point())",
    "meta": "lib.zeros(3, dtype=d, device='meta').to(lib.float32)",
    "requires_grad": "a.clone().requires_grad_().requires_grad",
    "parameter": "lib.nn.Parameter(a, requires_grad=False)",
    "result_type": "(lib.result_type(a, 1), lib.result_type(a, 1.5))",
    "complex result_type": "lib.result_type(a, 1j)",
    "iinfo": "lib.iinfo(d)",
    "finfo": "lib.finfo(d)",
    "to_complex": "d.to_complex()",
    "default": "lib.set_default_dtype(d)",
}

MAKING = (
    "gw.zeros(2, dtype=d)", "gw.tensor([1], dtype=d)", "gw.ones(2).to(d)", "gw.frombuffer(b'ab', dtype=d)",
    "gw.empty(2, dtype=d, device='meta')", "gw.ones(4).view(d)",
)  # fmt: skip


def said(lib: Any, dtype: str, text: str) -> str:
    """What an expression gives, as text; of an error the class of Python's own."""
    d = getattr(lib, dtype)
    names = {"lib": lib, "d": d, "a": lib.tensor([1, 2, 3]).to(d)}
    try:
        return repr(eval(text, names))  # noqa: S307
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize("dtype", STORED)
def test_expressions_say_what_pytorch_says(dtype: str) -> None:
    wrong = {
        name: (mine, wanted)
        for name, text in SAID.items()
        if (mine := said(gw, dtype, text)) != (wanted := said(torch, dtype, text))
    }
    assert not wrong


@pytest.mark.parametrize("dtype", STORED)
def test_a_call_that_comes_again_gives_the_same(dtype: str) -> None:
    for lib in (gw, torch):
        d = getattr(lib, dtype)
        x = lib.tensor([[0.5, 3.0, 1000.0], [7.0, 2.0, 250.0]])
        found = [[(x * (i + 1)).to(d)[:, 1:].clone().to(lib.float32).tolist(), (x.to(d) == x.to(d)).tolist()]
                 for i in range(5)]  # fmt: skip
        if lib is gw:
            mine = found
    assert mine == found


@pytest.mark.parametrize("dtype", FLOATS8)
def test_a_loss_flows_through_a_cast_to_8_bits(dtype: str) -> None:
    grads = []
    for lib in (gw, torch):
        w = lib.tensor([[0.3, -1.7], [2.2, 0.04]], requires_grad=True)
        for _ in range(3):
            (w.to(getattr(lib, dtype)).to(lib.float32) ** 2).sum().backward()
        grads.append(w.grad.tolist())
    assert grads[0] == grads[1]


def test_hash_tensor_is_a_uint64() -> None:
    for values in ([1.5, -2.0, math.pi], [3, 5, -1]):
        mine, wanted = gw.hash_tensor(gw.tensor(values)), torch.hash_tensor(torch.tensor(values))
        assert (repr(mine), mine.item()) == (repr(wanted), wanted.item())


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_numpy_arrays_come_and_go(dtype: str) -> None:
    array = np.array([[0, 1], [2, np.iinfo(dtype).max]], dtype)
    made = gw.from_numpy(array)
    assert made.dtype is getattr(gw, dtype)
    np.testing.assert_array_equal(made.numpy(), array)
    assert gw.from_dlpack(np.ascontiguousarray(array)).tolist() == array.tolist()
    assert np.from_dlpack(made).dtype == array.dtype


def test_floats_of_8_bits_have_no_numpy_dtype() -> None:
    x = gw.ones(2, dtype=gw.float8_e5m2)
    with pytest.raises(TypeError, match="NumPy has no float8_e5m2"):
        x.numpy()
    with pytest.raises(BufferError, match="no float8_e5m2"):
        x.__dlpack__()


@pytest.mark.parametrize("dtype", STORED)
def test_files_are_those_of_pytorch(dtype: str, tmp_path: Any) -> None:
    theirs = torch.tensor([[0, 1], [2, 200]]).to(getattr(torch, dtype))
    torch.save({"w": theirs, "t": theirs.T}, tmp_path / "theirs.pt")
    loaded = gw.load(tmp_path / "theirs.pt")
    assert repr(loaded["w"]) == repr(theirs)
    assert loaded["t"].tolist() == theirs.T.tolist()

    safetensors.torch.save_file({"w": theirs}, tmp_path / "theirs.safetensors")
    for source in (tmp_path / "theirs.safetensors", io.BytesIO((tmp_path / "theirs.safetensors").read_bytes())):
        assert repr(gw.load(source)["w"]) == repr(theirs)

    mine = gw.tensor([[0, 1], [2, 200]]).to(getattr(gw, dtype))
    gw.save({"w": mine}, tmp_path / "mine.safetensors")
    assert torch.equal(safetensors.torch.load_file(tmp_path / "mine.safetensors")["w"].float(), theirs.float())


def test_named_dtypes_are_told_apart_and_make_no_tensors() -> None:
    for name in dtypes.NAMED:
        found, theirs = getattr(gw, name), getattr(torch, name)
        assert (repr(found), found.itemsize, found.is_floating_point, found.is_complex) == (
            repr(theirs), theirs.itemsize, theirs.is_floating_point, theirs.is_complex
        )  # fmt: skip
        assert gw.zeros(1).dtype is not found and gw.uint8 not in (found,)
        for making in MAKING:
            with pytest.raises(NotImplementedError, match=f"there are no {name} tensors"):
                eval(making, {"gw": gw, "d": found})  # noqa: S307
    assert gw.chalf is gw.complex32
    assert gw.bit is gw.uint1
    assert {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)} <= set(dir(gw))
