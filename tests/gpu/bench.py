"""The engine against PyTorch eager on one device, side by side: products, kernels, training steps.

Both sides are timed alternately, synchronizing before and after. A row has the medians, their ratio, and the range of
the rounds' ratios.
"""

from __future__ import annotations

import platform
import time
import traceback
from collections.abc import Callable
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from benchmarks.models import MODELS
from benchmarks.servers import session

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.backends import Backends, DevicePool
from gradwire_protocol import dtypes
from tests.gpu import plans, served
from tests.gpu.parity import upload

Work = Callable[[], Any]
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "gpu.md"


class Bench:
    """Runs pairs of the same work and keeps the rows.

    Args:
        quick: small sizes and few rounds, to see that everything runs.
    """

    def __init__(self, device: str, quick: bool = False) -> None:
        self.device = device
        self.quick = quick
        self.engine = Engine(backends=Backends(pool=DevicePool(16 << 30)))
        self.rows: list[tuple[str, float, float, float, float]] = []
        self.broken = 0

    def wait(self) -> None:
        """Until the device has done all that both sides gave it."""
        self.engine.backends[self.device].synchronize()
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)

    def time(self, work: Work, times: int) -> float:
        """Seconds of one run, of so many in a row."""
        self.wait()
        began = time.perf_counter()
        for _ in range(times):
            work()
        self.wait()
        return (time.perf_counter() - began) / times

    def row(self, name: str, mine: Work, theirs: Work, most: int = 200) -> None:
        """Time two works in turns, at most so many in a row."""
        rounds = 2 if self.quick else 7
        for work in (mine, theirs, mine, theirs):
            work()
        guess = max(self.time(mine, 1), self.time(theirs, 1), 1e-6)
        times = 1 if self.quick else max(1, min(most, int(0.1 / guess)))
        pairs = [(self.time(mine, times), self.time(theirs, times)) for _ in range(rounds)]
        ratios = [a / b for a, b in pairs]
        ours, other = median(a for a, _ in pairs), median(b for _, b in pairs)
        self.rows.append((name, ours, other, min(ratios), max(ratios)))
        print(f"{name}: {ours * 1e3:.3f} ms, PyTorch {other * 1e3:.3f} ms, ratio {ours / other:.2f}", flush=True)

    def pair(self, *shape: int, dtype: str = "float32", requires_grad: bool = False) -> tuple[Tensor, torch.Tensor]:
        """The same values on both sides."""
        values = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32) * 0.1
        theirs = torch.tensor(values).to(getattr(torch, dtype)).to(self.device).requires_grad_(requires_grad)
        mine = upload(self.engine, self.device, values)
        if dtype != "float32":
            mine = self.engine.call("to", mine, dtype=dtypes.BY_NAME[dtype])
        mine.requires_grad_flag = requires_grad
        return mine, theirs


def _without_gradients(group: Callable[[Bench, Engine], None]) -> Callable[[Bench, Engine], None]:
    @wraps(group)
    def run(bench: Bench, engine: Engine) -> None:
        engine.grad_enabled = False
        try:
            with torch.no_grad():
                group(bench, engine)
        finally:
            engine.grad_enabled = True

    return run


def run(device: str, quick: bool = False) -> tuple[str, int]:
    """All rows, as a page, and how many models or groups of rows failed. The others' figures remain valid."""
    bench = Bench(device, quick)
    for group in (_products, _kernels, _taped, _planned, _served):
        began = time.perf_counter()
        try:
            group(bench, bench.engine)
        except Exception:
            bench.broken += 1
            print(f"FAILED bench: {group.__name__.strip('_')}")
            traceback.print_exc()
        print(f"{group.__name__.strip('_')}: {time.perf_counter() - began:.0f} s", flush=True)
    return page(bench), bench.broken


def _taped(bench: Bench, _: Engine) -> None:
    for name, make in (("MLP 784-256-10, batch 128, SGD", mlp_steps), ("GPT block d 128, T 64, B 8, AdamW", gpt_steps)):
        mine, theirs = make(bench)
        bench.row(f"step: {name}", mine, theirs)


def _planned(bench: Bench, _: Engine) -> None:
    """Steps as frames of the client, run by plans: decoded, applied, the loss read and encoded."""
    if plans.missing():
        print(f"steps by plans: not timed, this Python lacks {plans.missing()}")
        return
    for name, program in (("mlp", plans.mlp), ("gpt", plans.gpt)):
        step, ran = plans.steps(bench.device, program)
        label = f"step by plan, loss read: {name.upper()}"
        bench.row(label, step, plans.theirs(torch, bench.device, name), plans.MOST_STEPS)
        print(f"  {ran.describe()}")


def _served(bench: Bench, _: Engine) -> None:
    """Models that people train, from a client through a server on loopback; the loss is read every ten steps."""
    if served.missing():
        print(f"served models: not timed, this Python lacks {served.missing()}")
        return
    names = list(MODELS)[: 1 if bench.quick else None]
    with served.server() as running, session(running), served.defaults(bench.device):
        for name in names:
            try:
                ours, theirs = (served.ten_steps(training) for training in served.both(name))
                bench.row(f"served, ten steps: {name}", ours, theirs, 5)
            except Exception:
                bench.broken += 1
                print(f"FAILED bench: {name}")
                traceback.print_exc()


@_without_gradients
def _products(bench: Bench, engine: Engine) -> None:
    n = 64 if bench.quick else 4096
    for label, dtype, coarse in (
        ("float32", "float32", False),
        ("TF32", "float32", True),
        ("bfloat16", "bfloat16", False),
    ):
        torch.backends.cuda.matmul.allow_tf32 = coarse
        engine.call("set_float32_matmul_precision", "high" if coarse else "highest")
        a, x = bench.pair(n, n, dtype=dtype)
        bench.row(f"matmul {n}^3 {label}", lambda a=a: engine.call("matmul", a, a), lambda x=x: x @ x)
    torch.backends.cuda.matmul.allow_tf32 = False
    engine.call("set_float32_matmul_precision", "highest")
    batch, t = (1, 16) if bench.quick else (8, 1024)
    for dtype in ("float32", "bfloat16"):
        q, x = bench.pair(batch, 16, t, 64, dtype=dtype)
        bench.row(
            f"attention {batch}x16x{t}x64 {dtype}, causal",
            lambda q=q: engine.call("scaled_dot_product_attention", q, q, q, is_causal=True),
            lambda x=x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        )


@_without_gradients
def _kernels(bench: Bench, engine: Engine) -> None:
    rows, cols = (16, 64) if bench.quick else (8192, 1024)
    x, y = bench.pair(rows, cols)
    w, v = bench.pair(cols)
    labels = np.arange(rows) % cols
    target, wanted = upload(engine, bench.device, labels), torch.tensor(labels).to(bench.device)
    bench.row("softmax", lambda: engine.call("softmax", x, -1), lambda: y.softmax(-1))
    bench.row("layer_norm", lambda: engine.call("layer_norm", x, (cols,), w, w), lambda: F.layer_norm(y, (cols,), v, v))
    bench.row("cross_entropy", lambda: engine.call("cross_entropy", x, target), lambda: F.cross_entropy(y, wanted))
    bench.row("gelu", lambda: engine.call("gelu", x), lambda: F.gelu(y))
    bench.row("dropout", lambda: engine.call("dropout", x, 0.5, True), lambda: F.dropout(y, 0.5))


def mlp_steps(bench: Bench) -> tuple[Work, Work]:
    """One step of a classifier, on both sides."""
    engine = bench.engine
    pairs = [bench.pair(*s, requires_grad=True) for s in ((256, 784), (256,), (10, 256), (10,))]
    (x, y), labels = bench.pair(128, 784), np.arange(128) % 10
    target, wanted = upload(engine, bench.device, labels), torch.tensor(labels).to(bench.device)
    mine, theirs = [p for p, _ in pairs], [p for _, p in pairs]
    optimizer = torch.optim.SGD(theirs, 0.01)

    def step() -> None:
        hidden = engine.call("relu", engine.call("linear", x, mine[0], mine[1]))
        loss = engine.call("cross_entropy", engine.call("linear", hidden, mine[2], mine[3]), target)
        _descend(engine, loss, mine, "sgd_step", {
            "momentum_buffers": [None] * 4, "lr": 0.01, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0,
            "nesterov": False, "maximize": False, "first": (),
        })  # fmt: skip

    def their_step() -> None:
        optimizer.zero_grad()
        hidden = F.relu(F.linear(y, theirs[0], theirs[1]))
        F.cross_entropy(F.linear(hidden, theirs[2], theirs[3]), wanted).backward()
        optimizer.step()

    return step, their_step


def gpt_steps(bench: Bench) -> tuple[Work, Work]:
    """One step of a block of a transformer with four heads, on both sides."""
    engine, d, t, b, heads = bench.engine, 128, 64, 8, 4
    shapes = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (4 * d, d), (4 * d,), (d, 4 * d), (d,)]
    pairs = [bench.pair(*s, requires_grad=True) for s in shapes]
    (x, y), mine, theirs = bench.pair(b, t, d), [p for p, _ in pairs], [p for _, p in pairs]
    optimizer = torch.optim.AdamW(theirs, 1e-3)
    states = [[engine.call("zeros_like", p) for p in mine] for _ in range(2)]
    count = [0]

    def call(name: str, *args: Any, **kwargs: Any) -> Any:
        return engine.call(name, *args, **kwargs)

    def split(z: Tensor) -> Tensor:
        return call("transpose", call("reshape", z, (b, t, heads, d // heads)), 1, 2)

    def step() -> None:
        p = mine
        qkv = call("linear", call("layer_norm", x, (d,), p[0], p[1]), p[2], p[3])
        q, k, v = (split(call("narrow", qkv, -1, i * d, d)) for i in range(3))
        seen = call("scaled_dot_product_attention", q, k, v, is_causal=True)
        h = call("add", x, call("linear", call("reshape", call("transpose", seen, 1, 2), (b, t, d)), p[4], p[5]))
        wide = call("gelu", call("linear", call("layer_norm", h, (d,), p[6], p[7]), p[8], p[9]))
        out = call("add", h, call("linear", wide, p[10], p[11]))
        loss = call("mean", call("mul", out, out))
        count[0] += 1
        _descend(engine, loss, mine, "adam_step", {
            "exp_avgs": states[0], "exp_avg_sqs": states[1], "max_exp_avg_sqs": [None] * len(mine), "lr": 1e-3,
            "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01, "step": float(count[0]),
            "amsgrad": False, "maximize": False, "decoupled_weight_decay": True,
        })  # fmt: skip

    def their_step() -> None:
        p = theirs
        optimizer.zero_grad()
        qkv = F.linear(F.layer_norm(y, (d,), p[0], p[1]), p[2], p[3])
        q, k, v = (z.reshape(b, t, heads, d // heads).transpose(1, 2) for z in qkv.split(d, -1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = y + F.linear(seen.transpose(1, 2).reshape(b, t, d), p[4], p[5])
        out = h + F.linear(F.gelu(F.linear(F.layer_norm(h, (d,), p[6], p[7]), p[8], p[9])), p[10], p[11])
        (out * out).mean().backward()
        optimizer.step()

    return step, their_step


def _descend(engine: Engine, loss: Tensor, params: list[Tensor], name: str, options: dict[str, Any]) -> None:
    """Backward, a step, and gradients let go."""
    engine.call("backward", [loss], [None])
    engine.call(name, params, **options)
    engine.call("zero_grad", params, True)


def page(bench: Bench) -> str:
    """The rows as Markdown, with the machine that they are from."""
    where = "the CPU (a trial of the program, no result)"
    if bench.device != "cpu":
        where = f"{torch.cuda.get_device_name(bench.device)}, CUDA {torch.version.cuda}"
    packages = ", ".join(f"{name} {_version(name)}" for name in ("cupy", "torch", "numpy"))
    lines = [
        "# On a GPU", "", f"{where}; {packages}; Python {platform.python_version()}.", "",
        "The engine without wire, op by op on its tape (steps by plan: frame by frame), against PyTorch eager in the",
        "same run. Medians; below 1 is faster than PyTorch. The range is that of single rounds.", "",
        "| work | gradwire | PyTorch | ratio | range |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name, mine, theirs, low, high in bench.rows:
        lines.append(
            f"| {name} | {mine * 1e3:.3f} ms | {theirs * 1e3:.3f} ms | {mine / theirs:.2f} | {low:.2f} to {high:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _version(name: str) -> str:
    for each in (name, f"{name}-cuda13x", f"{name}-cuda12x"):
        try:
            return version(each)
        except PackageNotFoundError:
            continue
    return "(absent)"
