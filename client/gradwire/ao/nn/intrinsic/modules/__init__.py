"""``torch.ao.nn.intrinsic.modules``: layers in a row."""
