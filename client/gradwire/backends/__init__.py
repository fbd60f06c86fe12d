"""``torch.backends``: the available libraries of PyTorch, and the settings that programs change.

Settings keep their values. One changes results: ``cuda.matmul.allow_tf32``, off as in PyTorch, lets a GPU round
float32 to TF32 in matrix products. Every op is deterministic except scattered additions on a GPU.
"""

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]
