"""A small transformer: one pre-norm block, width 128, 4 heads, 64 tokens of context, batches of 8, AdamW.

Both sides write attention as matmuls and a softmax, as in teaching code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .report import Plan, Row
from .training import BATCHES, Training, contest

HEADS: Final = 4
VOCABULARY: Final = 96


@dataclass(frozen=True)
class Size:
    """Of the model and its batches."""

    batch: int = 8
    context: int = 64
    width: int = 128


def model_of(torch: Any, size: Size) -> Any:
    """The language model as a module of this ``torch``."""
    context, width = size.context, size.width
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("future", torch.ones(context, context, dtype=torch.bool).triu(1))
            self.before_attention = nn.LayerNorm(width)
            self.project = nn.Linear(width, 3 * width)
            self.merge = nn.Linear(width, width)
            self.before_mlp = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            joined = self.project(self.before_attention(x)).view(b, t, 3, HEADS, width // HEADS)
            q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
            scores = (q @ k.transpose(-2, -1)) * (width // HEADS) ** -0.5
            attended = functional.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1) @ v
            x = x + self.merge(attended.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.before_mlp(x))

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, width)
            self.positions = nn.Embedding(context, width)
            self.block = Block()
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            places = torch.arange(context, device=tokens.device)
            return self.head(self.norm(self.block(self.tokens(tokens) + self.positions(places))))

    return Language()


def build(torch: Any, size: Size = Size()) -> Training:
    """The model and its step, under torch or gradwire."""
    batch = size.batch
    random = np.random.default_rng(0)
    text = torch.tensor(random.integers(0, VOCABULARY, (BATCHES * batch, size.context + 1)))
    model = model_of(torch, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(number: int) -> Any:
        at = number % BATCHES * batch
        rows = text[at : at + batch]
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
