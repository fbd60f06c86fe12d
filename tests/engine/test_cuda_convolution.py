"""Calls of cuDNN's frontend for convolution, against a stand-in with the frontend's signatures."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradwire_engine.kernels.cuda.convolution import Frontend
from gradwire_engine.numerics.windows import Windows
from gradwire_engine.ops import convolution as plain
from tests.cuda_emulation import AVAILABLE
from tests.engine.test_cuda_kernels import FINE, Pair, draw

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs g++")


class Tensor:
    def __init__(self, dim: Any = None, stride: Any = None, data_type: Any = None, uid: int = -1) -> None:
        self.dim, self.stride, self.data_type, self.uid = dim, stride, data_type, uid

    def set_output(self, _: bool) -> Tensor:
        return self

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("set_"):
            raise AttributeError(name)

        def put(value: Any) -> Tensor:
            setattr(self, name.removeprefix("set_"), value)
            return self

        return put

    def at(self, address: int) -> np.ndarray:
        element = np.dtype(self.data_type)
        memory = (ctypes.c_char * (int(np.prod(self.dim)) * element.itemsize)).from_address(address)
        return np.frombuffer(memory, element).reshape(self.dim)


class Graph:
    """``cudnn.pygraph``: one convolution, checked as cuDNN checks it."""

    built: list[Graph] = []

    def __init__(self, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any, handle: int) -> None:
        assert handle == 42
        self.dropped: list[str] = []
        self.stages: list[str] = []
        Graph.built.append(self)

    def tensor(self, dim: list[int], stride: list[int], data_type: Any, uid: int) -> Tensor:
        return Tensor(dim, stride, data_type, uid)

    def _note(self, kind: str, options: dict[str, Any], **operands: Tensor) -> Tensor:
        self.kind, self.options, self.operands, self.made = kind, options, operands, Tensor()
        return self.made

    def conv_fprop(self, image: Tensor, weight: Tensor, **options: Any) -> Tensor:
        return self._note("forward", options, image=image, weight=weight)

    def conv_dgrad(self, loss: Tensor, filter: Tensor, **options: Any) -> Tensor:
        return self._note("input", options, loss=loss, weight=filter)

    def conv_wgrad(self, image: Tensor, loss: Tensor, **options: Any) -> Tensor:
        return self._note("weight", options, image=image, loss=loss)

    def validate(self) -> None:
        shapes = {"forward": "loss", "input": "image", "weight": "weight"}
        all_of = {k: v.dim for k, v in self.operands.items()} | {shapes[self.kind]: self.made.dim}
        o = self.options
        for axis, (n, k, out) in enumerate(zip(all_of["image"][2:], all_of["weight"][2:], all_of["loss"][2:])):
            padded = n + o["pre_padding"][axis] + o["post_padding"][axis]
            assert out == (padded - o["dilation"][axis] * (k - 1) - 1) // o["stride"][axis] + 1
        assert len(all_of["image"]) >= 4
        self.groups = all_of["image"][1] // all_of["weight"][1]
        self.windows = Windows(
            tuple(all_of["image"][2:]), tuple(all_of["loss"][2:]), tuple(all_of["weight"][2:]), tuple(o["stride"]),
            tuple(o["pre_padding"]), tuple(o["dilation"]),
        )  # fmt: skip

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        self.dropped = notes

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.stages.append(name)

    def get_workspace_size(self) -> int:
        return 8

    def execute(self, addresses: dict[int, int], workspace: int, handle: int) -> None:
        order = ["build_operation_graph", "create_execution_plans", "check_support", "build_plans"]
        assert self.stages == order
        read = {k: t.at(addresses[t.uid]) for k, t in self.operands.items()}
        wide = {k: v.astype(np.float32) for k, v in read.items()}
        if self.kind == "forward":
            found = plain.forward(np, wide["image"], wide["weight"], self.windows, self.groups)
        elif self.kind == "input":
            found = plain.input_gradient(np, wide["loss"], wide["weight"], self.windows, self.groups)
        else:
            found = plain.weight_gradient(np, wide["loss"], wide["image"], self.windows, self.groups)
        target = self.made.at(addresses[self.made.uid])
        target[...] = found.astype(target.dtype)


CUDNN = SimpleNamespace(
    create_handle=lambda: 42, pygraph=Graph, set_stream=lambda handle, stream: None,
    cudnnGraphNotSupportedError=type("cudnnGraphNotSupportedError", (Exception,), {}),
    data_type=SimpleNamespace(FLOAT=np.float32, HALF=np.float16, BFLOAT16=ml_dtypes.bfloat16),
    heur_mode=SimpleNamespace(A="A", FALLBACK="FALLBACK"),
    numerical_note=SimpleNamespace(NONDETERMINISTIC="random", DOWN_CONVERT_INPUTS="narrow", TENSOR_CORE="TF32"),
)  # fmt: skip


@pytest.fixture
def pair() -> Pair:
    found = Pair()
    found.device.backends["cpu"].xp.frontend = Frontend(CUDNN)
    Graph.built.clear()
    return found


CASES = [
    ("conv2d", (2, 3, 8, 9), (4, 3, 3, 3), {"padding": (1, 1)}),
    ("conv2d", (2, 4, 9, 9), (6, 2, 3, 2), {"stride": (2, 3), "groups": 2, "dilation": (2, 1)}),
    ("conv1d", (2, 3, 10), (4, 3, 3), {"padding": (2,), "stride": (2,)}),
    ("conv3d", (1, 2, 4, 5, 6), (3, 2, 2, 2, 2), {}),
    ("conv2d", (3, 8, 8), (4, 3, 3, 3), {"padding": "same"}),
    ("conv2d", (1, 1, 7, 7), (1, 1, 2, 2), {"stride": (4, 4)}),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_their_gradients(pair: Pair, case: Any, dtype: str) -> None:
    name, image, weight, options = case
    bias = draw(weight[:1], dtype, 2)
    pair.call(name, draw(image, dtype), draw(weight, dtype, 1), bias, launches=False, tol=FINE[dtype] * 16, **options)
    assert [graph.kind for graph in Graph.built] == ["forward", "input", "weight"]
    # Halves are what tensor cores are for.
    assert all(graph.dropped == ["random", "narrow"] + ["TF32"] * (dtype == "float32") for graph in Graph.built)


def test_a_plan_is_built_once_and_tf32_is_a_plan_of_its_own(pair: Pair) -> None:
    engine = pair.device
    x, w = engine.from_numpy(draw((1, 1, 5, 5))), engine.from_numpy(draw((1, 1, 3, 3)))
    for _ in range(3):
        engine.call("conv2d", x, w, None)
    engine.call("set_float32_matmul_precision", "high")
    engine.call("conv2d", x, w, None)
    assert [graph.dropped for graph in Graph.built] == [["random", "narrow", "TF32"], ["random", "narrow"]]


def test_what_cudnn_has_no_engine_for_is_unrolled(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Graph, *_: Any) -> None:
        raise CUDNN.cudnnGraphNotSupportedError("no engine")

    monkeypatch.setattr(Graph, "check_support", refuse, raising=False)
    pair.call("conv2d", draw((1, 2, 6, 6)), draw((2, 2, 3, 3), seed=1), None, launches=False, grad=False)


def test_float64_is_unrolled(pair: Pair) -> None:
    pair.call("conv2d", draw((1, 2, 6, 6), "float64"), draw((2, 2, 3, 3), "float64", 1), None, launches=False)
    assert Graph.built == []
