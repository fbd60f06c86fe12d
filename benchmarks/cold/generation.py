"""Sampling from a GPT with a growing context: for the first time in a session and again, each token read or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch

import gradwire

from ..models.language import VOCABULARY
from ..report import Plan, Row, Target
from ..servers import Server, session
from ..timing import Figures, seconds

TOKENS: Final = 100
ROUNDS: Final = 5
"""Each with a session of its own, since only the first time is the first."""


def model(torch: Any) -> Any:
    """Four layers, width 128, four heads; any length up to the number of tokens sampled."""
    nn, functional = torch.nn, torch.nn.functional
    width, heads = 128, 4

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = self.project(self.norms[0](x)).view(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.merge(attended.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.norms[1](x))

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(TOKENS + 1, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.head = nn.Linear(width, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.blocks(self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))))

    return Language().eval()


def sample(torch: Any, model: Any, tokens: int, reads: bool) -> list[int]:
    """The likeliest token, again and again."""
    context = torch.zeros((1, 1), dtype=torch.int64)
    with torch.no_grad():
        for _ in range(tokens):
            chosen = model(context)[:, -1].argmax(1, keepdim=True)
            if reads:
                chosen.item()
            context = torch.cat([context, chosen], 1)
    return [int(token) for token in context[0].tolist()]


def rows(plan: Plan, server: Server) -> Iterator[Row]:
    """For each way: the first time and the second beside torch, and the second over the first."""
    tokens, rounds = plan.of(TOKENS, 3), plan.of(min(plan.rounds, ROUNDS), 1)
    torch.manual_seed(0)
    local = model(torch)
    sample(torch, local, tokens, False)
    for reads in (False, True):
        first: list[float] = []
        second: list[float] = []
        theirs: list[float] = []
        for _ in range(rounds):
            with session(server):
                remote = model(gradwire)
                weights = {name: gradwire.tensor(value.numpy()) for name, value in local.state_dict().items()}
                remote.load_state_dict(weights)
                made: list[list[int]] = []

                def timed(side: Any, which: Any) -> float:
                    took = seconds(lambda: made.append(sample(side, which, tokens, reads)))  # noqa: B023
                    return took / tokens * 1e3

                first.append(timed(gradwire, remote))
                second.append(timed(gradwire, remote))
                theirs.append(timed(torch, local))
                assert np.mean(np.array(made[0]) == made[2]) > 0.9, "other tokens were sampled"
        how = "each read" if reads else "read at the end"
        ours = Figures(tuple(first)), Figures(tuple(second))
        for name, figures in zip(("first", "second"), ours, strict=True):
            case = f"sampling {tokens} tokens, {how}, the {name} time"
            yield Row("cold", case, "ms/token", figures, Figures(tuple(theirs)), Target(2.0, of="ratio"))
        again = Figures(tuple(b / a for a, b in zip(first, second, strict=True)))
        yield Row("cold", f"sampling, {how}: second time / first", "x", again, None, Target(1.0))
