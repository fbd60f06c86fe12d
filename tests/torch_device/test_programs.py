"""Programs in the shapes of well-known collections of examples, unedited, print there what they print on the CPU.

They take the accelerator that PyTorch has, or do so with ``--accel``. On the CPU they find that as the accelerator, so
that they do the same. PyTorch is lent gradwire's random numbers in both places.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import gradwire_torch
from tests.programs.running import COLLECTION, assert_same_text, files_of, under_torch
from tests.programs.test_programs import PROGRAMS, write_corpus

gradwire_torch.register()


@pytest.fixture(scope="module", autouse=True)
def _used() -> None:
    """The device takes its seed when it is used first: not amid a program that is lent numbers."""
    torch.ones(1, device="gradwire")


WITH_DEVICES = [
    name for name, program in PROGRAMS.items()
    if "torch.accelerator" in (COLLECTION / program.steps[0].split()[0]).read_text()
]  # fmt: skip

ONE_DEVICE = {"image_trainer.py": ("--gpu", "0")}
"""What lets a program do without ``DataParallel``, which PyTorch has for GPUs of CUDA alone."""

LOOSE = {"forward_forward": 0.15, "fast_style": 0.05}
"""How far numbers may differ where rounding is magnified: Adam's first steps are the signs of gradients, and some of
those are rounding alone."""


def accelerated(step: str) -> list[str]:
    """A command by which its program takes the accelerator: most do without being told."""
    command = step.split()
    asked = '"--accel"' in (COLLECTION / command[0]).read_text()
    return [*command, "--accel"] if asked else [*command, *ONE_DEVICE.get(command[0], ())]


@pytest.mark.parametrize("name", WITH_DEVICES)
def test_a_program_prints_on_the_device_what_it_prints_on_the_cpu(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = PROGRAMS[name]
    folders = [tmp_path / "device", tmp_path / "cpu"]
    for folder in folders:
        folder.mkdir()
        if name.startswith("word"):
            write_corpus(folder)
    for step in program.steps:
        ours, theirs = (
            under_torch(accelerated(step), folder, capsys, {}, accelerator)
            for folder, accelerator in zip(folders, ("gradwire", "cpu"), strict=True)
        )
        told = re.findall("Using device: (.*)", ours)
        assert not told or told == ["gradwire"]
        if theirs or ours:
            assert_same_text(
                ours, theirs, "|".join(filter(None, ("Using device: .*", program.moving))), LOOSE.get(name, program.rel)
            )
    assert files_of(folders[0]) == files_of(folders[1])
