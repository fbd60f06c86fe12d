"""What docker/test.sh runs against a container: a program that comes back to its session, and one that takes too much.

``session.py begin NOTES`` trains for some steps in a session that it leaves behind, and notes the session's id and what
an undisturbed training ends with. ``session.py resume NOTES`` joins the session again and trains on. ``session.py
overflow NOTES`` asks for more memory than the container has. The server is that of ``GRADWIRE_URL`` and
``GRADWIRE_API_KEY``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import httpx

import gradwire as torch
from gradwire.session import Session
from gradwire_protocol.errors import OutOfMemory, WorkerDied

BEFORE, AFTER = 6, 9
RATE = 0.05
TOO_MUCH = 3 << 30
"""Bytes; more than what the container is given."""


def new_session() -> str:
    """The id of a session that stays when its program ends."""
    headers = {"Authorization": f"Bearer {os.environ['GRADWIRE_API_KEY']}"}
    answer = httpx.post(f"{os.environ['GRADWIRE_URL']}/v1/sessions", headers=headers, json={"seed": 7}, timeout=60)
    answer.raise_for_status()
    found: str = answer.json()["id"]
    return found


def prepare() -> None:
    """Weights and data, under names."""
    for name, shape in (("weights", (8, 4)), ("inputs", (32, 8)), ("targets", (32, 4))):
        torch.randn(*shape, requires_grad=name == "weights").set_name(name)


def train(session: Session, steps: int) -> list[list[float]]:
    """Train what the session holds, with noise from its own generator. Returns the weights."""
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
    """Go on from the middle. Returns 0 if nothing was lost and the end is that of the undisturbed training."""
    noted = json.loads(notes.read_text(encoding="utf-8"))
    with torch.connect(session=noted["session"]) as session:
        if session.tensor("weights").detach().tolist() != noted["reached"]:
            print("the weights are not those that were left", file=sys.stderr)
            return 1
        if train(session, AFTER) != noted["wanted"]:
            print("the training ends elsewhere than an undisturbed one", file=sys.stderr)
            return 1
    print(f"trained {AFTER} more in session {noted['session']}: bit for bit the undisturbed training")
    return 0


def overflow(notes: Path) -> int:
    """Fill the container's memory. Returns 0 if that is an error of one session, and another one works."""
    part = 1 << 28
    try:
        with torch.connect():
            kept = [torch.ones(part // 4) * each for each in range(TOO_MUCH // part)]
            print(f"{TOO_MUCH} bytes were had: {[each[0].item() for each in kept]}", file=sys.stderr)
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
