"""``save`` and ``load``: files of tensors and of what holds them, in PyTorch's format or as safetensors."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from enum import Enum
from typing import IO, Any, Final, TypeAlias

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, Unsupported

from ._core.context.size import device
from ._core.surface.generator import Generator
from ._core.surface.global_settings import get_default_device
from ._core.surface.storages import UntypedStorage
from ._core.surface.typed_storages import LegacyType, TypedStorage
from ._core.tensor.tensor import Tensor

__all__ = [
    "LoadEndianness", "SourceChangeWarning", "default_restore_location", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "get_unsafe_globals_in_checkpoint", "load",
    "location_tag", "mkdtemp", "normalize_storage_type", "register_package", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data", "storage_to_tensor_type",
]  # fmt: skip

DEFAULT_PROTOCOL: Final = 2
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
FILE_LIKE = FileLike
Location: TypeAlias = device | str | int | Mapping[str, device | str] | Callable[[Any, str], Any] | None
"""Where :func:`load` puts tensors."""
MAP_LOCATION = Location

_PICKLES: Final = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How files of ``torch.save`` begin, as zip archives and as pickles."""
_LATER: Final = ("add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals")


def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with its tensors to a file, in one round trip (two if it has views of parts).

    A path that ends in ``.safetensors`` gets a safetensors file, with all that is no tensor as JSON in its metadata.
    Every other file gets PyTorch's format, which PyTorch loads: names of gradwire's classes are PyTorch's there, and
    tensors that share memory share it in the file. Classes and functions of the program stand there by their names.

    Args:
        obj: a state dict, a dictionary of them, a module, or what else can be pickled.
        f: a path, or a file opened for writing bytes.
        pickle_protocol: of the pickle in the file.
        pickle_module, _use_new_zipfile_serialization: as in PyTorch; they change nothing.

    Raises:
        ArgumentTypeError: for classes of gradwire's that PyTorch has not; in a safetensors file for anything but
            tensors, containers, numbers and strings.
        pickle.PicklingError: for what cannot be pickled.
    """
    if isinstance(f, (str, os.PathLike)):
        if os.fspath(f).endswith(".safetensors"):
            from ._core.pickles import safetensors_form

            safetensors_form.write(obj, f)
            return
    elif not hasattr(f, "write"):
        raise AttributeError(f"save() writes to a path or a file that has write(), not to a {type(f).__name__}")
    from ._core.pickles.archive import write
    from ._core.pickles.writing import Writer

    writer = Writer(pickle_protocol)
    write(f, writer.write(obj), writer.storages)


def load(
    f: FileLike,
    map_location: Location = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what :func:`save` or ``torch.save`` wrote, or any safetensors file, and put its tensors into the current
    session.

    No code of a file is run. Of PyTorch's pickles those are read that hold tensors, parameters, containers, numbers,
    strings, and modules of ``torch.nn``'s classes. Other classes have to be allowed (:func:`add_safe_globals`).

    Args:
        f: a path, or a file opened for reading bytes.
        map_location: the device for the tensors; a dictionary from devices in the file to others; or a function of
            a storage and its device. By default the device in the file; safetensors files name none, there it is
            where new tensors live.
        pickle_module, weights_only, mmap: as in PyTorch; they change nothing.

    Raises:
        RefusedPickle: a ``ValueError`` and a ``pickle.UnpicklingError``, when a pickle names anything else.
        ArgumentValueError: when the file is of no known form.
        DeviceError: when the server has no such device.
    """
    pickled = _of_pickle(f)
    if pickled is not None:
        from ._core.pickles import Where, arrive, read

        with pickled as stream:
            return arrive(read(stream), Where(map_location))
    if map_location is not None and not isinstance(map_location, (str, device)):
        from ._core.pickles import Where

        place: device | str | None = Where(map_location)(str(get_default_device()))
    else:
        place = map_location
    from ._core.pickles import safetensors_form

    return safetensors_form.read(f, place)


def _of_pickle(f: Any) -> Any:
    """A context manager with the stream of a ``torch.save`` file; ``None`` for other files."""
    if isinstance(f, (str, os.PathLike)):
        file = open(f, "rb")  # noqa: SIM115  (whoever reads on closes it)
        start = file.read(9)
        file.seek(0)
        if _begins_a_pickle(start):
            return file
        file.close()
        return None
    seeks = hasattr(f, "seekable") and f.seekable()
    if not seeks:
        return None
    at = f.tell()
    start = f.read(9)
    f.seek(at)
    return nullcontext(f) if _begins_a_pickle(start) else None


def _begins_a_pickle(start: bytes) -> bool:
    """Whether a file is PyTorch's, by its first bytes. Those of a safetensors file are a length of 64 bits, which may
    look like the beginning of a pickle, and the brace of its JSON."""
    return start.startswith(_PICKLES) and not (start[4:8] == bytes(4) and start[8:9] == b"{")


# What files may name


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The names in a file that :func:`load` refuses, as ``module.name``, unless they are allowed before."""
    from ._core.pickles.files import names_in
    from ._core.pickles.safe_globals import refused

    opened: Any = open(f, "rb") if isinstance(f, (str, os.PathLike)) else nullcontext(f)  # noqa: SIM115
    with opened as stream:
        return refused(names_in(stream))


class skip_data:
    """In PyTorch, leaves the bytes of storages out of files, or unread.

    Raises:
        Unsupported: when it is entered. A tensor on the meta device has no bytes: ``model.to("meta")``.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        raise Unsupported('skip_data: files are written with all of their bytes; move what needs none to "meta"')

    def __exit__(self, *_: object) -> None:
        """Never entered."""


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """In PyTorch, adds kinds of devices that storages are saved with.

    Raises:
        Unsupported: the devices are the server's.
    """
    raise Unsupported("register_package: gradwire's devices are the server's CPU and GPUs, no others can be added")


# Settings and small questions


class SourceChangeWarning(Warning):
    """PyTorch's warning of a class whose source differs from the one in the file; files have no sources."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)


class LoadEndianness(Enum):
    """The order of bytes for files that do not name one."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_SETTINGS: dict[str, Any] = {"endianness": None, "crc32": True, "mmap": 2}


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes that is assumed for files without one. All but PyTorch's oldest name it."""
    found: LoadEndianness | None = _SETTINGS["endianness"]
    return found


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Stored.

    Raises:
        Unsupported: for ``BIG``: such files are read if they say so.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise ArgumentTypeError(f"the order of bytes is a LoadEndianness, not {type(endianness).__name__}")
    if endianness is LoadEndianness.BIG:
        raise Unsupported("files that do not name their order of bytes are read as little-endian ones")
    _SETTINGS["endianness"] = endianness


def get_crc32_options() -> bool:
    """Whether checksums are computed: they always are."""
    found: bool = _SETTINGS["crc32"]
    return found


def set_crc32_options(compute_crc32: bool) -> None:
    """Stored, without effect."""
    _SETTINGS["crc32"] = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """The flags that were set, ``MAP_PRIVATE`` at first. Files are read, not mapped."""
    found: int = _SETTINGS["mmap"]
    return found


class set_default_mmap_options:
    """Store flags, without effect; as a ``with`` for its extent."""

    def __init__(self, flags: int) -> None:
        if flags not in (1, 2):
            raise ArgumentValueError(f"the flags are MAP_SHARED (1) or MAP_PRIVATE (2), not {flags!r:.40}")
        self.prev = get_default_mmap_options()
        _SETTINGS["mmap"] = flags

    def __enter__(self) -> None:
        """The flags are set already."""

    def __exit__(self, *_: object) -> None:
        _SETTINGS["mmap"] = self.prev


def location_tag(storage: UntypedStorage | TypedStorage) -> str:
    """The name of a storage's device in files."""
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage on the device that a file names."""
    return storage.to(device=location)


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages on the CPU for one of a GPU."""
    from ._core.surface.typed_storages import LEGACY

    return LEGACY[storage_type.__name__] if isinstance(storage_type, LegacyType) else storage_type


def storage_to_tensor_type(storage: Any) -> Any:
    """The type of tensors that goes with a storage's: ``torch.FloatTensor``."""
    from ._core.surface.tensor_types import by_name

    return by_name(storage.type().replace("Storage", "Tensor"))


class mkdtemp(tempfile.TemporaryDirectory[str]):
    """A folder that is removed at the end of the ``with``."""


def _is_zipfile(f: IO[bytes]) -> bool:
    """Whether a file begins as a zip archive does."""
    at = f.tell()
    start = f.read(4)
    f.seek(at)
    return start == b"PK\x03\x04"


def _is_path(name_or_buffer: object) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


def _is_torchscript_zip(zip_file: Any) -> bool:
    names = zip_file.namelist() if isinstance(zip_file, zipfile.ZipFile) else zip_file.get_all_records()
    return any(name.endswith("constants.pkl") for name in names)


# Plain pickles


def _reduced(self: Any, protocol: Any) -> Any:
    from ._core.pickles.by_value import reduced

    return reduced(self)


for _kind in (Tensor, UntypedStorage, TypedStorage, Generator):
    setattr(_kind, "__reduce_ex__", _reduced)  # noqa: B010  (what is attached to a class is not declared on it)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from ._core.pickles import safe_globals

        return getattr(safe_globals, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
