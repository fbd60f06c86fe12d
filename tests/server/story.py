"""A scripted session for journal tests: records for a runner, and the expected session after each.

It contains everything that a journal must carry: clients that join and resume, uploads in chunks and inline, a
training loop with dropout whose steps repeat as hashes, a graph that spans frames, views and writes through them,
failed ops and their dependents, JSON frames, releases, and inspections.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gradwire_engine.autograd.failures import Poison
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.session.session import Session
from gradwire_protocol import dtypes
from gradwire_protocol.frames import Chunk, Frame, Payload, Reply, structure_hash
from gradwire_server.durable.disk import Disk
from gradwire_server.durable.manifest import Manifest, read_mark, read_owner
from gradwire_server.hosting.runner import Runner
from gradwire_server.http.shortcut_frames import ShortcutFrame
from gradwire_server.settings.session_spec import JournalPolicy, SessionSpec

CLIENT = 2
BASE = CLIENT << 32
X, Y, W1, W2, VIEW, ALIVE, LOST = (BASE + i for i in range(1, 8))
LIMITS = {"max_tensor_bytes": 1 << 20}

Act = Callable[[Runner], Any]


@dataclass(frozen=True)
class Event:
    """One thing that happens to the session. ``frame`` is there for those that are frames."""

    name: str
    act: Act
    frame: Frame | None = None
    buffers: tuple[memoryview, ...] = ()


class Story:
    """Events in their order. Every one of them makes one record."""

    def __init__(self, steps: int = 4) -> None:
        self.events: list[Event] = []
        self._seq = 0
        self._next = BASE + 100
        self._known: set[bytes] = set()
        self._tell(steps)

    # Writing it

    def _tell(self, steps: int) -> None:
        random = np.random.default_rng(7)
        weights = random.standard_normal((8, 8)).astype(np.float32).tobytes()
        self._event("a client joins", lambda r: r.join(0, "program-a", 0))
        for at in (0, 128):
            piece = memoryview(weights[at : at + 128])
            self._event("a chunk", lambda r, at=at, piece=piece: r.add_chunk(CLIENT, Chunk(1, at, 256), piece))
        data = random.standard_normal((2, 16, 8)).astype(np.float32)
        self._frame("uploads", self._uploads, list(map(memoryview, (data[0].tobytes(), data[1].tobytes()))))
        for number in range(steps):
            self._frame(f"step {number}", lambda b, n=number: self._step(b, n))
            if number == 0:
                self._frame("a graph is kept", self._keep_alive)
                self._frame("a view is written to", self._write_view)
            if number == 1:
                self._event("it resumes", lambda r: r.join(CLIENT, "program-a", 1))
                self._frame("an op fails", self._fail)
                self._frame("a limit", self._pass_limit)
                self._people("people look", {"ops": [["mean", [-1]]], "reads": [0]}, [W1])
            if number == 2:
                self._event("another joins", lambda r: r.join(0, "program-b", 0))
                self._frame("the kept graph is used", self._use_alive)
        self._frame("releases", lambda b: [b.release(each) for each in (VIEW, LOST, ALIVE)])

    def _uploads(self, b: ShortcutFrame) -> None:
        for buffer in (0, 1):
            b.record("upload", Payload(buffer=buffer), dtypes.float32, (16, 8), "cpu")
        (w1,) = b.record("upload", Payload(upload=1), dtypes.float32, (8, 8), "cpu")
        (w2,) = b.record("randn", (8, 8))
        b.record("requires_grad_", w1, True)
        b.record("requires_grad_", w2, True)
        b.record("set_name", w1, "first.weight")

    def _step(self, b: ShortcutFrame, number: int) -> None:
        x, y, w1, w2 = map(b.tensor, (X, Y, W1, W2))
        (hidden,) = b.record("mm", x, w1)
        (hidden,) = b.record("relu", hidden)
        kept, mask = b.record("dropout", hidden, 0.25, True)
        (out,) = b.record("mm", kept, w2)
        (loss,) = b.record("mse_loss", out, y)
        b.record("zero_grad", [w1, w2])
        b.record("backward", [loss], [None])
        b.record("sgd_step", [w1, w2], [None, None], 0.1)
        b.read(loss)
        b.drop(hidden, kept, mask, out)

    def _keep_alive(self, b: ShortcutFrame) -> None:
        (alive,) = b.record("mm", b.tensor(X), b.tensor(W1))
        b.record("exp", alive)

    def _write_view(self, b: ShortcutFrame) -> None:
        (base,) = b.record("sum", b.tensor(X), (0,))
        (view,) = b.record("select", b.tensor(X), 0, 3)
        b.record("mul_", view, 2)
        b.read(base)

    def _fail(self, b: ShortcutFrame) -> None:
        (broken,) = b.record("mm", b.tensor(X), b.tensor(X))
        (lost,) = b.record("exp", broken)
        b.read(lost)

    def _pass_limit(self, b: ShortcutFrame) -> None:
        (large,) = b.record("randn", (1 << 20,))
        b.record("randn", (3,))
        b.read(large)

    def _use_alive(self, b: ShortcutFrame) -> None:
        alive = b.tensor(self._alive)
        (loss,) = b.record("sum", alive)
        b.record("backward", [loss], [None], None, True)
        (gradient,) = b.record("grad_of", b.tensor(W2))
        b.read(gradient)

    def _event(self, name: str, act: Act) -> None:
        self.events.append(Event(name, act))

    def _frame(self, name: str, write: Callable[[ShortcutFrame], Any], buffers: list[memoryview] | None = None) -> None:
        first = X if self._seq == 0 else self._next
        builder = ShortcutFrame(CLIENT, first)
        write(builder)
        if name == "a graph is kept":
            self._alive = first + 1
        self._next += 20
        self._seq += 1
        frame = builder.build(False, buffers).frame
        frame.seq, frame.ack = self._seq, max(self._seq - 3, 0)
        encoded = bytes(frame.structure)
        frame.hash = structure_hash(encoded)
        if frame.hash in self._known:
            frame.structure = msgspec.Raw()
        self._known.add(frame.hash)
        self._apply(name, frame, buffers or [], False)

    def _people(self, name: str, structure: Any, external: list[int]) -> None:
        frame = Frame(structure=msgspec.Raw(msgspec.json.encode(structure)), external=external)
        self._apply(name, frame, [], True)

    def _apply(self, name: str, frame: Frame, buffers: list[memoryview], human: bool) -> None:
        def act(runner: Runner) -> Reply:
            reply, _ = runner.apply(msgspec.structs.replace(frame), buffers, human)
            assert reply.refused is None, reply.refused
            return reply

        self.events.append(Event(name, act, frame, tuple(buffers)))

    # Telling it

    def play(self, runner: Runner, begin: int = 0, end: int | None = None) -> None:
        """Let events happen, each committed by itself."""
        for event in self.events[begin:end]:
            event.act(runner)
            runner.commit()

    def states(self) -> list[str]:
        """What the session is after 0, 1, 2, ... records, by a runner that keeps no journal."""
        runner = Runner(spec("none"))
        found = [fingerprint(runner.session)]
        for event in self.events:
            event.act(runner)
            found.append(fingerprint(runner.session))
        return found


def spec(durability: Any = "applied", name: str = "s_story", tenant: str = "") -> SessionSpec:
    """The session that the story is of."""
    return SessionSpec(id=name, tenant=tenant, durability=durability, seed=11, created=1.0, limits=LIMITS)


def policy(journal_bytes: int = 1 << 30) -> JournalPolicy:
    """Unless asked otherwise, no journal of a test is long enough to be replaced."""
    return JournalPolicy(journal_bytes, 0)


def new_runner(folder: Path, durability: Any = "applied", journal_bytes: int = 1 << 30, **more: Any) -> Runner:
    """A runner with a fresh folder."""
    return Runner(spec(durability), folder, policy=policy(journal_bytes), **more)


def forget_commits(folder: Path) -> None:
    """Leave the manifest as it was when its journal was begun: as a machine that lost its power may."""
    owner, mark = read_owner(folder), read_mark(folder, folder.name)
    assert owner is not None
    Manifest.begin(Disk(), folder, owner, mark._replace(last=mark.base, synced=mark.base)).close()


def fingerprint(session: Session) -> str:
    """Everything in a session that a client could ever notice, in one digest."""
    found = hashlib.blake2b(digest_size=16)

    def note(*facts: Any) -> None:
        found.update(repr(facts).encode())

    for tensor_id, held in sorted(session.ids.items()):
        _note_held(session, note, found.update, tensor_id, held)
    for name, tensor in sorted(session.engine.names.items()):
        _note_held(session, note, found.update, name, tensor)
    note(session.engine.generator.get_state(), session.engine._seq, session.engine.account.nodes)
    note(session.frames_applied, session.ops_run, [key.hex() for key in session.structures])
    for number, client in sorted(session.clients.items()):
        note(number, client.expected, client.counter, client.instance, client.epoch)
        note([problem_code(client.failed_backward), len(client.failed_writes)])
        for seq, (reply, buffers) in client.replies.items():
            note(seq, msgspec.msgpack.encode(msgspec.structs.replace(reply, timing=None)))
            for buffer in buffers:
                found.update(buffer)
    for key, (buffer, filled) in sorted(session.uploads.items()):
        note(key, len(buffer), filled)
        found.update(buffer[:filled])
    return found.hexdigest()


def problem_code(problem: Any) -> str:
    return "" if problem is None else problem.code


def _note_held(session: Session, note: Any, update: Any, name: Any, held: Any) -> None:
    if isinstance(held, Poison):
        note(name, held.problem.code, held.problem.detail)
        return
    if not isinstance(held, Tensor):
        note(name, None)
        return
    node = held._grad_fn  # not grad_fn, nor what asks for it: that may bring the history of a view up to date
    note(name, held.meta, held.requires_grad_flag, held.storage.version, node.name if node else None)
    note(problem_code(held.storage.poison))
    update(np.ascontiguousarray(session.engine.to_numpy(held)).reshape(-1).view(np.uint8))
    if held.grad is not None:
        _note_held(session, note, update, "grad", held.grad)
