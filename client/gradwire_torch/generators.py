"""``torch.Generator(device="gradwire")``: a stream of random numbers on the server beside the session's own.

PyTorch makes generators of the CPU alone for a device registered in Python, so one of the device is such a generator
to PyTorch, by whose address it is known again when an operation brings it. Asked for numbers on the CPU it draws there,
from the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final
from weakref import WeakValueDictionary

import torch

from .device_type import NAME

_Plain: Final[Any] = torch._C.Generator


class _Kind(type):
    """A generator of any device is an instance of ``torch.Generator``."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _Plain)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, _Plain)


class Generator(metaclass=_Kind):
    """``torch.Generator``, which also makes generators of this device."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """A generator of a device."""
        wanted = torch.device(device)
        return DeviceGenerator(wanted) if wanted.type == NAME else _Plain(device=wanted)


class DeviceGenerator(_Plain):  # type: ignore[misc]
    """Random numbers with a seed of their own, drawn on the server."""

    def __new__(cls, device: Any = NAME) -> DeviceGenerator:
        """A generator in the state that every new one has."""
        made: DeviceGenerator = super().__new__(cls)
        _there[made._cdata] = made
        return made

    def __init__(self, device: Any = NAME) -> None:
        import gradwire

        from .devices import current

        wanted = torch.device(device)
        self._where = torch.device(NAME, current.index if wanted.index is None else wanted.index)
        self.drawn: Any = gradwire.Generator()

    @property
    def device(self) -> torch.device:
        """Where it draws."""
        return self._where

    def manual_seed(self, seed: int) -> DeviceGenerator:
        """Start over at this seed. Returns itself."""
        super().manual_seed(seed)
        self.drawn.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Start over at a seed that is drawn, and return it."""
        drawn = int(super().seed())
        self.drawn.manual_seed(drawn)
        return drawn

    def initial_seed(self) -> int:
        """The seed that it was started with last."""
        return int(self.drawn.initial_seed())

    def get_state(self) -> torch.Tensor:
        """The state, 16 bytes on the CPU. One round trip."""
        return torch.from_numpy(self.drawn.get_state().numpy())

    def set_state(self, new_state: torch.Tensor) -> DeviceGenerator:
        """Go on from a state that :meth:`get_state` gave. Returns itself."""
        import gradwire

        self.drawn.set_state(gradwire.tensor(new_state.cpu().numpy(), device="cpu"))
        return self

    def clone_state(self) -> DeviceGenerator:
        """Another generator in the same state."""
        made = DeviceGenerator(self._where)
        made.drawn = self.drawn.clone_state()
        return made

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: DeviceGenerator) -> DeviceGenerator:
        """Go on from the state of another generator. Returns itself."""
        self.drawn.graphsafe_set_state(state.drawn)
        return self

    def __reduce__(self) -> Any:
        return _restored, (str(self._where), self.initial_seed(), self.get_state())


_there: Final[WeakValueDictionary[int, DeviceGenerator]] = WeakValueDictionary()
"""Those of the device, by the address of what PyTorch passes on."""


def _restored(device: str, seed: int, state: torch.Tensor) -> DeviceGenerator:
    return DeviceGenerator(device).manual_seed(seed).set_state(state)


def drawing_from(generator: Any) -> AbstractContextManager[None]:
    """A ``with`` inside of which the server's random numbers come from a generator of the device.

    Raises:
        RuntimeError: for a generator of another device, as PyTorch does.
    """
    found = _there.get(generator._cdata)
    if found is None:
        raise RuntimeError(
            f"a generator on {generator.device} cannot draw numbers on {NAME}: use torch.Generator(device={NAME!r})"
        )
    drawing: AbstractContextManager[None] = found.drawn.drawing()
    return drawing


def with_generator(op: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """What computes an operation, drawing from the generator that it is given; itself where it takes none."""
    names = [a.name for a in op._schema.arguments]
    if "generator" not in names:
        return function
    at = names.index("generator")

    def call(*args: Any, **kwargs: Any) -> Any:
        generator = kwargs.pop("generator", None)
        if len(args) > at:
            generator, args = args[at], (*args[:at], None, *args[at + 1 :]) if args[at + 1 :] else args[:at]
        if generator is None:
            return function(*args, **kwargs)
        with drawing_from(generator):
            return function(*args, **kwargs)

    return call


def install() -> None:
    """Let ``torch.Generator`` make generators of the device."""
    torch.Generator = Generator  # type: ignore[misc]
