"""Write scikit-learn's handwritten digits and initial weights of a small network as a frame that uploads them.

    python examples/digits_data.py digits.json

The programs in ``examples/languages`` send the file as it is to ``POST /v1/sessions/{id}/frames``. It names the
tensors ``train_x`` (1,344 images of 64 pixels), ``train_y`` (their labels), ``test_x``, ``test_y``, and ``w1``, ``b1``,
``w2``, ``b2``: two linear layers, 64 to 32 to 10, that start as PyTorch's do. Needs scikit-learn.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TRAIN, INPUTS, HIDDEN, CLASSES = 1344, 64, 32, 10


def digits_frame() -> dict[str, object]:
    """The frame, always the same."""
    random = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    order = random.permutation(len(images))
    images, labels = images[order] / 16.0, labels[order]
    tensors = {
        "train_x": images[:TRAIN], "train_y": labels[:TRAIN], "test_x": images[TRAIN:], "test_y": labels[TRAIN:],
    }  # fmt: skip
    for layer, (inputs, outputs) in enumerate([(INPUTS, HIDDEN), (HIDDEN, CLASSES)], start=1):
        bound = inputs**-0.5
        tensors[f"w{layer}"] = random.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)
        tensors[f"b{layer}"] = random.uniform(-bound, bound, outputs).astype(np.float32)
    return {"ops": [{"op": "upload", "data": data.tolist(), "as": name} for name, data in tensors.items()]}


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "digits.json")
    path.write_text(json.dumps(digits_frame()), encoding="utf-8")
    print(f"{path}: {path.stat().st_size:,} bytes")
