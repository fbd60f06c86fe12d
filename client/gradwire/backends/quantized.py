"""``torch.backends.quantized``: engines for quantized tensors, which gradwire lacks."""

engine = "none"
supported_engines = ["none"]
