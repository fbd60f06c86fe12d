"""Hand-written kernels: compiled ones for the CPU, CUDA ones for GPUs."""
