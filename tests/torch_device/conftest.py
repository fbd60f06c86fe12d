"""The tests of the device run in processes of their own, since registering it changes PyTorch, the others' oracle.

``make test`` runs them after the others; ``pytest tests/torch_device`` runs them alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave them out unless the command names them and nothing else."""
    return None if all(Path(__file__).parent.name in argument for argument in config.args) else True
