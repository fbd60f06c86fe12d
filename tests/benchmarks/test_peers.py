"""Peers are measured side by side with gradwire; an unavailable peer is listed with the reason."""

from __future__ import annotations

import json

import pytest
from benchmarks.peers import environments
from benchmarks.peers.__main__ import main
from benchmarks.peers.environments import NotInstalled, Peer, first_line, python_of


def rows(folder):
    return json.loads((folder / "peers.json").read_text())["rows"]


def test_a_peer_is_measured_on_loopback_and_further_away(tmp_path) -> None:
    main(["rpc"], quick=True, out=tmp_path / "peers")
    found = {(row["benchmark"], row["case"]): row for row in rows(tmp_path)}
    for place in ("chain, loopback", "chain, 20 ms away"):
        for form in ("op by op", "one function"):
            row = found[place, f"torch.distributed.rpc, {form}"]
            assert row["torch"]["median"] > 0
            assert row["gradwire"]["median"] > 0
    assert found["chain, 20 ms away", "torch.distributed.rpc, one function"]["torch"]["median"] >= 20


def test_a_peer_that_cannot_be_had_has_a_row_that_says_why(tmp_path) -> None:
    main(["burn"], quick=True, out=tmp_path / "peers")
    [row, _] = [row for row in rows(tmp_path) if row["case"].startswith("Burn Remote")]
    assert row["note"].startswith("not installed: it is a Rust crate")
    assert row["note"] in (tmp_path / "peers.md").read_text()


def test_an_installation_that_fails_says_how(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    with pytest.raises(NotInstalled, match=r"ERROR: .*no-such-file\.whl"):
        python_of(Peer("nobody", "nobody.py", ("./no-such-file.whl",)))


def test_of_what_a_program_said_the_first_error_is_told() -> None:
    said = "a warning\n  File x\nKeyError: 1\nRuntimeError: 2\n"
    assert first_line(said) == "KeyError: 1"
    assert first_line("only this\n") == "only this"
    assert first_line("") == "it said nothing"
