"""``PyTorchFileReader``: the records of a file of ``torch.save``, as bytes. Nothing is unpickled."""

from __future__ import annotations

import os
import zipfile
from typing import IO, Any

from gradwire_protocol.dtypes import DType, uint8
from gradwire_protocol.errors import ArgumentError

from ..surface.interchange import frombuffer
from ..tensor.tensor import Tensor


class PyTorchFileReader:
    """The records of a file in PyTorch's zip format: ``data.pkl``, ``data/0``, ...

    Args:
        name_or_buffer: a path, or an open file.

    Raises:
        ArgumentError: if there is no such file, or it is no zip archive.
    """

    def __init__(self, name_or_buffer: str | os.PathLike[str] | IO[bytes]) -> None:
        try:
            self._archive = zipfile.ZipFile(name_or_buffer)
        except (OSError, zipfile.BadZipFile) as error:
            raise ArgumentError(f"PyTorchFileReader: {error}") from None
        self._sizes = {
            info.filename.partition("/")[2]: info for info in self._archive.infolist() if "/" in info.filename
        }

    def _info(self, name: str) -> zipfile.ZipInfo:
        if name not in self._sizes:
            raise ArgumentError(f"PyTorchFileReader: there is no record {name!r:.100}")
        return self._sizes[name]

    def get_all_records(self) -> list[str]:
        """The names of the records."""
        return list(self._sizes)

    def has_record(self, name: str) -> bool:
        """Whether there is a record with a name."""
        return name in self._sizes

    def get_record(self, name: str) -> bytes:
        """A record's bytes."""
        return self._archive.read(self._info(name))

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._info(name).file_size

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """An empty tensor whose storage has a record's first ``numel`` elements: bytes if ``dtype`` is no dtype."""
        kind = dtype if isinstance(dtype, DType) else uint8
        data = bytearray(self.get_record(name)[: numel * kind.itemsize])
        made: Tensor = frombuffer(data, dtype=kind)[:0]
        return made

    def serialization_id(self) -> str:
        """What the writer derived from the records' names and sums; empty if it wrote none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if name in self._sizes else ""
