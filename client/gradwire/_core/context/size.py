"""``torch.Size`` and ``torch.device``: small values that print as PyTorch's do."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from math import prod
from typing import Any, Final, SupportsIndex, overload

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DeviceError, GradwireError

from .default_device import PLACES


class Size(tuple[int, ...]):
    """A shape. A tuple of ints with :meth:`numel`.

    Raises:
        ArgumentTypeError: for anything but ints.
    """

    __slots__ = ()

    def __new__(cls, entries: Iterable[Any] = ()) -> Size:
        return tuple.__new__(cls, [_extent(at, entry) for at, entry in enumerate(entries)])

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        return Size(tuple(self) + other) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Size:
        return shape_of(tuple(self) * times)

    __rmul__ = __mul__

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        found: Any = tuple.__getitem__(self, key)
        return shape_of(found) if isinstance(key, slice) else found


def _extent(at: int, entry: Any) -> int:
    try:
        return entry if type(entry) is int else operator.index(entry)
    except (TypeError, GradwireError):
        raise ArgumentTypeError(f"a Size is made of ints, entry {at} is {entry!r:.60}") from None


def shape_of(extents: Iterable[int]) -> Size:
    """The :class:`Size` of what is known to be ints."""
    return tuple.__new__(Size, extents)


_ELSEWHERE: Final = (
    "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan", "mps",
    "hpu", "mtia", "privateuseone",
)  # fmt: skip
"""Kinds of devices that no server has. Programs compare devices with them."""
_DEVICE: Final = re.compile(rf"(cpu|cuda|meta|{'|'.join(_ELSEWHERE)})(?::(0|[1-9][0-9]*))?", re.ASCII)


class device:
    """A device of the server: ``device("cuda:1")``, ``device("cuda", 1)``. Or ``device("meta")``, where tensors have a
    shape and a dtype and no values: the server does not hear of them. PyTorch's other kinds (``device("mps")``) are
    values to compare with: no tensor is there.

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
        found = _DEVICE.fullmatch(text)
        if found is None:
            raise ArgumentError(f"{text!r} is not a device: expected 'cpu', 'cuda', 'cuda:N' or 'meta'")
        self.type, number = found.group(1), found.group(2)
        self.index = int(number) if number else index

    @property
    def wire(self) -> str:
        """The name that travels: ``cpu``, ``cuda:0``.

        Raises:
            DeviceError: for a kind of device that no server has.
        """
        if self.type in _ELSEWHERE:
            raise DeviceError(f"no server has a device {str(self)!r}: there are 'cpu', 'cuda', 'cuda:N' and 'meta'")
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
