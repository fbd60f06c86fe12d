"""``torch.backends``: what of PyTorch's libraries there is, and the switches that programs set.

A switch keeps the value it is given. One changes results: ``cuda.matmul.allow_tf32``, off as in PyTorch, lets a GPU
round float32 to TF32 in products of matrices. Every op is deterministic but for scattered additions on a GPU.
"""

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
