"""``torch.hub``: models from folders of this machine that have a ``hubconf.py``, and files of weights.

``load(folder, entry, source="local")`` runs the program in that folder, as PyTorch does. Repositories are not
downloaded: those that PyTorch put into its cache are found there. Files of weights are downloaded, kept in PyTorch's
cache, and read without executing anything.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import shutil
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self
from urllib.parse import urlparse

from gradwire_protocol.errors import ArgumentValueError, Unsupported

from .serialization import Location
from .serialization import load as _load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

DEFAULT_CACHE_DIR: Final = "~/.cache"
ENV_TORCH_HOME: Final = "TORCH_HOME"
ENV_XDG_CACHE_HOME: Final = "XDG_CACHE_HOME"
HASH_REGEX: Final = re.compile(r"-([a-f0-9]*)\.")
"""Finds the beginning of a file's hash in its name."""
MODULE_HUBCONF: Final = "hubconf.py"
READ_DATA_CHUNK: Final = 128 * 1024
VAR_DEPENDENCY: Final = "dependencies"
_chosen: builtins.list[str] = []


class _Progress:
    """What shows how far a download is where the package tqdm is not installed: one line that is written over."""

    def __init__(self, iterable: Any = None, total: int | None = None, disable: bool = False, **_: Any) -> None:
        self.iterable, self.total, self.disable, self.n = iterable, total, disable, 0

    def update(self, n: int) -> None:
        """Count ``n`` more."""
        self.n += n
        if not self.disable:
            shown = f"{self.n} bytes" if not self.total else f"{min(100.0, 100 * self.n / self.total):.1f}%"
            sys.stderr.write(f"\r{shown}")
            sys.stderr.flush()

    def set_description(self, desc: str = "", refresh: bool = True) -> None:
        """Without effect."""

    def write(self, text: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{text}\n")

    def close(self) -> None:
        """End the line."""
        if not self.disable and self.n:
            sys.stderr.write("\n")
        self.disable = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        for item in self.iterable:
            yield item
            self.update(1)
        self.close()


tqdm: Any = import_module("tqdm").tqdm if find_spec("tqdm") is not None else _Progress


def _get_torch_home() -> str:
    home = os.path.join(os.environ.get(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.environ.get(ENV_TORCH_HOME, home))


def get_dir() -> str:
    """The folder for repositories and files: what :func:`set_dir` set, else ``$TORCH_HOME/hub``, else
    ``$XDG_CACHE_HOME/torch/hub``, else ``~/.cache/torch/hub``."""
    return _chosen[-1] if _chosen else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder for repositories and files."""
    _chosen[:] = [os.path.expanduser(d)]


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: bool | str | None = "check",
    verbose: bool = True,
) -> builtins.list[str]:  # fmt: skip
    """The entry points of a repository in the cache.

    Args:
        github: the repository, as ``owner/name`` or ``owner/name:branch``.
        force_reload, skip_validation, verbose: as in PyTorch; nothing is downloaded.
        trust_repo: see :func:`load`.
    """
    folder = _cached_repository(github, force_reload, trust_repo)
    with _importable(folder):
        conf = _hubconf(folder)
    return [name for name, entry in vars(conf).items() if callable(entry) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
) -> str | None:  # fmt: skip
    """The documentation of an entry point of a repository in the cache; for the arguments see :func:`list`."""
    folder = _cached_repository(github, force_reload, trust_repo)
    with _importable(folder):
        return _entry(_hubconf(folder), model).__doc__


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: bool | str | None = "check",
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """What an entry point of a ``hubconf.py`` returns, usually a model.

    Args:
        repo_or_dir: a folder, if ``source`` is ``"local"``, else a repository in the cache (``owner/name:branch``).
        model: the name of a function in the ``hubconf.py``.
        *args, **kwargs: its arguments.
        source: ``"github"`` or ``"local"``.
        trust_repo: whether the program of a repository in the cache may run: True, or ``"check"`` and None for those
            that the cache's ``trusted_list`` names.
        force_reload, verbose, skip_validation: as in PyTorch; nothing is downloaded.

    Raises:
        Unsupported: for a repository that is not in the cache, or is not trusted.
        ArgumentValueError: for another source.
    """
    kind = source.lower()
    if kind not in ("github", "local"):
        raise ArgumentValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = _cached_repository(repo_or_dir, force_reload, trust_repo) if kind == "github" else repo_or_dir
    return _load_local(folder, model, *args, **kwargs)


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    with _importable(hubconf_dir):
        return _entry(_hubconf(hubconf_dir), model)(*args, **kwargs)


@contextmanager
def _importable(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _hubconf(folder: str) -> ModuleType:
    spec = spec_from_file_location(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry(conf: ModuleType, name: str) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise ArgumentValueError("Invalid input: model should be a string of function name")
    missing = [wanted for wanted in getattr(conf, VAR_DEPENDENCY, None) or () if find_spec(wanted) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(conf, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def _cached_repository(github: str, force_reload: bool, trust_repo: bool | str | None) -> str:
    """The folder of a repository in the cache.

    PyTorch names it ``owner_name_branch``; without a branch, ``main`` is preferred to ``master``.
    """
    repository, _, branch = github.partition(":")
    owner, _, name = repository.partition("/")
    if not owner or not name:
        raise ArgumentValueError(f"{github!r:.80} is no repository: owner/name or owner/name:branch")
    for ref in [branch] if branch else ["main", "master"]:
        folder = os.path.join(get_dir(), "_".join([owner, name, ref.replace("/", "_")]))
        if not force_reload and os.path.isdir(folder):
            _check_trusted("_".join([owner, name]), trust_repo)
            return folder
    raise Unsupported(
        f"torch.hub: gradwire downloads no repositories, and {github} is not in {get_dir()}; get it yourself, and "
        'load(folder, ..., source="local")'
    )


def _check_trusted(repository: str, trust_repo: bool | str | None) -> None:
    if trust_repo is True:
        return
    path = Path(get_dir()) / "trusted_list"
    if trust_repo is not False and path.exists() and repository in path.read_text().splitlines():
        return
    raise Unsupported(f"torch.hub: {repository} is not in {path}: loading it runs its program; trust_repo=True does so")


def download_url_to_file(
    url: str, dst: str | os.PathLike[str], hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file. It appears under its name when it is complete.

    Args:
        url: where it is: ``https``, ``http`` or ``file``.
        dst: the path that it gets.
        hash_prefix: the beginning of its SHA-256 in hexadecimal, which is checked.
        progress: whether to show on stderr how far it is.

    Raises:
        RuntimeError: when its hash is another.
    """
    if urlparse(url).scheme not in ("https", "http", "file"):
        raise ArgumentValueError(f"download_url_to_file: {url!r:.80} is neither https, http nor file")
    target = Path(dst).expanduser()
    seen = hashlib.sha256()
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    handle, partial = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".partial", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(request) as response:
            size = response.headers.get("Content-Length")
            bar = tqdm(total=int(size) if size else None, disable=not progress, unit="B", unit_scale=True)
            while chunk := response.read(READ_DATA_CHUNK):
                file.write(chunk)
                seen.update(chunk)
                bar.update(len(chunk))
            bar.close()
        if hash_prefix and not seen.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{seen.hexdigest()[: len(hash_prefix)]}")'
            )
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        shutil.move(partial, target)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Location = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What ``torch.load`` reads from a file, which is downloaded unless it is in the cache.

    Args:
        url: where the file is.
        model_dir: the folder that it is kept in; the default is ``checkpoints`` in :func:`get_dir`.
        map_location: where its tensors go, see ``torch.load``.
        progress: whether to show on stderr how far a download is.
        check_hash: whether the name has the beginning of the file's SHA-256 (``name-0123abcd.pth``), to be checked.
        file_name: the file's name in the cache; the default is the one in the URL.
        weights_only: see ``torch.load``; nothing is executed either way.
    """
    folder = Path(model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = folder / name
    if not path.exists():
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    if _is_archive(path):
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as unpacked:
            return _load_file(archive.extract(archive.namelist()[0], unpacked), map_location, weights_only=weights_only)
    return _load_file(path, map_location, weights_only=weights_only)


def _is_archive(path: Path) -> bool:
    """Whether a file is a zip archive around one file, as some old weights are; PyTorch's own format has folders."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return len(names) == 1 and "/" not in names[0]
