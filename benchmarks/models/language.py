"""Language models: a transformer of four layers, PyTorch's own encoder with dropout, an LSTM over characters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..training import BATCHES, Build, Training

VOCABULARY: Final = 96


def gpt(torch: Any) -> Training:
    """Four layers, width 256, 8 heads, batches of 8 x 128 tokens, AdamW; ``scaled_dot_product_attention``."""
    nn, functional = torch.nn, torch.nn.functional
    batch, context, width, heads = 8, 128, 256, 8

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before_attention = nn.LayerNorm(width)
            self.project = nn.Linear(width, 3 * width)
            self.merge = nn.Linear(width, width)
            self.before_mlp = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            joined = self.project(self.before_attention(x)).view(b, t, 3, heads, width // heads)
            q, k, v = joined.permute(2, 0, 3, 1, 4).unbind(0)
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.merge(attended.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.before_mlp(x))

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, width)
            self.positions = nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            places = torch.arange(context)
            return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(places))))

    model = Language()
    return _predicting(torch, model, torch.optim.AdamW(model.parameters(), lr=1e-3), batch, context)


def encoder(torch: Any) -> Training:
    """PyTorch's encoder as it stands in its tutorials: two layers, width 200, dropout 0.2, SGD with clipping."""
    nn = torch.nn
    batch, context, width = 20, 35, 200

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, width)
            layer = nn.TransformerEncoderLayer(width, 2, 200, 0.2, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(width, VOCABULARY)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(context))

        def forward(self, tokens: Any) -> Any:
            return self.head(self.encoder(self.tokens(tokens) * width**0.5, self.mask))

    model = Language()
    return _predicting(torch, model, torch.optim.SGD(model.parameters(), lr=0.1), batch, context, clip=0.5)


def characters(torch: Any) -> Training:
    """An LSTM of two layers, 256 wide, over 32 x 64 characters, Adam."""
    nn = torch.nn
    batch, context, width = 32, 64, 256

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, 64)
            self.layers = nn.LSTM(64, width, 2, batch_first=True)
            self.head = nn.Linear(width, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.layers(self.tokens(tokens))[0])

    model = Language()
    return _predicting(torch, model, torch.optim.Adam(model.parameters(), lr=2e-3), batch, context)


def _predicting(
    torch: Any, model: Any, optimizer: Any, batch: int, context: int, clip: float | None = None
) -> Training:
    """Trains the model to predict the next token of random text."""
    random = np.random.default_rng(0)
    text = torch.tensor(random.integers(0, VOCABULARY, (BATCHES * batch, context + 1)))

    def step(number: int) -> Any:
        at = number % BATCHES * batch
        rows = text[at : at + batch]
        optimizer.zero_grad()
        logits = model(rows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), rows[:, 1:].reshape(-1))
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss

    return Training(model, step)


MODELS: Final[dict[str, Build]] = {"GPT": gpt, "TransformerEncoder": encoder, "character LSTM": characters}
