"""``torch.storage``: the classes of storages."""

from __future__ import annotations

import io
from typing import Any

from ._core.surface.storages import UntypedStorage
from ._core.surface.typed_storages import LegacyType as _LegacyStorageMeta  # noqa: F401  (PyTorch's name)
from ._core.surface.typed_storages import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """The storage that plain pickles keep as the bytes of a file of ``torch.save``."""
    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)
