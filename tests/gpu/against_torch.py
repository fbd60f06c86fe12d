"""The engine's hot ops and their gradients against PyTorch on the same device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from tests.gpu.parity import to_numpy, upload

TOLERANCES = {"float32": (2e-5, 2e-5), "float16": (1e-2, 5e-3), "bfloat16": (4e-2, 4e-2), "float64": (1e-10, 1e-10)}

Arrays = list[np.ndarray]


class Case:
    """One op on both sides.

    Args:
        name, args: the op, in which an int stands for an operand, and the rest for itself, as one-tuples.
        theirs: the same with PyTorch, of the operands.
        shapes: of the operands; ``("classes", shape, n)`` are class indices.
    """

    def __init__(self, name: str, theirs: Callable[..., torch.Tensor], shapes: list[Any], *args: Any) -> None:
        self.name, self.theirs, self.shapes, self.args = name, theirs, shapes, args

    def operands(self, seed: int) -> Arrays:
        random = np.random.default_rng(seed)
        return [
            random.integers(0, shape[2], shape[1]) if shape[:1] == ("classes",) else random.standard_normal(shape) * 0.5
            for shape in self.shapes
        ]


def lstm(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """Without cuDNN, which would round to TF32."""
    with torch.backends.cudnn.flags(enabled=False):
        return torch.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, True, False, False)[0]


def gru(x: torch.Tensor, h: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """Without cuDNN, as above."""
    with torch.backends.cudnn.flags(enabled=False):
        return torch.gru(x, h[None], weights, True, 1, 0.0, True, False, False)[0]


CASES = [
    Case("matmul", lambda a, b: a @ b, [(65, 33), (33, 40)], 0, 1),
    Case("matmul", lambda a, b: a @ b, [(4, 3, 17, 33), (4, 3, 33, 9)], 0, 1),
    Case("linear", F.linear, [(6, 20, 48), (32, 48), (32,)], 0, 1, 2),
    Case("softmax", lambda x: x.softmax(-1), [(5, 7, 300)], 0, (-1,)),
    Case("log_softmax", lambda x: x.log_softmax(-1), [(64, 1000)], 0, (-1,)),
    Case("layer_norm", lambda x, w, b: F.layer_norm(x, (96,), w, b), [(8, 33, 96), (96,), (96,)], 0, ((96,),), 1, 2),
    Case("cross_entropy", F.cross_entropy, [(64, 50), ("classes", (64,), 50)], 0, 1),
    Case("gelu", F.gelu, [(33, 129)], 0),
    Case("gelu", lambda x: F.gelu(x, approximate="tanh"), [(33, 129)], 0, ("tanh",)),
    Case("silu", F.silu, [(33, 129)], 0),
    Case("mul", lambda a, b: a * b, [(4, 1, 6), (5, 1)], 0, 1),
    Case("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), [(4, 3, 14, 14), (8, 3, 3, 3), (8,)], 0, 1, 2,
         ((1, 1),), ((1, 1),)),
    Case("scaled_dot_product_attention", F.scaled_dot_product_attention, [(2, 4, 33, 16)] * 3, 0, 1, 2),
    Case("scaled_dot_product_attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         [(2, 4, 33, 16)] * 3, 0, 1, 2, (None,), (0.0,), (True,)),
    Case("scaled_dot_product_attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         [(1, 2, 1500, 16)] * 3, 0, 1, 2, (None,), (0.0,), (True,)),
    Case("lstm_layer", lstm, [(7, 5, 12), (5, 40), (5, 40), (160, 12), (160, 40), (160,), (160,)], *range(7)),
    Case("gru_layer", gru, [(7, 5, 12), (5, 40), (120, 12), (120, 40), (120,), (120,)], *range(6)),
]  # fmt: skip


def checks(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(label, check) of every case in every dtype."""
    for at, case in enumerate(CASES):
        for dtype in TOLERANCES:
            if device == "cpu" and dtype in ("float16", "bfloat16") and case.name.startswith("scaled"):
                continue  # PyTorch's kernels on a CPU round in between
            if dtype in ("float16", "bfloat16") and case.name.endswith("_layer"):
                continue  # so they do between the steps of a layer
            yield f"against PyTorch: {case.name} {at}, {dtype}", lambda c=case, d=dtype, s=at: compare(c, d, device, s)


def compare(case: Case, dtype: str, device: str, seed: int) -> None:
    """Check a result and the gradients of all operands."""
    kind = getattr(torch, dtype)
    given = [
        torch.tensor(v).to(device) if v.dtype.kind == "i" else torch.tensor(v).to(kind).to(device).requires_grad_()
        for v in case.operands(seed)
    ]
    expected = case.theirs(*given)
    slope = torch.tensor(np.random.default_rng(seed + 1).standard_normal(tuple(expected.shape))).to(expected)
    wanted = [t for t in given if t.requires_grad]
    gradients = torch.autograd.grad(expected, wanted, slope)
    engine = Engine()
    mine = [upload(engine, device, to_numpy(t.detach().cpu()), requires_grad=t.requires_grad) for t in given]
    arguments = [mine[a] if isinstance(a, int) else a[0] for a in case.args]
    made = engine.call(case.name, *arguments)
    found: Tensor = made[0] if isinstance(made, tuple) else made
    seeds = [upload(engine, device, to_numpy(slope.cpu()))]
    ours = engine.call("grad", [found], [t for t in mine if t.requires_grad], seeds)
    close("the result", engine, found, expected, dtype)
    for i, (a, b) in enumerate(zip(ours, gradients, strict=True)):
        close(f"gradient {i}", engine, a, b, dtype)


def close(what: str, engine: Engine, mine: Tensor, theirs: torch.Tensor, dtype: str) -> None:
    rtol, atol = TOLERANCES[dtype]
    wide = np.asarray(to_numpy(theirs.detach().cpu())).astype(np.float64)
    atol *= max(1.0, float(np.abs(wide).max(initial=0)))  # sums round by their largest terms
    np.testing.assert_allclose(engine.to_numpy(mine).astype(np.float64), wide, rtol=rtol, atol=atol, err_msg=what)
