"""A large upload shows how far it is."""

from __future__ import annotations

import io

import pytest
import torch

from gradwire_torch import register
from gradwire_torch.progress import WATCHING, bytes_of

register()


def test_a_module_that_moves_is_counted_to_its_end() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(300, 500), torch.nn.BatchNorm1d(500))
    expected = sum(t.nbytes for t in model.state_dict().values())
    told: list[int] = []
    WATCHING.append(told.append)
    shown = io.StringIO()
    try:
        with torch.gradwire.upload_progress(model, file=shown):
            model.to("gradwire")
    finally:
        WATCHING.remove(told.append)
    assert sum(told) == bytes_of(model) == expected
    kilobytes = f"{expected / 1000:.1f}"
    assert f"{kilobytes}/{kilobytes} kB" in shown.getvalue()
    assert not WATCHING


def test_a_checkpoint_is_counted(tmp_path) -> None:
    kept = {"weights": {"one": torch.randn(1000), "two": torch.randn(30).bfloat16()}, "step": 3}
    torch.save(kept, tmp_path / "kept.pt")
    shown = io.StringIO()
    with torch.gradwire.upload_progress(kept, file=shown):
        found = torch.load(tmp_path / "kept.pt", map_location="gradwire")
    assert torch.equal(found["weights"]["one"].cpu(), kept["weights"]["one"])
    assert "4.1/4.1 kB" in shown.getvalue()


def test_an_error_inside_passes_on() -> None:
    with pytest.raises(KeyError), torch.gradwire.upload_progress(file=io.StringIO()):
        raise KeyError("model")
    assert not WATCHING


def test_what_can_be_counted() -> None:
    x = torch.ones(3)
    assert [bytes_of(one) for one in (None, 7, x, [x, x], {"x": x, "step": 1, "more": {"y": x}})] == [
        None, 7, 12, 24, 24,
    ]  # fmt: skip
