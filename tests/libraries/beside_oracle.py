"""Lets torchvision's wheel for CUDA be imported beside PyTorch's wheel for CPUs. Installed as ``sitecustomize`` in the
folder of the oracle: gradwire never sees it.

PyPI has one wheel of torchvision, whose extension is linked against CUDA. Beside a CPU build of PyTorch it does not
load, and torchvision then stops at its declarations for operators that the extension would have defined. Here they are
defined without kernels: torchvision can be imported, and a program that calls one gets an error.
"""

import importlib.util
import os


def declare() -> None:
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return
    import torch

    try:
        torch.ops.load_library(os.path.join(os.path.dirname(found.origin), "_C.so"))
    except OSError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


declare()
