"""The engine: sessions of tensors and their autograd graphs, on NumPy or CuPy."""
