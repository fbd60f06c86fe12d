"""Errors of gradwire's are shown without gradwire's frames; exceptions themselves keep all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from typing import Any

import pytest

import gradwire as torch
from gradwire._core.context import call_sites, tracebacks
from gradwire._core.context.tracebacks import shortened, without_our_frames

PROGRAM = """
import threading
import gradwire as torch
from gradwire import nn

class Model(nn.Module):
    def forward(self, x):
        return x @ torch.ones(3, 3)

def train():
    Model()(torch.ones(2, 2))
"""


def run(ending: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + ending], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.stderr


def raised(function: Any) -> BaseException:
    with pytest.raises(torch.GradwireError) as found:
        function()
    return found.value


def files(trace: Any) -> list[str]:
    return [os.path.basename(frame.filename) for frame in traceback.extract_tb(trace)]


def wrong() -> Any:
    return torch.ones(2, 2) @ torch.ones(3, 3)


def test_a_program_ends_with_its_own_lines_and_how_many_frames_are_left_out() -> None:
    printed = run("train()\n")
    assert printed.count('File "<string>"') == 3 and "/gradwire" not in printed
    assert "ShapeError: matmul: shapes [2, 2] and [3, 3]" in printed
    assert "frames inside gradwire left out; GRADWIRE_TRACEBACK=full shows all)" in printed


def test_full_tracebacks_are_a_setting() -> None:
    printed = run("train()\n", GRADWIRE_TRACEBACK="full")
    assert "dispatch.py" in printed and "left out" not in printed


def test_a_setting_that_is_not_known_hides_nothing() -> None:
    assert "dispatch.py" in run("train()\n", GRADWIRE_TRACEBACK="shrt")


def test_errors_of_threads_are_short_too() -> None:
    printed = run("t = threading.Thread(target=train, name='worker')\nt.start(); t.join()\n")
    assert "Exception in thread worker" in printed and "/gradwire" not in printed and "left out" in printed


def test_other_exceptions_are_shown_whole() -> None:
    printed = run("class Bad(nn.Module):\n    def forward(self, x):\n        return 1 / 0\nBad()(1)\n")
    assert "ZeroDivisionError" in printed and "hooked.py" in printed and "left out" not in printed


def test_a_hook_of_the_programs_own_is_called_with_the_short_error() -> None:
    printed = run("""
import sys, importlib
from gradwire._core.context import tracebacks
def mine(kind, error, trace):
    trace, count = error.__traceback__, 0
    while trace is not None:
        trace, count = trace.tb_next, count + 1
    print("mine", kind.__name__, count, file=sys.stderr)
sys.excepthook = mine
tracebacks.install()
wrong = train()
""")
    assert "mine ShapeError 3\n" in printed


def test_programs_that_catch_an_error_see_all_of_it() -> None:
    error = raised(wrong)
    assert "dispatch.py" in files(error.__traceback__)
    before = error.__traceback__
    with shortened(error) as hidden:
        assert hidden == len(files(before)) - len(files(error.__traceback__)) > 0
        assert files(error.__traceback__) == ["test_tracebacks.py"] * 2
    assert error.__traceback__ is before
    assert "dispatch.py" in "".join(traceback.format_exception(error))


def test_frames_of_the_program_between_ours_are_kept() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return wrong()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    error = raised(lambda: Doubled.apply(torch.ones(2)))
    names = [frame.name for frame in traceback.extract_tb(without_our_frames(error.__traceback__))]
    assert names[-3:] == ["<lambda>", "forward", "wrong"]


def test_what_led_to_an_error_is_shown_if_the_program_had_a_part_in_it() -> None:
    def again() -> None:
        try:
            wrong()
        except torch.ShapeError as first:
            raise torch.GraphError("second") from first

    error = raised(again)
    with shortened(error):
        assert isinstance(error.__cause__, torch.ShapeError)
        assert "dispatch.py" not in files(error.__cause__.__traceback__)
    assert error.__cause__ is not None and "dispatch.py" in files(error.__cause__.__traceback__)


def test_what_happened_inside_of_gradwire_altogether_is_not_shown() -> None:
    """Such as a socket's error, which has no line of the program."""
    error = raised(made["wrapped"])
    cause = error.__cause__
    assert cause is not None and without_our_frames(cause.__traceback__) is None
    with shortened(error) as hidden:
        assert hidden >= 1 and error.__cause__ is None and error.__suppress_context__
        assert "ValueError" not in "".join(traceback.format_exception(error))
    assert error.__cause__ is cause and cause.__traceback__ is not None


WRAPPING = """
def wrapped():
    try:
        int("x")
    except ValueError as cause:
        raise GraphError("told") from cause
"""
made: dict[str, Any] = {"GraphError": torch.GraphError}
exec(compile(WRAPPING, os.path.join(call_sites.PACKAGE, "wrapping.py"), "exec"), made)  # noqa: S102


def test_an_error_that_no_frame_of_the_program_led_to_is_shown_whole() -> None:
    error = torch.GraphError("never raised")
    with shortened(error) as hidden:
        assert hidden == 0


def test_installing_twice_wraps_once(monkeypatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    tracebacks.install()
    once = sys.excepthook
    tracebacks.install()
    assert sys.excepthook is once and once is not sys.__excepthook__
