"""The two kinds of shared storage. The object store of these tests is moto's, an emulation of S3."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.storage import Storage, open_storage


@pytest.fixture(params=["directory", "objects"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "directory":
        return DirectoryStorage(tmp_path / "shared")
    found: Storage = request.getfixturevalue("bucket")
    return found


def test_what_was_put_is_there_for_everyone(storage: Storage) -> None:
    assert storage.get("a/b") is None
    storage.put("a/b", b"one")
    storage.put("a/b", memoryview(b"two"))
    assert open_or_same(storage).get("a/b") == b"two"
    storage.delete("a/b", "a/c")
    assert storage.get("a/b") is None


def open_or_same(storage: Storage) -> Storage:
    return open_storage(storage.url) if isinstance(storage, DirectoryStorage) else storage


def test_a_file_is_put(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    storage.put("a/file", tmp_path / "file")
    assert storage.get("a/file") == b"x" * 100_000


def test_one_of_many_creates_a_key(storage: Storage) -> None:
    for round_ in range(5):
        created: list[int] = []
        start = threading.Barrier(8)

        def contend(number: int, key: str = f"claims/{round_}", start: Any = start, won: Any = created) -> None:
            start.wait(30)
            if storage.create(key, str(number).encode()):
                won.append(number)

        threads = [threading.Thread(target=contend, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(created) == 1
        assert storage.get(f"claims/{round_}") == str(created[0]).encode()
        assert not storage.create(f"claims/{round_}", str(created[0]).encode())


def test_keys_and_their_next_segments(storage: Storage) -> None:
    for key in ("s/a/claims/1", "s/a/claims/2", "s/b/x", "s/ab/y"):
        storage.put(key, b"")
    assert storage.keys("s/a/") == ["s/a/claims/1", "s/a/claims/2"]
    assert storage.children("s/") == ["a", "ab", "b"]
    assert storage.children("s/a/claims/") == ["1", "2"]
    assert storage.children("nothing/") == storage.keys("nothing/") == []
    storage.delete("s/b/x")
    assert storage.children("s/") == ["a", "ab"]


@pytest.mark.parametrize("key", ["../a", "a/../../b", "/a", "a//b", "", "a/", ".hidden", "a\0b"])
def test_keys_are_plain(storage: Storage, key: str) -> None:
    with pytest.raises(ValueError, match="is not a key"):
        storage.put(key, b"")


def test_a_link_whose_answer_was_lost_is_a_creation(tmp_path: Path, monkeypatch: Any) -> None:
    """As over NFS, where the client sends link(2) again and is told that the name exists."""
    storage, link = DirectoryStorage(tmp_path), os.link

    def lossy(*names: Any) -> None:
        link(*names)
        raise FileExistsError

    monkeypatch.setattr(os, "link", lossy)
    assert storage.create("claims/1", b"mine")
    monkeypatch.undo()
    assert not storage.create("claims/1", b"another's")
    assert storage.children("claims/") == ["1"]


def test_a_put_whose_answer_was_lost_is_a_creation(bucket: Any, monkeypatch: Any) -> None:
    """obstore then repeats the put, which finds the object of the first attempt."""
    put = bucket._obstore.put

    def lossy(*arguments: Any, **options: Any) -> Any:
        put(*arguments, **options)
        return put(*arguments, **options)

    monkeypatch.setattr(bucket._obstore, "put", lossy)
    assert bucket.create("claims/1", b"mine")
    monkeypatch.undo()
    assert not bucket.create("claims/1", b"mine")


@pytest.mark.parametrize("url", ["gs://bucket/prefix", "s3://", "http://example.com/x"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"s3://"):
        open_storage(url)


def test_an_unreachable_store_is_an_os_error(monkeypatch: Any) -> None:
    from gradwire_server.durable.shared import object_storage

    monkeypatch.setattr(object_storage, "RETRY_S", 0.1)
    store = object_storage.ObjectStorage.open(
        "s3://bucket-a/x", endpoint="http://127.0.0.1:9", region="us-east-1", access_key_id="x", secret_access_key="y"
    )
    with pytest.raises(OSError, match="owners/o_1"):
        store.get("owners/o_1")
