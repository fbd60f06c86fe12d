"""``torch.backends.cpu``."""


def get_cpu_capability() -> str:
    """What NumPy was compiled for is its own affair, and the server's."""
    return "DEFAULT"
