"""Programs that docker/test.sh runs against a container: one returns to its session, one uses too much memory.

``session.py begin NOTES`` trains some steps in a session that it keeps, and writes the session's id and the result of
an undisturbed training to NOTES. ``session.py resume NOTES`` rejoins the session and continues. ``session.py overflow
NOTES`` allocates more memory than the container has. ``GRADWIRE_URL`` and ``GRADWIRE_API_KEY`` name the server.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import httpx

import gradwire as torch
from gradwire._core.session.session import Session
from gradwire_protocol.errors import OutOfMemory, WorkerDied

BEFORE, AFTER = 6, 9
RATE = 0.05
TOO_MUCH = 3 << 30
"""Bytes; more than the container has."""


def new_session() -> str:
    """Return the id of a session that outlives its program."""
    headers = {"Authorization": f"Bearer {os.environ['GRADWIRE_API_KEY']}"}
    answer = httpx.post(f"{os.environ['GRADWIRE_URL']}/v1/sessions", headers=headers, json={"seed": 7}, timeout=60)
    answer.raise_for_status()
    found: str = answer.json()["id"]
    return found


def prepare() -> None:
    """Create named weights and data."""
    for name, shape in (("weights", (8, 4)), ("inputs", (32, 8)), ("targets", (32, 4))):
        torch.randn(*shape, requires_grad=name == "weights").set_name(name)


def train(session: Session, steps: int) -> list[list[float]]:
    """Train the session's weights, with noise from its own generator, and return them."""
    weights, inputs, targets = (session.tensor(name) for name in ("weights", "inputs", "targets"))
    for _ in range(steps):
        loss = (((inputs + 0.1 * torch.randn(32, 8)) @ weights).tanh() - targets).square().mean()
        loss.backward()
        with torch.no_grad():
            weights.sub_(weights.grad, alpha=RATE)
        weights.grad = None
    found: list[list[float]] = weights.detach().tolist()
    return found


def begin(notes: Path) -> int:
    """Train to the middle in one session, and to the end in another."""
    kept, undisturbed = new_session(), new_session()
    with torch.connect(session=undisturbed) as session:
        prepare()
        wanted = train(session, BEFORE + AFTER)
    with torch.connect(session=kept) as session:
        prepare()
        reached = train(session, BEFORE)
    notes.write_text(json.dumps({"session": kept, "wanted": wanted, "reached": reached}), encoding="utf-8")
    print(f"trained {BEFORE} steps in session {kept}")
    return 0


def resume(notes: Path) -> int:
    """Continue from the middle. Returns 0 if nothing was lost and the result is that of the undisturbed training."""
    noted = json.loads(notes.read_text(encoding="utf-8"))
    with torch.connect(session=noted["session"]) as session:
        if session.tensor("weights").detach().tolist() != noted["reached"]:
            print("the weights differ from those before", file=sys.stderr)
            return 1
        if train(session, AFTER) != noted["wanted"]:
            print("the result differs from that of an undisturbed training", file=sys.stderr)
            return 1
    print(f"trained {AFTER} more in session {noted['session']}: bit for bit the undisturbed training")
    return 0


def overflow(notes: Path) -> int:
    """Fill the container's memory. Returns 0 if only this session fails and another one works."""
    part = 1 << 28
    try:
        with torch.connect():
            kept = [torch.ones(part // 4) * each for each in range(TOO_MUCH // part)]
            print(f"{TOO_MUCH} bytes were allocated: {[each[0].item() for each in kept]}", file=sys.stderr)
            return 1
    except (OutOfMemory, WorkerDied) as error:
        told = f"{type(error).__name__}: {error}"
    with torch.connect():
        if torch.ones(3).sum().item() != 3:
            return 1
    notes.write_text(json.dumps({"error": told}), encoding="utf-8")
    print(f"too much memory is an error of its session alone ({told.partition(':')[0]})")
    return 0


if __name__ == "__main__":
    sys.exit({"begin": begin, "resume": resume, "overflow": overflow}[sys.argv[1]](Path(sys.argv[2])))
