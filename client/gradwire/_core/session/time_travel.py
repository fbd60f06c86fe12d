"""Checkpoints, rewinds and forks of a session, and looks at its past. docs/time-travel.md shows how to use them."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Final, TypeVar, overload
from urllib.parse import quote

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, MalformedFrame, NotFound, UnknownTensor
from gradwire_protocol.frames import ID_BITS
from gradwire_protocol.meta import meta

from ..tensor.tensor import UNKNOWN_GRAD, Moved, Tensor
from . import current_session
from .kept_objects import AFTER_REWIND, KeptObjects
from .mirror_state import CarriedOver, MirrorState, live_objects
from .opened import OPENED
from .read_ahead import ReadAhead
from .session import Session

T = TypeVar("T")

VISITORS_IDS: Final = 1 << (ID_BITS - 1)
"""Ids of a visitor of the past begin here, beyond those that the session's own program will have used."""

PATIENCE_S: Final = 600.0
"""How long a server may take to replay a journal."""


class Checkpoint:
    """What the program keeps of a checkpoint: the rest is on the server.

    Attributes:
        name, frame, bytes: its name, how many frames the session had applied, and what its file takes.
    """

    def __init__(self, session: Session, row: dict[str, Any], objects: list[Any]) -> None:
        self.name: str = row["name"]
        self.frame: int = row["frame"]
        self.bytes: int = row["bytes"]
        self._session = session
        self._mirror = MirrorState(session, objects)
        self._objects = KeptObjects(objects)
        self._names, self._detached = dict(session.names), dict(session.detached)
        self._dtype, self._precision = session.default_dtype, session.matmul_precision

    def _put_back(self) -> None:
        session = self._session
        reason = (
            f"this tensor was made after the checkpoint {self.name!r}, to which the session was rewound: it is no more"
        )
        objects = live_objects()
        self._mirror.put_back(reason, objects)
        self._objects.put_back()
        session.names, session.detached = dict(self._names), dict(self._detached)
        _forget_values(session)
        session.builder.use_default_dtype(self._dtype)
        session.matmul_precision = self._precision
        current_session.use_defaults(session)
        for forget in AFTER_REWIND:
            forget()

    def __repr__(self) -> str:
        return f"<checkpoint {self.name!r} after frame {self.frame}, {self.bytes:,} bytes>"


def checkpoint(self: Session, name: str) -> Checkpoint:
    """Keep the session's state under a name, to return to it with :meth:`rewind`.

    On the server it is a file; nothing is kept in memory there but gradients that the program lets go of. In this
    program the state of proxies, optimizers, schedules and modules is kept with it. A state that had the name is
    forgotten.

    Raises:
        InvalidRequest: for a session without a journal, in a group, or in the midst of a backward or a vmap.
        LimitExceeded: for too many checkpoints, or bytes on disk.
    """
    _check_name(name)
    with _alone(self):
        row = self.rest.post(f"/v1/sessions/{self.id}/checkpoints", {"name": name}, PATIENCE_S)
        made = _checkpoints(self)[name] = Checkpoint(self, row, live_objects())
    return made


def rewind(self: Session, name: str | Checkpoint) -> None:
    """Return to a checkpoint that this program has made: tensors, gradients, graph, random state, optimizers' state and
    schedules are as they were. Tensors made since raise ``UnknownTensor`` when they are used; Python's variables, and
    random numbers of other libraries, stay as they are.

    Raises:
        ArgumentError: for a checkpoint of another program, whose tensors this one does not know: fork the session.
        NotFound: for one that was deleted.
        InvalidRequest: as :meth:`checkpoint`, and when another program has made a checkpoint of this name since.
    """
    found = _checkpoints(self).get(name.name if isinstance(name, Checkpoint) else name)
    if found is None or (isinstance(name, Checkpoint) and found is not name):
        known = ", ".join(map(repr, _checkpoints(self))) or "none"
        raise ArgumentError(
            f"this program has no checkpoint {name!r:.80} of session {self.id}, it has {known}: it does not know which "
            "of its tensors were there then. session.at(frame) and session.fork(frame) show the state"
        )
    with _alone(self):
        self.kept_uploads.clear()
        body = {"checkpoint": found.name, "frame": found.frame}
        self.rest.post(f"/v1/sessions/{self.id}/rewind", body, PATIENCE_S)
        found._put_back()


def forget_checkpoint(self: Session, name: str) -> None:
    """Delete a checkpoint, here and on the server.

    Raises:
        NotFound: when there is none of this name.
    """
    _check_name(name)
    _checkpoints(self).pop(name, None)
    self.rest.delete(f"/v1/sessions/{self.id}/checkpoints/{quote(name, safe='')}")


def history(self: Session) -> dict[str, Any]:
    """How many frames were applied (``frame``), how far back the past can be seen (``oldest``), and ``checkpoints``.

    Raises:
        InvalidRequest: for a session without a journal.
    """
    _settle(self)
    found: dict[str, Any] = self.rest.get(f"/v1/sessions/{self.id}/history")
    return found


class Fork(Session):
    """A session that began as another one was. ``fork[x]`` is what ``x`` of that session is here: a tensor, or a copy
    of a module, an optimizer, a tuple or any other object, in which the tensors are those of the fork."""

    carried: CarriedOver | None = None
    _objects: KeptObjects | None = None

    @overload
    def __getitem__(self, thing: str) -> Tensor: ...
    @overload
    def __getitem__(self, thing: T) -> T: ...

    def __getitem__(self, thing: T | str) -> T | Tensor:
        """What the fork has of a tensor or an object of the session that it was forked from; of a name, the tensor that
        has it.

        Objects are deep-copied. Optimizers, schedules and modules have the state of the moment of the fork. Those that
        refer to each other are handed over together: ``model, optimizer = fork[model, optimizer]``.

        Raises:
            ArgumentError: for a tensor that was not there when the session was forked.
        """
        if isinstance(thing, str):
            return self.tensor(thing)
        assert self.carried is not None
        memo = self.carried.memo()
        if isinstance(thing, Tensor):
            if id(thing) not in memo:
                raise ArgumentError(f"the fork has no such tensor: it was not there when {self.id} was forked")
            found: Tensor = memo[id(thing)]
            return found
        made = deepcopy(thing, memo)
        if self._objects is not None:
            for original, keeper, kept in self._objects.everything():
                copy = memo.get(id(original))
                if copy is not None:
                    keeper.put(copy, deepcopy(kept, memo))
        return made

    @contextmanager
    def active(self) -> Iterator[Fork]:
        """For the extent of the ``with``, new tensors of the program belong to the fork."""
        with current_session.active(self):
            yield self


def fork(self: Session, frame: int | None = None, *, keep: bool = False, ttl: float | None = None) -> Fork:
    """A new session that begins as this one is, and goes its own way.

    Args:
        frame: begin as it was after this frame. The program does not know its tensors then: they are found by name, or
            by ``fork.tensor(id)``.
        keep: leave it on the server when it is closed; otherwise it is deleted then.
        ttl: seconds without use after which it expires; by default as this one.

    Raises:
        InvalidRequest: for a session in a group, or in the midst of a backward or a vmap; with a past frame also for
            one without a journal.
        NotFound: for a frame that is not kept.
        TooManyRequests: when the key may have no further session.
    """
    body = {name: value for name, value in (("frame", frame), ("ttl_s", ttl)) if value is not None}
    with _alone(self):
        number = str(self.rest.post(f"/v1/sessions/{self.id}/fork", body, PATIENCE_S)["id"])
        objects = live_objects() if frame is None else None
        mirror = None if objects is None else MirrorState(self, objects)
    made = _opened(Fork, self, number, self.client, owned=not keep)
    if mirror is not None and objects is not None:
        made._objects = KeptObjects(objects)
        made.names, made.detached = dict(self.names), dict(self.detached)
        made.builder.use_default_dtype(self.default_dtype)
        made.matmul_precision = self.matmul_precision
        made.carried = mirror.carried_over(made)
    return made


class Past:
    """A session as it was after a frame. ``past["loss"]`` is the tensor of a name, ``past[tensor]`` what a tensor of
    the session was then. What is computed with them stays here, and is gone at the end: nothing of it is recorded.

    Attributes:
        frame: which.
        session: the session on the server that shows it. In it this program is a visitor.
    """

    def __init__(self, of: Session, frame: int) -> None:
        _settle(of)
        self.frame = frame
        number = str(of.rest.post(f"/v1/sessions/{of.id}/past", {"frame": frame}, PATIENCE_S)["id"])
        try:
            self.session: Session = _opened(Session, of, number, of.client)
        except MalformedFrame:  # the program was not there yet
            self.session = _opened(Session, of, number, 0)
        builder = self.session.builder
        with builder.lock:
            builder.begin()
            builder.next_id = builder.first = builder.base + VISITORS_IDS

    def __getitem__(self, key: str | int | Tensor) -> Tensor:
        """The tensor of a name or an id, or what a tensor of the session was then, as a leaf of its own.

        Raises:
            UnknownTensor: when there was none.
        """
        session = self.session
        if isinstance(key, str):
            return session.tensor(key)
        number = key._id if isinstance(key, Tensor) else key
        row = session.rows([number]).get(number)
        if row is None:
            raise UnknownTensor(f"there was no tensor {number} after frame {self.frame}")
        found: Tensor = Tensor._make(
            session, number, meta(tuple(row["shape"]), dtypes.BY_NAME[row["dtype"]], row["device"])
        )
        found._requires, found._grad_state = bool(row["requires_grad"]), UNKNOWN_GRAD
        found.__class__ = Moved  # a visitor releases nothing
        return found

    def __contains__(self, name: str) -> bool:
        return any(row["name"] == name for row in self.names())

    def names(self) -> list[dict[str, Any]]:
        """Rows of the named tensors."""
        return _rows(self.session, "names", "name")

    def tensors(self) -> list[dict[str, Any]]:
        """Rows of all tensors: id, shape, dtype, name, ..."""
        return _rows(self.session, "tensors", "id")

    def graph(self, *tensors: Tensor) -> dict[str, Any]:
        """Nodes and edges of the graph behind these tensors, or of all."""
        return self.session.graph(*tensors)

    def memory(self) -> dict[str, int]:
        """What the tensors occupied, in bytes."""
        return self.session.memory()

    def move(self, frame: int) -> None:
        """Show another frame. Tensors that were got before are no more. To later frames it goes on from where it is.

        Raises:
            NotFound: for a frame that is not kept.
        """
        if frame == self.frame:
            return
        session = self.session
        _settle(session)
        session.kept_uploads.clear()
        session.rest.put(f"/v1/sessions/{session.id}/past", {"frame": frame}, PATIENCE_S)
        self.frame = frame
        _forget_values(session)

    def close(self) -> None:
        """Let go of it."""
        self.session.close()

    def __enter__(self) -> Past:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<session {self.session.id}: a past one after frame {self.frame}>"


def at(self: Session, frame: int) -> Past:
    """A look at the session as it was after a frame, counted over all its clients: :attr:`Past`. Close it after use.

    Raises:
        InvalidRequest: for a session without a journal.
        NotFound: for a frame that is not kept; the message says how far back the journal reaches.
        TooManyRequests: when the key may have no further session.
    """
    return Past(self, _checked_frame(frame))


def find_first(
    predicate: Callable[[Past], Any],
    *,
    session: Session | None = None,
    first: int | None = None,
    last: int | None = None,
    monotone: bool = False,
) -> int | None:
    """The first frame after which a predicate of the session's state holds; ``None`` if it never does.

    Args:
        predicate: called with the session as it was (:class:`Past`); a tensor of one element counts as its value. A
            name or tensor that is not there yet counts as False.
        session: by default the current one.
        first, last: between which frames to look, both included; by default all that are kept.
        monotone: the predicate stays true once it is, as that of a NaN in a weight. Then halves are tried, about
            log2(frames) of them. Otherwise every frame is looked at in order, so that nothing is assumed.

    Raises:
        InvalidRequest: for a session without a journal.
    """
    of = current_session.current_session() if session is None else session
    kept = of.history()
    low = kept["oldest"] if first is None else _checked_frame(first)
    high = kept["frame"] if last is None else _checked_frame(last)
    if low > high:
        return None
    with Past(of, low) as past:
        if not monotone:
            for frame in range(low, high + 1):
                past.move(frame)
                if _holds(predicate, past):
                    return frame
            return None
        if _holds(predicate, past):
            return low
        past.move(high)
        if not _holds(predicate, past):
            return None
        while high - low > 1:  # it does not hold at low, and holds at high
            middle = (low + high) // 2
            past.move(middle)
            if _holds(predicate, past):
                high = middle
            else:
                low = middle
        return high


def _holds(predicate: Callable[[Past], Any], past: Past) -> bool:
    try:
        return bool(predicate(past))
    except (NotFound, UnknownTensor):
        return False


def find_value(self: Session, value: str = "nan", name: str = "") -> dict[str, Any] | None:
    """Which frame, op and line of the program made the first value of a kind: the server replays what is kept once.

    Args:
        value: ``"nan"``, ``"inf"`` or ``"nonfinite"``.
        name: look only at the tensor that has this name after each frame; by default at all that any op makes.

    Returns:
        ``frame``, ``op``, ``line`` (``file:line``, empty if unknown), ``node`` (of the graph, where a derivative made
        it), ``shape`` and more, or ``None``.

    Raises:
        InvalidRequest: for a session without a journal.
    """
    _settle(self)
    query = f"value={quote(value, safe='')}&name={quote(name, safe='')}"
    found: dict[str, Any] | None = self.rest.get(f"/v1/sessions/{self.id}/history/search?{query}", PATIENCE_S)["found"]
    return found


@contextmanager
def _alone(session: Session) -> Iterator[None]:
    """For the extent of the ``with``, no other thread records, and all that was recorded is done."""
    with session.lock:
        session.builder.begin()
        _settle(session)
        yield


def _settle(session: Session) -> None:
    """Wait until everything recorded so far is done, and raise the first error among it. Where that is so already, no
    frame is sent, since it would count."""
    if session.builder.records or session.link.unanswered:
        session.synchronize()


def _opened(kind: type[Any], like: Session, number: str, client: int, owned: bool = True) -> Any:
    made = kind(like.url, number, like.api_key, owned=owned, device=like.device, client=client)
    atexit.register(made.close)
    OPENED.append(made)
    return made


def _rows(session: Session, what: str, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = session.rest.get(f"/v1/sessions/{session.id}/{what}" + (f"?after={after}" if after else ""))
        found += page[what]
        if page["next"] is None:
            return found
        after = quote(str(page["next"]), safe="")


def _forget_values(session: Session) -> None:
    """Forget what was read, and what is expected to be read next."""
    session.kept_uploads.clear()
    session.builder.changes += 1
    session.read_ahead = ReadAhead(session.builder, session.reader)


def _checkpoints(session: Session) -> dict[str, Checkpoint]:
    found: dict[str, Checkpoint] = session.__dict__.setdefault("_checkpoints", {})
    return found


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"the name of a checkpoint is a str, not {type(name).__name__}")
    if not name or len(name) > 200 or "/" in name or min(name) < " ":
        raise ArgumentError(
            f"the name of a checkpoint has 1 to 200 printable characters and no slash, not {name!r:.80}"
        )


def _checked_frame(frame: int) -> int:
    if type(frame) is not int:
        raise ArgumentTypeError(f"a frame is an int, not {type(frame).__name__}")
    if frame < 0:
        raise ArgumentError(f"frames count from 0, the empty session, not from {frame}")
    return frame


for _name, _function in {
    "checkpoint": checkpoint, "rewind": rewind, "forget_checkpoint": forget_checkpoint, "history": history,
    "fork": fork, "at": at, "find_value": find_value,
}.items():  # fmt: skip
    setattr(Session, _name, _function)
