"""``torch.nn.utils.convert_parameters``: PyTorch's path to names of ``vector.py``."""

from .vector import parameters_to_vector, vector_to_parameters

__all__ = ["parameters_to_vector", "vector_to_parameters"]
