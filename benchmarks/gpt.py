"""A small transformer: one pre-norm block, width 128, 4 heads, 64 tokens of context, batches of 8, AdamW.

Both sides write attention as matmuls and a softmax, as in teaching code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .report import Plan, Row
from .training import BATCHES, Training, contest

BATCH: Final = 8
CONTEXT: Final = 64
WIDTH: Final = 128
HEADS: Final = 4
VOCABULARY: Final = 96


def model_of(torch: Any) -> Any:
    """The language model as a module of this ``torch``."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("future", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1))
            self.before_attention = nn.LayerNorm(WIDTH)
            self.project = nn.Linear(WIDTH, 3 * WIDTH)
            self.merge = nn.Linear(WIDTH, WIDTH)
            self.before_mlp = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            joined = self.project(self.before_attention(x)).view(b, t, 3, HEADS, WIDTH // HEADS)
            q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
            scores = (q @ k.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
            attended = functional.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1) @ v
            x = x + self.merge(attended.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.mlp(self.before_mlp(x))

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.positions = nn.Embedding(CONTEXT, WIDTH)
            self.block = Block()
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            places = torch.arange(CONTEXT, device=tokens.device)
            return self.head(self.norm(self.block(self.tokens(tokens) + self.positions(places))))

    return Language()


def build(torch: Any) -> Training:
    """The model and its step, under torch or gradwire."""
    random = np.random.default_rng(0)
    text = torch.tensor(random.integers(0, VOCABULARY, (BATCHES * BATCH, CONTEXT + 1)))
    model = model_of(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(number: int) -> Any:
        at = number % BATCHES * BATCH
        rows = text[at : at + BATCH]
        optimizer.zero_grad()
        logits = model(rows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), rows[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


def run(plan: Plan) -> Iterator[Row]:
    """Against torch."""
    yield from contest("gpt", build, plan, one_thread=0.9, two_threads=1.0)
