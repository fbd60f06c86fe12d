"""``torch.ao.nn.quantized.modules``: the part of it that computes in floating point."""
