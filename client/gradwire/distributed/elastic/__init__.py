"""``torch.distributed.elastic``: what programs that a launcher starts import of it."""
