"""``torch.utils.model_zoo``: the older name of downloads by :mod:`torch.hub`."""

from __future__ import annotations

from typing import Any


def load_url(*args: Any, **kwargs: Any) -> Any:
    """``torch.hub.load_state_dict_from_url``."""
    from importlib import import_module

    return import_module("gradwire.hub").load_state_dict_from_url(*args, **kwargs)


def _download_url_to_file(*args: Any, **kwargs: Any) -> Any:
    from importlib import import_module

    return import_module("gradwire.hub").download_url_to_file(*args, **kwargs)
