"""A recurrent language model learns, word by word, the licenses that come with NumPy."""

import argparse
import re
from collections import Counter
from importlib.metadata import files

import numpy as np
import numpy.typing as npt
import torch
from numpy_weights import draw
from torch import nn

State = tuple[torch.Tensor, torch.Tensor]


class WordModel(nn.Module):
    def __init__(self, words: int, width: int = 48, hidden: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden, words)

    def forward(self, words: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
        seen, state = self.lstm(self.embedding(words), state)
        return self.head(seen), state


def licence_words(most: int = 400) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The words of all license files, rare ones as <other>, and the vocabulary."""
    texts = [f.read_text() for f in files("numpy") or () if "licenses" in f.parts]
    words = re.findall(r"[a-z]+|[.,;:()]", "\n".join(texts).lower())
    vocabulary = ["<other>", *(word for word, _ in Counter(words).most_common(most - 1))]
    number = {word: i for i, word in enumerate(vocabulary)}
    return np.array([number.get(word, 0) for word in words], dtype=np.int64), vocabulary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=20)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    words, vocabulary = licence_words()
    columns = torch.from_numpy(words[: len(words) // args.batch * args.batch].reshape(args.batch, -1)).to(device)
    model = draw(WordModel(len(vocabulary))).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()

    state: State | None = None
    at, nats = 0, 0.0
    for step in range(1, args.steps + 1):
        if at + args.length + 1 > columns.shape[1]:
            state, at = None, 0
        inputs, targets = columns[:, at : at + args.length], columns[:, at + 1 : at + args.length + 1]
        at += args.length
        logits, state = model(inputs, state)
        loss = criterion(logits.transpose(1, 2), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        state = state[0].detach(), state[1].detach()
        nats = loss.item()
        print(f"step {step} loss {nats:.8g}")

    print(f"perplexity {np.exp(nats):.1f} of {len(vocabulary)} words")


if __name__ == "__main__":
    main()
