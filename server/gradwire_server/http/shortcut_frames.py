"""Frames that the server builds for REST shortcuts. They are submitted like any other frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gradwire_protocol import ops as _ops  # noqa: F401  (fills the table)
from gradwire_protocol.frames import ID_BITS, MAX_ID, Frame, Payload, Structure
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import lookup

from .tensor_formats import Incoming

PEOPLE: Final = 0
"""The client number of REST users, who choose their ids below 2**32 themselves."""

SERVER: Final = 1
"""The client number of frames built here; their results get the session's next ids."""


@dataclass(frozen=True)
class BuiltFrame:
    """A frame to submit. ``human``: its structure is JSON and its values are nested lists."""

    frame: Frame
    buffers: list[memoryview]
    human: bool


class Ref(int):
    """A reference to a tensor, as a frame's structure encodes it."""


class ShortcutFrame:
    """Collects records, reads and releases for a frame.

    Args:
        client: the client whose ids the results get.
        first: id of the first result; 0 lets the session choose.
    """

    def __init__(self, client: int = SERVER, first: int = 0) -> None:
        self.client = client
        self.first = first
        self._ops: list[Any] = []
        self._made = 0
        self._reads: list[int] = []
        self._drops: list[int] = []
        self._releases: list[int] = []
        self._external: dict[int, Ref] = {}
        self._named: dict[str, Ref] = {}
        self._keeps: dict[str, int | None] = {}
        self._scalars: list[Any] = []
        self._payloads: list[Payload] = []

    def tensor(self, tensor_id: int) -> Ref:
        """A reference to a tensor of the session."""
        return self._external.setdefault(tensor_id, Ref(-1 - len(self._external)))

    def named(self, name: str) -> Ref:
        """A reference to the tensor of this name. A frame uses either names or ids."""
        assert not self._external
        return self._named.setdefault(name, Ref(-1 - len(self._named)))

    def keep(self, name: str, ref: Ref | None) -> None:
        """Give a result a name instead of an id; ``None`` removes the name."""
        self._keeps[name] = None if ref is None else int(ref)

    def record(self, name: str, *args: Any, results: int | None = None, **kwargs: Any) -> list[Ref]:
        """Add an op with Python-style arguments; tensors are references. ``results`` is the number of results if the
        op's declaration leaves it open.

        Raises:
            ArgumentTypeError: for invalid arguments.
        """
        op = lookup(name)
        args_ = encode_args(op, op.bind(args, kwargs), _is_ref, int, self._scalars, self._payloads)
        count = op.results if op.results is not None else results or 0
        self._ops.append((name, args_) if op.results is not None else (name, args_, count))
        refs = [Ref(self._made + i) for i in range(count)]
        self._made += count
        return refs

    def read(self, *refs: Ref) -> None:
        """Read values."""
        self._reads.extend(int(ref) for ref in refs)

    def drop(self, *refs: Ref) -> None:
        """Release results at the end of the frame."""
        self._drops.extend(int(ref) for ref in refs)

    def release(self, tensor_id: int) -> None:
        """Release a tensor of the session."""
        self._releases.append(tensor_id)

    def build(self, human: bool, buffers: list[memoryview] | None = None) -> BuiltFrame:
        """The frame with its raw buffers. ``human``: values are nested lists."""
        encode = msgspec.json.encode if human else msgspec.msgpack.encode
        frame = Frame(
            client=self.client,
            first=self.first,
            structure=msgspec.Raw(encode(Structure(self._ops, self._reads, self._drops, keeps=self._keeps))),
            external=list(self._external),
            named=list(self._named),
            scalars=self._scalars,
            payloads=self._payloads,
            releases=self._releases,
            # These frames are never retried, so the session need not keep earlier replies.
            ack=MAX_ID if self.client == SERVER else 0,
        )
        return BuiltFrame(frame, buffers or [], human)


def _is_ref(value: Any) -> bool:
    return type(value) is Ref


def owner(tensor_id: int) -> int:
    """The client that owns an id."""
    return tensor_id >> ID_BITS


def upload(tensor_id: int, new: Incoming, device: str, requires_grad: bool, name: str | None) -> BuiltFrame:
    """Create a tensor with an id that the user chose."""
    frame = ShortcutFrame(PEOPLE, tensor_id)
    (made,) = frame.record("upload", new.payload, new.dtype, new.shape, device)
    if requires_grad:
        frame.record("requires_grad_", made, True)
    if name is not None:
        frame.record("set_name", made, name)
    return frame.build(new.human, new.buffers)


def overwrite(tensor_id: int, new: Incoming, device: str, name: str | None) -> BuiltFrame:
    """Write new values into a tensor in place, without recording a gradient."""
    frame = ShortcutFrame()
    target = frame.tensor(tensor_id)
    frame.record("set_mode", 0)
    (values,) = frame.record("upload", new.payload, new.dtype, new.shape, device)
    frame.record("copy_", target, values)
    frame.drop(values)
    if name is not None:
        frame.record("set_name", target, name)
    return frame.build(new.human, new.buffers)


def read(tensor_id: int, human: bool) -> BuiltFrame:
    """Read a tensor."""
    frame = ShortcutFrame()
    frame.read(frame.tensor(tensor_id))
    return frame.build(human)


def probe(tensor_id: int, *, release: bool = False) -> BuiltFrame:
    """Read a tensor's shape as an int64 tensor, and optionally release the tensor."""
    frame = ShortcutFrame()
    (shape,) = frame.record("shape_of", frame.tensor(tensor_id))
    frame.read(shape)
    frame.drop(shape)
    if release:
        frame.release(tensor_id)
    return frame.build(human=True)


def upload_named(name: str, new: Incoming, device: str, requires_grad: bool) -> BuiltFrame:
    """Create a tensor with a name."""
    frame = ShortcutFrame()
    (made,) = frame.record("upload", new.payload, new.dtype, new.shape, device)
    if requires_grad:
        frame.record("requires_grad_", made, True)
    frame.keep(name, made)
    return frame.build(new.human, new.buffers)


def overwrite_named(name: str, new: Incoming, device: str) -> BuiltFrame:
    """Write new values into a named tensor in place, without recording a gradient."""
    frame = ShortcutFrame()
    target = frame.named(name)
    frame.record("set_mode", 0)
    (values,) = frame.record("upload", new.payload, new.dtype, new.shape, device)
    frame.record("copy_", target, values)
    frame.drop(values)
    return frame.build(new.human, new.buffers)


def read_named(name: str, human: bool) -> BuiltFrame:
    """Read a named tensor."""
    frame = ShortcutFrame()
    frame.read(frame.named(name))
    return frame.build(human)


def forget_name(name: str) -> BuiltFrame:
    """Remove a name, which releases a tensor that nothing else holds."""
    frame = ShortcutFrame()
    frame.keep(name, None)
    return frame.build(human=True)


def backward(
    tensors: Sequence[int],
    gradients: Sequence[int | None] | None,
    inputs: Sequence[int] | None,
    retain_graph: bool,
    create_graph: bool,
    grads_of: Sequence[int],
) -> BuiltFrame:
    """Run backward, then read the gradients of some tensors."""
    frame = ShortcutFrame()
    refs = [frame.tensor(t) for t in tensors]
    initial = [None if g is None else frame.tensor(g) for g in gradients or [None] * len(refs)]
    targets = None if inputs is None else [frame.tensor(t) for t in inputs]
    frame.record("backward", refs, initial, targets, retain_graph, create_graph)
    for tensor_id in grads_of:
        (gradient,) = frame.record("grad_of", frame.tensor(tensor_id))
        frame.read(gradient)
        frame.drop(gradient)
    return frame.build(human=True)


def grad(
    outputs: Sequence[int],
    inputs: Sequence[int],
    grad_outputs: Sequence[int | None] | None,
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
    keep: bool,
) -> BuiltFrame:
    """Compute gradients and read them; ``keep`` keeps them in the session under the reply's ids."""
    frame = ShortcutFrame()
    refs = [frame.tensor(t) for t in outputs]
    initial = [None if g is None else frame.tensor(g) for g in grad_outputs or [None] * len(refs)]
    targets = [frame.tensor(t) for t in inputs]
    gradients = frame.record(
        "grad", refs, targets, initial, retain_graph, create_graph, allow_unused, results=len(targets)
    )
    frame.read(*gradients)
    if not keep:
        frame.drop(*gradients)
    return frame.build(human=True)
