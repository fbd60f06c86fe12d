"""``torch.backends``: what of PyTorch's libraries there is, and the switches that programs set.

A switch keeps the value it is given. None of them changes a result: kernels are NumPy's and CuPy's, float32 is
computed in float32, and every op is deterministic but for scattered additions on a GPU.
"""

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
