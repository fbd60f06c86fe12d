"""``torch.return_types`` against PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradwire


def _names() -> list[str]:
    return [n for n, made in vars(torch.return_types).items() if isinstance(made, type) and issubclass(made, tuple)]


def test_every_class_of_pytorch_is_there_but_for_those_of_out_forms() -> None:
    wanted = {name for name in _names() if not name.startswith("_") and not name.endswith("_out")}
    assert {name for name in wanted if not hasattr(gradwire.return_types, name)} == set()
    assert gradwire.return_types.max in gradwire.return_types.all_return_types


@pytest.mark.parametrize("name", gradwire.return_types.__all__[1:])
def test_the_parts_of_a_result_have_pytorchs_names(name: str) -> None:
    assert getattr(gradwire.return_types, name)._fields == getattr(torch.return_types, name).__match_args__


RESULTS: dict[str, Any] = {
    "max": lambda lib, x: lib.max(x, 0),
    "min": lambda lib, x: x.min(1, keepdim=True),
    "topk": lambda lib, x: lib.topk(x, 2),
    "median": lambda lib, x: x.median(0),
    "linalg_eig": lambda lib, x: lib.linalg.eig(x),
    "linalg_qr": lambda lib, x: lib.linalg.qr(x),
}


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_these_classes_under_vmap_as_well(name: str) -> None:
    for lib in (torch, gradwire):
        x = lib.arange(18.0).view(2, 3, 3).sin()
        assert isinstance(RESULTS[name](lib, x[0]), getattr(lib.return_types, name))
        assert isinstance(lib.vmap(lambda x, lib=lib: RESULTS[name](lib, x))(x), getattr(lib.return_types, name))


@pytest.mark.usefixtures("session")
def test_an_unknown_class_is_an_attribute_error() -> None:
    for lib in (torch, gradwire):
        assert not hasattr(lib.return_types, "no_such_result")
