"""PyTorch's two file formats: a zip archive, and, before version 1.6, a sequence of pickles."""

from __future__ import annotations

import io
import pickletools
import zipfile
from typing import IO, Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType

from .allowed import Storage, StorageType, allowed
from .machine import Machine, RefusedPickle

_MAGIC: Final = 0x1950A86A20F9469CFC6C
_FORM: Final = 1001


def read(stream: IO[bytes]) -> Any:
    """The object of a file: containers, numbers and strings, with a :class:`~.allowed.StoredTensor` for each tensor.

    Args:
        stream: a seekable binary stream at the file's beginning.

    Raises:
        RefusedPickle: if the file uses a name that is not allowed, or is damaged.
    """
    start = stream.tell()
    if zipfile.is_zipfile(stream):
        stream.seek(start)
        return _archive(stream)
    stream.seek(start)
    return _in_sequence(stream)


def names_in(stream: IO[bytes]) -> list[str]:
    """The names that the pickle of a zip archive mentions, as ``"module name"``, each once.

    Raises:
        RefusedPickle: if the file is no such archive, or is damaged.
    """
    if not zipfile.is_zipfile(stream):
        raise RefusedPickle("names are listed of PyTorch's zip format, which this file has not")
    stream.seek(0)
    found: dict[str, None] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            pickled = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            texts: list[str] = []
            for opcode, argument, _ in pickletools.genops(_member(archive, pickled)):
                if opcode.name == "GLOBAL":
                    found[str(argument)] = None
                elif opcode.name == "STACK_GLOBAL":
                    found[" ".join(texts[-2:])] = None
                elif isinstance(argument, str):
                    texts.append(argument)
    except (zipfile.BadZipFile, StopIteration, KeyError, ValueError, EOFError) as error:
        raise RefusedPickle(f"the file is damaged: {error}") from None
    return list(found)


class _Storages:
    """The storages of a pickle, each created once."""

    def __init__(self) -> None:
        self.by_key: dict[str, Storage] = {}

    def __call__(self, identity: Any) -> Storage:
        if not isinstance(identity, tuple) or len(identity) < 5 or identity[0] != "storage":
            raise RefusedPickle(f"the file refers to {identity!r:.60}, which is no storage")
        _, kind, key, location, _, *view = identity
        if not isinstance(kind, StorageType) or (view and view[0] is not None):
            raise RefusedPickle(f"the file refers to a storage of an unknown kind: {identity!r:.80}")
        if key not in self.by_key:
            self.by_key[key] = Storage(str(key), kind.dtype, str(location))
        return self.by_key[key]


def _archive(stream: IO[bytes]) -> Any:
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            pickles = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
            if len(pickles) != 1:
                raise RefusedPickle("this zip archive is no file of torch.save: it has no data.pkl")
            folder = pickles[0].removesuffix("data.pkl")
            if f"{folder}constants.pkl" in names:
                raise RefusedPickle("this is a TorchScript archive, which holds code: gradwire reads none")
            storages = _Storages()
            found = Machine(allowed(), storages).read(io.BytesIO(_member(archive, pickles[0])))
            order = f"{folder}byteorder"
            swapped = order in names and _member(archive, order).strip() == b"big"
            for storage in storages.by_key.values():
                data = _member(archive, f"{folder}data/{storage.key}")
                storage.data = _turned(data, storage.dtype) if swapped else data
            return found
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise RefusedPickle(f"the file is damaged: {error}") from None


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise RefusedPickle(f"{name} is compressed, which torch.save never does")
    return archive.read(name)


def _turned(data: bytes, dtype: DType | None) -> bytes:
    """The elements in little-endian order."""
    if dtype is None:
        raise RefusedPickle("the file has untyped storages in big-endian order")
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    return data if size == 1 else np.frombuffer(data, f">u{size}").astype(f"<u{size}").tobytes()


def _in_sequence(stream: IO[bytes]) -> Any:
    plain = Machine({}, _Storages())
    if plain.read(stream) != _MAGIC:
        raise RefusedPickle("this pickle was not written by torch.save")
    form, system = plain.read(stream), plain.read(stream)
    if form != _FORM or not isinstance(system, dict) or not system.get("little_endian", True):
        raise RefusedPickle(f"the file is of the form {form!r:.20}, or of a big-endian machine")
    storages = _Storages()
    found = Machine(allowed(), storages).read(stream)
    for key in plain.read(stream):
        storage = storages.by_key.get(key)
        if storage is None:
            raise RefusedPickle(f"the file has a storage {key!r:.40} that nothing mentions")
        count = int.from_bytes(stream.read(8), "little", signed=True)
        size = max(count, 0) * (1 if storage.dtype is None else storage.dtype.itemsize)
        storage.data = stream.read(size)
        if len(storage.data) != size:
            raise RefusedPickle("the file ends too early")
    return found
