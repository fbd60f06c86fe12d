"""A small GPT reads the Python language reference, which comes with Python, letter by letter."""

import argparse
import math
from pydoc_data.topics import topics

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from numpy_weights import draw


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        self.norm2 = nn.LayerNorm(width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attend(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, width))
        thought: torch.Tensor = self.think(self.norm2(x))
        return x + thought


class GPT(nn.Module):
    def __init__(self, letters: int, context: int, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        x = self.letter(letters) + self.place(torch.arange(letters.shape[1], device=letters.device))
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(self.norm(x))
        return scores


def warm_then_cool(step: int, steps: int, warmup: int = 10) -> float:
    """The learning rate's factor: linear warm-up, cosine decay."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


@torch.no_grad()
def write(model: GPT, start: torch.Tensor, count: int, context: int) -> list[int]:
    """Continue ``start`` with the likeliest letter each time. No value is read before the end."""
    model.eval()
    letters = start
    for _ in range(count):
        following = model(letters[:, -context:])[:, -1].argmax(-1, keepdim=True)
        letters = torch.cat([letters, following], dim=1)
    written: list[int] = letters[0].tolist()
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=48)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = sorted(set(text))
    number = {letter: i for i, letter in enumerate(alphabet)}
    data = np.array([number[letter] for letter in text], dtype=np.int64)

    model = draw(GPT(len(alphabet), args.context), scale=0.5).to(device)
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warm_then_cool(step, args.steps))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(text):,} letters")

    random = np.random.default_rng(1)
    for step in range(1, args.steps + 1):
        starts = random.integers(0, len(data) - args.context - 1, args.batch)
        windows = torch.from_numpy(np.stack([data[s : s + args.context + 1] for s in starts])).to(device)
        logits = model(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(f"step {step} loss {loss.item():.8g}")

    start = torch.tensor([[number[letter] for letter in "The "]], device=device)
    print("".join(alphabet[i] for i in write(model, start, 60, args.context)))


if __name__ == "__main__":
    main()
