"""``torch.hub``: programs in local folders, files in PyTorch's cache, and ``file`` URLs, beside PyTorch."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch

import gradwire
import gradwire.hub
import gradwire.utils.model_zoo

CONF = '''
dependencies = ["math"]
from part import FACTOR

def scaled(start, steps=1):
    """A number."""
    return start + FACTOR * steps

def _hidden():
    return None

class Model:
    pass
'''
LIBRARIES = [torch, gradwire]


@pytest.fixture(params=LIBRARIES, ids=["torch", "gradwire"])
def hub(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module ``hub`` of one library, with an empty cache."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TORCH_HUB", raising=False)
    found = request.param.hub
    chosen = "_hub_dir" if request.param is torch else "_chosen"
    monkeypatch.setattr(found, chosen, None if request.param is torch else [])
    return found


def folder(path: Path, text: str = CONF) -> str:
    path.mkdir(parents=True)
    (path / "hubconf.py").write_text(text)
    (path / "part.py").write_text("FACTOR = 10")
    return str(path)


def test_a_local_folder_is_loaded(hub: Any, tmp_path: Path) -> None:
    where = folder(tmp_path / "models")
    assert hub.load(where, "scaled", 1, source="local", steps=2) == 21
    with pytest.raises(RuntimeError, match="nope"):
        hub.load(where, "nope", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(where, "scaled", source="elsewhere")
    lacking = folder(tmp_path / "lacking", 'dependencies = ["no_such_package"]\ndef f(): return 1\n')
    with pytest.raises(RuntimeError, match="no_such_package"):
        hub.load(lacking, "f", source="local")


def test_a_repository_in_the_cache_is_found_there(hub: Any) -> None:
    folder(Path(hub.get_dir()) / "owner_name_main")
    (Path(hub.get_dir()) / "trusted_list").write_text("owner_name\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("urllib.request.urlopen", _no_network)
        patch.setattr("torch.hub.urlopen", _no_network)
        arguments = {"skip_validation": True, "trust_repo": True}
        assert hub.load("owner/name:main", "scaled", 5, **arguments) == 15
        assert [name for name in hub.list("owner/name:main", **arguments) if name != "Model"] == ["scaled"]
        assert hub.help("owner/name:main", "scaled", **arguments) == "A number."
        assert hub.load("owner/name:main", "scaled", 5, skip_validation=True) == 15  # in trusted_list


def _no_network(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("the network is asked")


def test_the_folder_is_pytorchs(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hub.get_dir() == str(tmp_path / "cache" / "torch" / "hub") and hub._get_torch_home().endswith("torch")
    hub.set_dir(tmp_path / "own")
    assert str(hub.get_dir()) == str(tmp_path / "own")


@pytest.mark.usefixtures("session")
def test_weights_are_read_from_a_url_and_kept(hub: Any, tmp_path: Path) -> None:
    torch.save({"weight": torch.arange(3.0)}, tmp_path / "w.pth")
    begins = hashlib.sha256((tmp_path / "w.pth").read_bytes()).hexdigest()[:8]
    source = (tmp_path / "w.pth").rename(tmp_path / f"w-{begins}.pth")
    found = hub.load_state_dict_from_url(source.as_uri(), progress=False, check_hash=True)
    assert found["weight"].tolist() == [0.0, 1.0, 2.0]
    source.unlink()
    again = hub.load_state_dict_from_url(source.as_uri(), progress=False, map_location="cpu", weights_only=True)
    assert again["weight"].tolist() == [0.0, 1.0, 2.0]
    assert (Path(hub.get_dir()) / "checkpoints" / f"w-{begins}.pth").exists()


def test_a_wrong_hash_leaves_no_file(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.download_url_to_file((tmp_path / "file").as_uri(), str(tmp_path / "copy"), "00000000", progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_repositories_are_not_downloaded_and_not_trusted_by_themselves(tmp_path: Path) -> None:
    before = gradwire.hub.get_dir()
    gradwire.hub.set_dir(tmp_path)
    try:
        with pytest.raises(NotImplementedError, match="downloads no repositories"):
            gradwire.hub.load("owner/name", "scaled")
        folder(tmp_path / "owner_name_master")
        with pytest.raises(NotImplementedError, match="trust_repo=True"):
            gradwire.hub.load("owner/name", "scaled", 1)
        assert gradwire.hub.load("owner/name", "scaled", 1, trust_repo=True) == 11
        with pytest.raises(ValueError, match="neither https"):
            gradwire.hub.download_url_to_file("ftp://x/y", str(tmp_path / "y"))
    finally:
        gradwire.hub.set_dir(before)


def test_model_zoo_is_the_older_path() -> None:
    assert gradwire.utils.model_zoo.load_url is gradwire.hub.load_state_dict_from_url
