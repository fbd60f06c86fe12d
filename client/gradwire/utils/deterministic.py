"""``torch.utils.deterministic``."""

fill_uninitialized_memory = True
"""Without effect: ``empty`` returns zeros, whatever is set."""

__all__ = ["fill_uninitialized_memory"]
