"""``torch.backends.mkl``."""


def is_available() -> bool:
    """Whether gradwire itself is linked to MKL: it is not, NumPy on the server may be."""
    return False
