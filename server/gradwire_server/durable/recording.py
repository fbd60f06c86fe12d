"""A session's history as one file, to run again elsewhere and compare bit for bit.

The file is a tar archive: ``recording.json`` (the session's parameters, and which version and machine wrote it), the
state where the history begins, checkpoints to which it was rewound, the journals, and ``digests.msgpack``: for each
frame the digests of the tensors that it made or changed, as the machine that wrote the file computed them.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradwire_engine.autograd.failures import Poison
from gradwire_engine.autograd.tensor import Storage, Tensor
from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.session.session import Session
from gradwire_protocol.errors import InvalidRequest, LimitExceeded

from ..settings.session_spec import SessionSpec
from ..settings.version import VERSION
from . import checkpoints
from .history import Replay, Source
from .journal import journals
from .records import Kind
from .snapshots import snapshots

FORM: Final = "gradwire-recording-1"
ABOUT: Final = "recording.json"
DIGESTS: Final = "digests.msgpack"
MAX_BYTES: Final = 2 << 30
_FILE: Final = re.compile(
    r"recording\.json|digests\.msgpack|checkpoints\.json|journal-\d{20}\.log|"
    r"(snapshot|checkpoint)-\d{20}-[0-9a-f]{32}\.safetensors"
)


class About(msgspec.Struct):
    """What is said of a recording."""

    form: str
    spec: SessionSpec
    empty: bool
    version: str
    machine: str
    kernels: str


class Difference(NamedTuple):
    """Where a replay differs first.

    Attributes:
        tensor: its id, or ``name`` and what of it, as ``4294967301`` or ``4294967301.grad``.
        expected, found: digests, or ``missing``.
    """

    frame: int
    tensor: str
    name: str
    shape: list[int]
    expected: str
    found: str


class Outcome(NamedTuple):
    """The result of a comparison: how many frames and tensors were alike, and the first difference, if any."""

    frames: int
    tensors: int
    difference: Difference | None
    about: About


class _Digests:
    """The digests of what a frame made or changed."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Tensor, Storage | None, int]] = {}

    def changed(self, session: Session) -> dict[str, str]:
        """The digests of tensors that are new or were written to since the last call."""
        found: dict[str, str] = {}
        seen: dict[str, tuple[Tensor, Storage | None, int]] = {}
        for key, held in _tensors(session):
            if isinstance(held, Poison):
                continue
            state = held, held.storage, held.storage.version
            seen[key] = state
            before = self._seen.get(key)
            if before is None or before[0] is not held or before[1] is not held.storage or before[2] != state[2]:
                found[key] = digest_of(held)
        self._seen = seen
        return found


def _tensors(session: Session) -> Iterator[tuple[str, Any]]:
    for number, held in session.ids.items():
        if held is not None:
            yield str(number), held
            if isinstance(held, Tensor) and held.grad is not None:
                yield f"{number}.grad", held.grad
    for name, tensor in session.engine.names.items():
        yield f"name {name}", tensor


def digest_of(tensor: Tensor) -> str:
    """A digest of a tensor's dtype, shape and values."""
    if tensor.storage.poison is not None:
        return "poisoned"
    values = np.ascontiguousarray(tensor.engine.to_numpy(tensor))
    found = hashlib.blake2b(f"{tensor.dtype.name} {list(tensor.shape)} ".encode(), digest_size=8)
    found.update(values.reshape(-1).view(np.uint8).data if values.size else b"")
    return found.hexdigest()


def record(source: Source, backends: Backends) -> bytes:
    """The history that a folder keeps, as a file.

    Raises:
        LimitExceeded: when its files are too large.
        NotFound, JournalDamaged: as :class:`.history.Replay`.
    """
    replay = Replay(source, None, backends)
    first = replay.record
    names = _needed(source, first)
    size = sum((source.folder / name).stat().st_size for name in names)
    if size > MAX_BYTES:
        raise LimitExceeded(
            f"the history of the session has {size:,} bytes; the limit of a recording is {MAX_BYTES:,}",
            limit=MAX_BYTES, value=size,
        )  # fmt: skip
    digests = list(_digests(replay))
    about = About(
        FORM, source.spec, source.empty and first == 0, VERSION, f"{platform.machine()} {platform.processor()}".strip(),
        "compiled" if replay.session.engine.compiled else toolchain.describe()["state"],
    )  # fmt: skip
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        _add(archive, ABOUT, msgspec.json.encode(about))
        _add(archive, DIGESTS, msgspec.msgpack.encode(digests))
        for name in names:
            _add(archive, name, (source.folder / name).read_bytes())
    return out.getvalue()


def _digests(replay: Replay) -> Iterator[tuple[int, dict[str, str]]]:
    """The digests of each frame, with what there is at the begin as the first."""
    digests = _Digests()
    yield replay.frame, digests.changed(replay.session)
    for each in replay.steps():
        if each.kind in (Kind.FRAME, Kind.REWIND):
            yield replay.frame, digests.changed(replay.session)


def _needed(source: Source, first: int) -> list[str]:
    """The names of the files for a replay from this record on."""
    folder, bases = source.folder, journals(source.folder)
    begin = max((base for base in bases if base <= first), default=0)
    found = [path.name for base, path in sorted(bases.items()) if base >= begin]
    found += [each.path.name for each in snapshots(folder) if each.seq == first]
    kept = sorted(path.name for path in folder.glob(f"{checkpoints.PREFIX}*.safetensors"))
    if kept:
        found += [checkpoints.INDEX, *kept]
    return found


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def compare(file: Path, backends: Backends | None = None) -> Outcome:
    """Run a recording again, here and now, and compare after each frame.

    Raises:
        InvalidRequest: when the file is no recording.
        DeviceError, Unavailable, JournalDamaged: when it cannot be run here.
    """
    with tempfile.TemporaryDirectory(prefix="gradwire-replay-") as scratch:
        about, wanted = _unpacked(file, Path(scratch))
        replay = Replay(Source(Path(scratch), about.spec, about.empty), None, backends)
        expected = dict(wanted)
        frames = tensors = 0
        for frame, found in _digests(replay):
            difference = _difference(replay.session, frame, expected.pop(frame, {}), found)
            if difference is not None:
                return Outcome(frames, tensors, difference, about)
            frames += 1
            tensors += len(found)
        if expected:
            raise InvalidRequest(f"the recording ends after frame {replay.frame}, but has digests of later ones")
        return Outcome(frames - 1, tensors, None, about)


def _difference(session: Session, frame: int, expected: dict[str, str], found: dict[str, str]) -> Difference | None:
    for key in [*found, *(key for key in expected if key not in found)]:
        if expected.get(key) != found.get(key):
            names = {id(tensor): name for name, tensor in session.engine.names.items()}
            held = dict(_tensors(session)).get(key)
            name = key.removeprefix("name ") if key.startswith("name ") else names.get(id(held), "")
            shape = list(held.shape) if isinstance(held, Tensor) else []
            return Difference(frame, key, name, shape, expected.get(key, "missing"), found.get(key, "missing"))
    return None


def _unpacked(file: Path, folder: Path) -> tuple[About, list[tuple[int, dict[str, str]]]]:
    try:
        with tarfile.open(file, mode="r:") as archive:
            for member in archive:
                data = archive.extractfile(member) if member.isreg() and _FILE.fullmatch(member.name) else None
                if data is None or member.size > MAX_BYTES:
                    raise InvalidRequest(f"the file is no recording of a session: it has {member.name!r:.80}")
                descriptor = os.open(folder / member.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "wb") as target:
                    while block := data.read(1 << 20):
                        target.write(block)
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
        if about.form != FORM:
            raise InvalidRequest(f"the file has the form {about.form!r:.80}, not {FORM!r}")
        digests = msgspec.msgpack.decode((folder / DIGESTS).read_bytes(), type=list[tuple[int, dict[str, str]]])
    except (tarfile.TarError, msgspec.MsgspecError, UnicodeError, FileNotFoundError, FileExistsError) as error:
        raise InvalidRequest(f"the file is no recording of a session: {error}") from None
    return about, digests
