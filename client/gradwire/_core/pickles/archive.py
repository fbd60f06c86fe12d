"""PyTorch's zip format, written: a pickle, and the bytes of each storage at a multiple of 64 bytes."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

ALIGNMENT: Final = 64
_HEADER: Final = 30
"""Bytes of a local header before the name."""
_FORM: Final = "3\n"


def write(
    f: str | os.PathLike[str] | IO[bytes], pickled: bytes, storages: Mapping[str, memoryview[Any] | bytes]
) -> None:
    """Write an archive.

    Args:
        f: a path, or a file that is opened for writing bytes.
        pickled: the object.
        storages: bytes of storages by their keys in the pickle.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            _write(file, Path(f).stem or "archive", pickled, storages)
    else:
        _write(f, "archive", pickled, storages)


def _write(file: IO[bytes], folder: str, pickled: bytes, storages: Mapping[str, memoryview[Any] | bytes]) -> None:
    number = hashlib.sha256(pickled)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, f"{folder}/data.pkl", pickled)
        _add(archive, f"{folder}/.format_version", b"1")
        _add(archive, f"{folder}/.storage_alignment", str(ALIGNMENT).encode())
        _add(archive, f"{folder}/byteorder", b"little")
        for key, data in storages.items():
            number.update(data)
            _add(archive, f"{folder}/data/{key}", data)
        _add(archive, f"{folder}/version", _FORM.encode())
        digits = f"{int.from_bytes(number.digest()[:16], 'big'):040d}"
        _add(archive, f"{folder}/.data/serialization_id", digits.encode())


def _add(archive: zipfile.ZipFile, name: str, data: memoryview[Any] | bytes) -> None:
    info = zipfile.ZipInfo(name)
    size = data.nbytes if isinstance(data, memoryview) else len(data)
    more = 20 if size >= zipfile.ZIP64_LIMIT else 0  # the sizes of large members stand before what is added here
    file: Any = archive.fp
    begin = file.tell() + _HEADER + len(name.encode()) + more + 4
    filling = -begin % ALIGNMENT
    info.extra = struct.pack("<2sH", b"FB", filling) + b"Z" * filling
    info.file_size = size
    with archive.open(info, "w", force_zip64=bool(more)) as member:
        member.write(data)
