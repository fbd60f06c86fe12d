"""``torch.backends.cpu``."""


def get_cpu_capability() -> str:
    """Whose kernels' results the CPU's follow: PyTorch's for AVX2, whatever processor the server has.

    Libraries ask in order to know how images of bytes are resized. Here, as in those kernels, ``interpolate`` computes
    with bytes and weights of 16 bits; elsewhere PyTorch goes through float32, which rounds some pixels otherwise.
    """
    return "AVX2"
