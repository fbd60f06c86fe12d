"""``torch.Size`` and ``torch.device``: small values that print as PyTorch's do."""

from __future__ import annotations

from math import prod
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError

from .places import PLACES


class Size(tuple[int, ...]):
    """A shape. A tuple of ints with :meth:`numel`."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found


class device:
    """A device of the server: ``device("cuda:1")``, ``device("cuda", 1)``. Or ``device("meta")``, where tensors have a
    shape and a dtype and no values: the server does not hear of them.

    Raises:
        ArgumentError: for a kind of device that does not exist.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | device | int, index: int | None = None) -> None:
        text = f"cuda:{type}" if isinstance(type, int) and not isinstance(type, bool) else str(type)
        if not isinstance(type, (str, int, device)):
            raise ArgumentTypeError(f"a device is given as a string or an index, not as {type!r:.40}")
        kind, _, number = text.partition(":")
        if kind not in ("cpu", "cuda", "meta") or (number and not number.isdigit()):
            raise ArgumentError(f"{text!r} is not a device: expected 'cpu', 'cuda', 'cuda:N' or 'meta'")
        self.type = kind
        self.index = int(number) if number else index

    @property
    def wire(self) -> str:
        """The name that travels: ``cpu``, ``cuda:0``."""
        if self.type != "cuda":
            return self.type
        return f"cuda:{PLACES.cuda if self.index is None else self.index}"

    def __enter__(self) -> device:
        """For the extent of the ``with``, new tensors live here unless they are told otherwise."""
        PLACES.entered = (*PLACES.entered, self.wire)
        return self

    def __exit__(self, *_: object) -> None:
        PLACES.entered = PLACES.entered[:-1]

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))
