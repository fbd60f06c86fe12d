"""``torch.nn.modules.lazy``: modules whose shapes are not known at first."""

from ..lazy import LazyModuleMixin

__all__ = [
    "LazyModuleMixin",
]  # fmt: skip
