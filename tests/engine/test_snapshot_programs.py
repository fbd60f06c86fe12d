"""Programs with a snapshot and restore at every frame answer the same to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import gradwire as torch
from tests.client import test_hooks_in_random_graphs as hooks
from tests.client import test_random_view_programs as views
from tests.engine.recordings import Recording, cut_everywhere, digest, little_to_collect, new_session, record


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    with little_to_collect():
        yield


def mlp(optimizer: str) -> None:
    """A small network with dropout, four steps."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3)
    )
    optim = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05)
    x, y = torch.randn(12, 6), torch.randint(0, 3, (12,))
    for _ in range(4):
        optim.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optim.step()
        loss.item()
    model.eval()
    model(x).tolist()


def cnn() -> None:
    torch.manual_seed(2)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(64, 5),
    )  # fmt: skip
    optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    x, y = torch.randn(5, 1, 8, 8), torch.arange(5)
    for _ in range(3):
        optim.zero_grad(set_to_none=False)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optim.step()
    [p.tolist() for p in model.parameters()]


def block_with_checkpoint() -> None:
    """Attention, layer norm and a checkpointed feed-forward part, with values read between forward and backward."""
    from gradwire.utils.checkpoint import checkpoint

    torch.manual_seed(3)
    nn = torch.nn
    attention = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True)
    feed = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 8))
    optim = torch.optim.AdamW([*attention.parameters(), *feed.parameters()], lr=0.01)
    x = torch.randn(2, 5, 8)
    for _ in range(3):
        optim.zero_grad()
        mixed, _ = attention(x, x, x, need_weights=False)
        mixed.sum().item()
        out = checkpoint(feed, x + mixed, use_reentrant=False)
        out.mean().item()
        loss = out.square().mean()
        loss.item()
        loss.backward()
        optim.step()
    feed[1].weight.tolist()


def function_and_hooks() -> None:
    """A custom Function and hooks, with reads inside of callbacks: backward is suspended there."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            x.sum().item()
            return 3 * x * x * grad

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = Cube.apply(x * 2)
    y.sum().item()
    middle = y * x
    middle.retain_grad()
    middle.register_hook(lambda grad: grad * grad.sum().item())
    middle.sum().item()
    middle.sum().backward(create_graph=True)
    x.grad.tolist()
    middle.grad.tolist()
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    second.tolist()


def failures() -> None:
    """What fails at the server: poisoned results, writes that did not come about, a backward, and what came after."""
    x = torch.ones(3, requires_grad=True)
    counts = torch.tensor([1, 0, 2])
    optim = torch.optim.SGD([x], lr=0.5)
    for step in range(3):
        broken = torch.tensor([4, 4, 4]) // counts
        later = broken + 1
        kept = torch.tensor([8, 8, 8])
        kept //= counts
        torch.linalg.cholesky(x.detach().diag() * -1)
        if step:
            (x.diag().neg().logdet() * 0 + torch.linalg.inv((x * 0).diag()).sum()).backward()
            optim.step()
        for read in (later.tolist, kept.tolist, lambda: x.grad and x.grad.tolist(), kept.tolist, x.tolist):
            try:
                read()
            except (RuntimeError, ZeroDivisionError):
                pass
        (x * x).sum().backward()
        optim.step()
        x.tolist()


def random_numbers() -> None:
    torch.manual_seed(2**63 + 11)
    state = torch.get_rng_state()
    for make in (torch.rand, torch.randn):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
            make(7, dtype=dtype).tolist()
    torch.randperm(9).tolist()
    torch.bernoulli(torch.full((20,), 0.3)).tolist()
    torch.set_rng_state(state)
    torch.rand(3).tolist()
    torch.distributions.Gamma(torch.tensor(0.7), torch.tensor(2.0)).sample((5,)).tolist()
    torch.multinomial(torch.tensor([0.2, 0.5, 0.3]), 2).tolist()


def uploads() -> None:
    """Data that travels in chunks, names, data of its own version, other dtypes, a default dtype."""
    large = torch.from_numpy(np.arange(700_000, dtype=np.float32))
    large[3:9].tolist()
    x = torch.ones(2, 2, requires_grad=True)
    y = x * x
    x.data.mul_(2)
    y.sum().item()
    y.sum().backward()
    x.grad.tolist()
    torch.set_default_dtype(torch.float64)
    try:
        torch.ones(2).tolist()
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.inference_mode():
        kept = torch.ones(3) * 2
        kept.tolist()
    kept.sum().item()
    (x.t().to(torch.bfloat16) @ x.to(torch.bfloat16)).tolist()
    z = torch.complex(x, x.detach())
    torch.view_as_real(z)[..., 0].mul(3).tolist()


PROGRAMS = {
    "sgd": lambda: mlp("SGD"), "adam": lambda: mlp("Adam"), "adamw": lambda: mlp("AdamW"), "cnn": cnn,
    "checkpoint": block_with_checkpoint, "function and hooks": function_and_hooks, "failures": failures,
    "random numbers": random_numbers, "uploads": uploads,
}  # fmt: skip
SUSPENDS = {"function and hooks"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_cut_at_every_frame_goes_on_bit_by_bit(name):
    recorded = record(PROGRAMS[name])
    cuts, refused = cut_everywhere(recorded)
    assert cuts > 3
    assert bool(refused) == (name in SUSPENDS)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_program_of_views_that_is_cut_at_every_frame_goes_on_bit_by_bit(seed):
    steps, kind = views.program(seed)
    cuts, refused = cut_everywhere(record(lambda: views.outcome(torch, steps, kind)))
    assert cuts and not refused


@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph_with_hooks_that_is_cut_at_every_frame_goes_on_bit_by_bit(seed):
    cuts, _ = cut_everywhere(record(lambda: hooks.program(torch, seed)))
    assert cuts


def _replayed_elsewhere(recorded: Recording, folder: Path, hash_seed: str) -> str:
    file = folder / "recording"
    file.write_bytes(msgspec.msgpack.encode((recorded.messages, recorded.client)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.recordings", str(file)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, timeout=400, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_replay_in_another_process_gives_the_same_answers(tmp_path):
    together = Recording()
    for name in ("adamw", "checkpoint", "function and hooks", "failures", "random numbers"):
        recorded = record(PROGRAMS[name])
        offset = recorded.client
        assert offset == 2
        assert digest(recorded.replayed(new_session())) == digest(recorded.replayed(new_session()))
        together = recorded if not together.messages else together
    expected = digest(together.replayed(new_session()))
    assert _replayed_elsewhere(together, tmp_path, "1") == expected == _replayed_elsewhere(together, tmp_path, "77")
