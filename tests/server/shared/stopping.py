"""Directories whose users are stopped, or end, between two operations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from tests.server.test_compaction import Crash


class StoppingStorage(DirectoryStorage):
    """Calls a function before each exclusive creation, for what others do while its caller is stopped there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.before_create: Callable[[str], None] = lambda key: None

    def create(self, key: str, data: bytes) -> bool:
        self.before_create(key)
        return super().create(key, data)


class CrashingStorage(DirectoryStorage):
    """The process ends at its n-th operation."""

    def __init__(self, root: Path, last: int) -> None:
        super().__init__(root)
        self.left = last

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def create(self, key: str, data: bytes) -> bool:
        self._count()
        return super().create(key, data)

    def put(self, key: str, data: Any) -> None:
        self._count()
        super().put(key, data)

    def delete(self, *keys: str) -> None:
        for key in keys:
            self._count()
            super().delete(key)
