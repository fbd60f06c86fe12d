"""A small recurrent language model: two LSTM layers of width 128 over 35 tokens, batches of 20, SGD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .report import Plan, Row
from .training import BATCHES, Training, contest

BATCH: Final = 20
TOKENS: Final = 35
WIDTH: Final = 128
LAYERS: Final = 2
VOCABULARY: Final = 96


def build(torch: Any) -> Training:
    """The model and its step, under torch or gradwire."""
    nn = torch.nn

    class Language(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.memory = nn.LSTM(WIDTH, WIDTH, LAYERS)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            found, _ = self.memory(self.tokens(tokens))
            return self.head(found)

    random = np.random.default_rng(0)
    text = torch.tensor(random.integers(0, VOCABULARY, (TOKENS + 1, BATCHES * BATCH)))
    model = Language()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(number: int) -> Any:
        at = number % BATCHES * BATCH
        columns = text[:, at : at + BATCH]
        optimizer.zero_grad()
        logits = model(columns[:-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), columns[1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step)


def run(plan: Plan) -> Iterator[Row]:
    """Against torch."""
    yield from contest("lstm", build, plan, one_thread=1.2)
