"""The record of PyTorch's public names, and the reasons for those that gradwire lacks."""

from __future__ import annotations

import json

import pytest
import torch
from tools.public_names import page, reasons
from tools.public_names.gradwire_names import lacking
from tools.public_names.torch_names import _described, _public

import gradwire

NAMES = json.loads(page.RECORD.read_text(encoding="utf-8"))["names"]
MISSING = frozenset(lacking(NAMES))


@pytest.fixture
def anew():
    """The derivation without what it found before, and afterwards without what it found in the test."""
    page._by_reason.cache_clear()
    yield
    page._by_reason.cache_clear()


@pytest.mark.parametrize("module", [torch, torch.nn], ids=lambda module: module.__name__)
def test_the_record_has_the_names_of_the_installed_torch(module):
    recorded = NAMES[module.__name__]
    assert set(recorded) == _public(module)
    for name in recorded:
        assert recorded[name] == _described(module, name), name


def test_methods_of_tensors_are_recorded_with_their_keywords():
    recorded = NAMES["torch"]["Tensor"]
    assert {name for name in dir(torch.Tensor) if not name.startswith("_")} <= {*recorded, *dir(object)}
    assert "from" in recorded["uniform_"] and "from_" not in recorded["uniform_"]
    assert "mode" not in recorded["requires_grad_"]


def test_a_name_without_a_reason_stops_the_derivation(anew, monkeypatch):
    monkeypatch.setattr(page, "lacking", lambda names: ["torch.invented"])
    with pytest.raises(page.Unexplained, match=r"torch\.invented"):
        page.page()


def test_a_pattern_that_explains_nothing_stops_the_derivation(anew, monkeypatch):
    monkeypatch.setitem(reasons.REASONS, "Nothing is like that", "torch.invented*")
    with pytest.raises(page.Unexplained, match=r"torch\.invented\*"):
        page.page()


def test_names_that_only_raise_are_missing():
    assert type(gradwire.library.triton_op).__name__ == "StandIn"
    for name in ("torch.library.triton_op", "torch.Tensor.to_sparse", "torch.export", "torch.utils.swap_tensors"):
        assert name in MISSING, name
    for name in ("torch.matmul", "torch.Tensor.to_dense", "torch.fx.immutable_collections.immutable_list.append"):
        assert name not in MISSING, name


def test_the_page_has_each_missing_name_once():
    shown = page.page()
    assert shown.count("`to_sparse_csr`") == 0 and shown.count("`Tensor.to_sparse_csr`") == 1
    listed = sum(line.count("`") // 2 - (not line.startswith("* `torch.") or ": " in line) for line in _rows(shown))
    assert listed == len(MISSING)


def _rows(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith("* ")]


def test_differences_have_a_row_for_each_reason():
    text = (page.RECORD.parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")
    derived = page.with_table(text)
    assert all(f"| {reason} | " in derived for reason in reasons.REASONS)
    assert page.with_table(derived) == derived
