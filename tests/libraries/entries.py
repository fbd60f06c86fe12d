"""The libraries, and how near their results must be to those with PyTorch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAMS: Final = Path(__file__).parent / "programs"
FLOAT32: Final = 1e-4
FLOAT64: Final = 1e-8


@dataclass(frozen=True)
class Entry:
    """A library, or a part of one.

    Attributes:
        name: of the program, ``programs/with_<name>.py``.
        package: its name on PyPI.
        part: what of it the program uses, where a package has several entries.
        tolerance: how far a result may be from PyTorch's, relative to the result, or absolute if that is below 1.
        also: further packages that the program imports.
    """

    name: str
    package: str
    part: str = ""
    tolerance: float = FLOAT32
    also: tuple[str, ...] = ()

    @property
    def program(self) -> Path:
        return PROGRAMS / f"with_{self.name}.py"

    @property
    def shown(self) -> str:
        return f"{self.package}: {self.part}" if self.part else self.package

    @property
    def does(self) -> str:
        """What the program does, in its own words."""
        told = ast.get_docstring(ast.parse(self.program.read_text(encoding="utf-8"))) or ""
        return " ".join(told.split())


_ALL: Final = (
    Entry("torchvision", "torchvision"),
    Entry("timm", "timm"),
    Entry("transformers_gpt2", "transformers", "GPT-2"),
    Entry("transformers_bert", "transformers", "BERT"),
    Entry("transformers_llama", "transformers", "Llama"),
    Entry("transformers_t5", "transformers", "T5"),
    Entry("transformers_vit", "transformers", "ViT"),
    Entry("transformers_generate", "transformers", "generate"),
    Entry("transformers_trainer", "transformers", "Trainer", also=("accelerate",)),
    Entry("transformers_save_pretrained", "transformers", "save_pretrained"),
    Entry("accelerate", "accelerate"),
    Entry("peft", "peft"),
    Entry("safetensors", "safetensors"),
    Entry("lightning", "lightning"),
    Entry("torchmetrics", "torchmetrics"),
    Entry("gpytorch", "gpytorch", tolerance=FLOAT64),
    Entry("botorch", "botorch", tolerance=1e-5),
    Entry("linear_operator", "linear_operator", tolerance=FLOAT64),
    Entry("pyro", "pyro-ppl"),
    Entry("x_transformers", "x-transformers"),
    Entry("captum", "captum"),
    Entry("neuralop", "neuraloperator"),
    Entry("torch_geometric", "torch_geometric"),
    Entry("kornia", "kornia"),
    Entry("monai", "monai"),
    Entry("open_clip", "open_clip_torch"),
    Entry("ignite", "pytorch-ignite"),
    Entry("tensordict", "tensordict"),
    Entry("torchrl", "torchrl"),
    Entry("diffusers", "diffusers"),
    Entry("sentence_transformers", "sentence-transformers"),
    Entry("zuko", "zuko"),
    Entry("e3nn", "e3nn", tolerance=FLOAT64),
    Entry("segmentation_models", "segmentation-models-pytorch"),
    Entry("denoising_diffusion", "denoising-diffusion-pytorch"),
    Entry("lpips", "lpips"),
    Entry("torchinfo", "torchinfo"),
    Entry("ema_pytorch", "ema-pytorch"),
    Entry("skorch", "skorch"),
    Entry("torchdiffeq", "torchdiffeq", tolerance=FLOAT64),
    Entry("einops", "einops"),
    Entry("pytorch_metric_learning", "pytorch-metric-learning"),
    Entry("nflows", "nflows", tolerance=1e-6),
    Entry("torchsde", "torchsde", tolerance=FLOAT64),
    Entry("vector_quantize", "vector-quantize-pytorch"),
    Entry("rotary_embedding", "rotary-embedding-torch"),
    Entry("stable_baselines3", "stable-baselines3"),
)
ENTRIES: Final = {entry.name: entry for entry in _ALL}


def packages() -> list[str]:
    """What is installed from PyPI."""
    return sorted({package for entry in _ALL for package in (entry.package, *entry.also)})
