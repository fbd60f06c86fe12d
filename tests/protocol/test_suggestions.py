"""Suggestions name the closest words, and others only if they are about as close."""

from __future__ import annotations

import pytest

from gradwire_protocol.suggestions import MAX_CHARS, did_you_mean


@pytest.mark.parametrize(("word", "known", "suggestion"), [
    ("matmull", ["all", "matmul", "mul"], "; did you mean 'matmul'?"),
    ("bias3", ["bias1", "bias2", "weight"], "; did you mean 'bias2' or 'bias1'?"),
    ("exponnt", ["self", "exponent"], "; did you mean 'exponent'?"),
    ("x", ["self", "exponent"], ""),
    ("a" * (MAX_CHARS + 1), ["a" * MAX_CHARS], ""),
    ("x", [], ""),
])  # fmt: skip
def test_a_suggestion(word: str, known: list[str], suggestion: str) -> None:
    assert did_you_mean(word, known) == suggestion
