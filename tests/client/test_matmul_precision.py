"""The session knows the precision of float32 products, so a replay uses it too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradwire
from gradwire._core.session.session import Session
from gradwire_protocol.errors import ArgumentError


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    gradwire.set_float32_matmul_precision("highest")


def test_a_switch_is_recorded_once_for_each_change(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[str] = []
    record = session.record

    def noting(op, values, *rest):
        if op.name == "set_float32_matmul_precision":
            recorded.append(values[0])
        return record(op, values, *rest)

    monkeypatch.setattr(session, "record", noting)
    gradwire.backends.cuda.matmul.allow_tf32 = True
    gradwire.set_float32_matmul_precision("high")
    assert gradwire.backends.cuda.matmul.fp32_precision == "tf32"
    gradwire.backends.cuda.matmul.fp32_precision = "ieee"
    assert recorded == ["high", "highest"]
    assert gradwire.get_float32_matmul_precision() == "highest"
    assert (gradwire.ones(2, 2) @ gradwire.ones(2, 2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_session_that_is_opened_later_computes_with_it_too(session: Session) -> None:
    gradwire.set_float32_matmul_precision("high")
    try:
        with gradwire.connect() as later:
            assert later.matmul_precision == "high" and later.recorded == 1
    finally:
        gradwire._core.session.current_session._current = session


def test_it_starts_as_in_pytorch_with_full_precision() -> None:
    assert gradwire.get_float32_matmul_precision() == "highest"
    assert not gradwire.backends.cuda.matmul.allow_tf32


def test_another_word_is_refused() -> None:
    with pytest.raises(ArgumentError):
        gradwire.set_float32_matmul_precision("low")
    with pytest.raises(ArgumentError):
        gradwire.backends.cuda.matmul.fp32_precision = "bf16"
