"""Compiled kernels by family. Only the toolchain may import these modules, because they import Numba."""
