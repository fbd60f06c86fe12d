"""Runs a code block unchanged, under torch and with gradwire in place of torch, and compares the output.

The blocks are the documents' own. Comments mark repairs (lost indentation, undefined names). Random numbers cannot be
torch's: ``given`` replaces ``torch.randn``.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from dataclasses import dataclass, field

import gradwire
from tests.side_by_side import built_in

GIVEN = '''
import math
import torch

def given(*size, **options):
    """Numbers without a pattern, the same in both libraries: what these documents draw with randn."""
    count = math.prod(size)
    values = [((i * 7919 + 13) % 101 - 50) / 29 for i in range(count)]
    requires_grad = options.pop("requires_grad", False)
    return torch.tensor(values, **options).reshape(size).detach().requires_grad_(requires_grad)
'''

# What the documents' training loops leave open: a model, data, a loss, an optimizer.
TRAINING = (
    GIVEN
    + """
import torch.nn as nn
torch.set_default_dtype(torch.float64)  # so that rounding does not show in the digits printed
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.copy_(given(*parameter.shape))
X, y = given(8, 3), given(8, 1)
dataloader = [(X, y), (X * 0.5, y - 1)]
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.set_default_dtype(torch.float32)
"""
)

# What shows that a block trained what it should.
WEIGHTS = """
for name, parameter in model.named_parameters():
    print(name, parameter, parameter.grad)
"""


@dataclass
class Ran:
    """What a block printed, warned of and raised."""

    printed: str
    warned: list[str] = field(default_factory=list)
    raised: str | None = None


def run(code: str, library: str, before: str = "") -> Ran:
    """Run a block under ``"torch"`` or ``"gradwire"``, after set-up code whose output does not count."""
    space: dict[str, object] = {"__name__": "block"}
    exec(compile(translated(before, library), "<set-up>", "exec"), space)  # noqa: S102
    out = io.StringIO()
    raised = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            exec(compile(translated("import torch\n" + code, library), "<block>", "exec"), space)  # noqa: S102
        except Exception as error:
            raised = built_in(error)
    if library == "gradwire":
        gradwire.current_session().synchronize()  # no error of a block waits for what comes after it
    return Ran(normalised(out.getvalue()), sorted({w.category.__name__ for w in caught}), raised)


def translated(code: str, library: str) -> str:
    """The code with gradwire imported in torch's place."""
    if library == "torch":
        return code
    code = re.sub(r"^(\s*)import torch\.nn as nn", r"\1import gradwire.nn as nn", code, flags=re.MULTILINE)
    code = re.sub(r"^(\s*)import torch$", r"\1import gradwire as torch", code, flags=re.MULTILINE)
    return re.sub(r"^(\s*)from torch(\.[\w.]+)? import", r"\1from gradwire\2 import", code, flags=re.MULTILINE)


def normalised(text: str) -> str:
    """Printed text without the addresses of objects."""
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def compare(code: str, before: str = GIVEN) -> Ran:
    """Run a block both ways and assert that all it shows is equal. Returns what torch showed."""
    expected, actual = run(code, "torch", before), run(code, "gradwire", before)
    assert actual == expected, f"torch:\n{expected}\ngradwire:\n{actual}"
    return expected
