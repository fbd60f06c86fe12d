"""Draw the autograd graph of a small network's loss: the nodes that backward will visit, and what they save.

The graph is on the server that ``GRADWIRE_URL`` (and ``GRADWIRE_API_KEY``) name, or on an embedded one. In a notebook,
``viz.graph(loss)`` at the end of a cell shows the drawing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import gradwire as torch
from gradwire import nn, viz


def main() -> int:
    """Write the drawing and print a summary."""
    parser = argparse.ArgumentParser(description="Draw the autograd graph of a small network's loss.")
    parser.add_argument("out", nargs="?", type=Path, default=Path("loss.svg"), help="the SVG file to write")
    parser.add_argument("--theme", choices=("auto", "light", "dark"), default="auto")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    images, labels = torch.randn(128, 784), torch.randint(0, 10, (128,))
    logits = model(images)
    loss = nn.functional.cross_entropy(logits, labels)

    names = dict(model.named_parameters()) | {"logits": logits, "loss": loss}
    drawing = viz.graph(loss, params=names, theme=options.theme)
    drawing.save(options.out)
    print(drawing)

    session = torch.current_session()
    before = session.memory()["saved_bytes"]
    loss.backward()
    after = session.memory()["saved_bytes"]
    print(f"kept for backward: {before:,} bytes before it, {after:,} after it")
    print(f"written: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
