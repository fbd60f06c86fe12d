"""Epochs in an object store: downloaded to a scratch folder, uploaded again as a new epoch."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..manifest import MANIFEST
from ..records import damaged
from .epochs import Place, Vanished, epoch_prefix
from .mirrored_disk import PART, MirroredDisk, Segment, covering, is_journal
from .object_storage import ObjectStorage


class MirroredEpochs:
    """The epochs of one session.

    Args:
        scratch: the parent of scratch folders; only this process uses it.
    """

    def __init__(self, storage: ObjectStorage, session_id: str, scratch: Path) -> None:
        self._storage = storage
        self._session_id = session_id
        self._folder = scratch / session_id
        self._source = 0
        self._disk = MirroredDisk(storage)

    def fresh(self, epoch: int) -> Place:
        self.leave()
        self._source = 0
        self._disk = MirroredDisk(self._storage)
        self._folder.mkdir(mode=0o700, parents=True)
        return Place(self._folder, self._disk)

    def take_over(self, source: int, epoch: int) -> Place:
        place = self.fresh(epoch)
        self._source = source
        prefix = epoch_prefix(self._session_id, source)
        # The manifest comes first, because it must not know of more than the journals.
        manifest = self._storage.get(prefix + MANIFEST)
        if manifest is None:
            raise damaged(self._folder / MANIFEST, 0, "the object is missing")
        (self._folder / MANIFEST).write_bytes(manifest)
        segments: dict[str, list[str]] = defaultdict(list)
        for key in self._storage.keys(prefix):
            name, _, segment = key.removeprefix(prefix).partition("/")
            if segment:
                segments[name].append(segment)
            elif name != MANIFEST:
                self._download(key, self._folder / name)
        for name, found in segments.items():
            with open(self._folder / name, "xb") as file:
                for each in covering(found):
                    data = self._storage.get(f"{prefix}{name}/{each.name}")
                    if data is None:
                        raise Vanished
                    if len(data) != each.end - each.start:
                        raise damaged(self._folder / name, each.start, f"the object {each.name} has {len(data)} bytes")
                    file.write(data)
        return place

    def _download(self, key: str, path: Path) -> None:
        data = self._storage.get(key)
        if data is None:
            raise Vanished
        path.write_bytes(data)

    def settle(self, epoch: int) -> None:
        new, old = epoch_prefix(self._session_id, epoch), epoch_prefix(self._session_id, self._source)
        journals: dict[str, int] = {}
        for path in sorted(self._folder.iterdir()):
            if path.name.endswith(PART):
                continue
            if is_journal(path.name):
                journals[path.name] = size = path.stat().st_size
                self._storage.put(f"{new}{path.name}/{Segment(0, size).name}", path)
            elif not (path.name.startswith("snapshot-") and self._source and self._copied(old, new, path.name)):
                self._storage.put(new + path.name, path)
        self._disk.mirror(new, journals)

    def _copied(self, old: str, new: str, name: str) -> bool:
        """Copy a snapshot inside the store; its name has its digest. Returns False if the store has it no more."""
        with suppress(FileNotFoundError):
            self._storage.copy(old + name, new + name)
            return True
        return False

    def tidy(self, check: Callable[[], None]) -> None:
        self._disk.merge(self._folder, check)

    def leave(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
