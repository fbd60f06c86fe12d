"""Compiled kernels by family. The toolchain imports every module here; nothing else may, since they import Numba."""
