"""``torch.Generator``: a stream of random numbers beside the session's own.

A generator's state is a tensor on the server. An operation that draws from it is recorded between two records that
change the states over, so a program that brings a generator waits no more than one that does not.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from typing import Any, Final, TypeVar

import numpy as np

from gradwire_protocol.dtypes import uint8
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError
from gradwire_protocol.meta import meta

from ..context.late_signatures import show_as, with_keywords
from ..context.modes import MODES, no_grad
from ..context.size import device as Device
from ..dispatch.dispatch import call
from ..session.current_session import current_session
from ..session.kept_objects import ATTRIBUTES, KEEPERS, Keeper
from ..tensor.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

FIRST_SEED: Final = 67280421310721
"""The seed of a generator that was given none; PyTorch's has the same."""
STATE_BYTES: Final = 16
_LOWEST, _HIGHEST = -(1 << 63), (1 << 64) - 1


class Generator:
    """Random numbers with a seed of their own. The same seed gives the same numbers on every device.

    Args:
        device: where it is said to be; numbers can be drawn on any device of the server.
    """

    device: Device

    def __init__(self, device: Device | str | int = "cpu") -> None:
        self.device = Device(device)
        self._seed = FIRST_SEED
        self._state: Any = None

    def manual_seed(self, seed: int) -> Generator:
        """Start over at this seed, from -2**63 to 2**64 - 1. Returns itself.

        Raises:
            ArgumentError: for a seed outside of that range.
        """
        self._seed = checked_seed(seed)
        self._state = self._local = None
        return self

    def seed(self) -> int:
        """Start over at a seed that the operating system draws, and return it."""
        if MODES.capture is not None:
            MODES.capture.refuse("it draws a seed")
        drawn = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(drawn)
        return drawn

    def initial_seed(self) -> int:
        """The seed that it was started with last."""
        return self._seed % (1 << 64)

    def get_state(self) -> Tensor:
        """The state, a uint8 tensor of 16 elements. No round trip."""
        return call("clone", self._there())

    def set_state(self, new_state: Tensor) -> Generator:
        """Go on from a state that :meth:`get_state` gave. Returns itself."""
        self._state = call("clone", checked_state(new_state))
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        made = Generator(self.device)
        made._seed = self._seed
        made._state = None if self._state is None else self.get_state()
        return made

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Go on from the state of another generator. Returns itself.

        Raises:
            ArgumentTypeError: for what is no generator.
        """
        if not isinstance(state, Generator):
            raise ArgumentTypeError(f"graphsafe_set_state takes a torch.Generator, not {type(state).__name__}")
        return self.set_state(state.get_state())

    def get_offset(self) -> int:
        """Refused: as PyTorch's of a CPU, it has no offset.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError("get_offset: a generator of gradwire's has a state and no offset: use get_state()")

    def set_offset(self, offset: int) -> None:
        """Refused: as PyTorch's of a CPU, it has no offset.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(f"set_offset({offset!r:.20}): a generator has a state and no offset: use set_state()")

    _local: Any = None
    _seeded = True

    def local(self) -> np.random.Generator:
        """Random numbers for what the client decides itself, such as the order of a data set: no round trip.

        They begin anew with the seed. A state that is set says nothing of them.
        """
        if MODES.capture is not None:
            MODES.capture.refuse("it draws random numbers in the client")
        if self._local is None:
            seed = [self._seed % (1 << 64), 1] if self._seeded else None
            self._local = np.random.Generator(np.random.PCG64(seed))
        found: np.random.Generator = self._local
        return found

    def _there(self) -> Any:
        session = current_session()
        if self._state is None or self._state._session is not session:
            words = np.array([self._seed % (1 << 64), 0], np.uint64).view(np.uint8)
            number = session.upload(words, uint8, "cpu")
            self._state = Tensor._make(session, number, meta((STATE_BYTES,), uint8, "cpu"))
        return self._state

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """For the extent of the ``with``, random numbers come from this generator."""
        with current_session().lock:
            with no_grad():
                before = call("get_rng_state")
                call("set_rng_state", self._there())
            try:
                yield
            finally:
                with no_grad():
                    self._state = call("get_rng_state")
                    call("set_rng_state", before)

    def __repr__(self) -> str:
        return f"<torch.Generator on {self.device}, seed {self.initial_seed()}>"


class _SessionsOwn(Generator):
    """The generator that operations draw from unless they are given another."""

    _seeded = False

    def manual_seed(self, seed: int) -> Generator:
        if MODES.capture is not None:
            MODES.capture.refuse("it sets the seed")
        self._seed = checked_seed(seed)
        self._local = None
        self._seeded = True
        call("manual_seed", self._seed)
        return self

    def initial_seed(self) -> int:
        """The seed that the session was started with last. One round trip."""
        return int(np.asarray(self.get_state().tolist(), np.uint8).view(np.uint64)[0])

    def get_state(self) -> Tensor:
        return call("get_rng_state")

    def set_state(self, new_state: Tensor) -> Generator:
        call("set_rng_state", checked_state(new_state))
        return self

    def clone_state(self) -> Generator:
        made = Generator()
        made.set_state(self.get_state())
        return made

    @contextmanager
    def drawing(self) -> Iterator[None]:
        yield


default_generator: Final[Generator] = _SessionsOwn()


def checked_seed(seed: Any) -> int:
    """A seed as an int.

    Raises:
        ArgumentTypeError: for what is no number.
        ArgumentValueError: for one that 64 bits do not hold.
    """
    try:
        found = int(seed)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"a seed must be an int, not {seed!r:.60}") from None
    if not _LOWEST <= found <= _HIGHEST:
        raise ArgumentValueError(f"the seed {found} is outside of -2**63 to 2**64 - 1")
    return found


def checked_state(state: Any) -> Any:
    """A state of random numbers.

    Raises:
        ArgumentTypeError: for anything but a uint8 tensor of 16 elements.
    """
    if not isinstance(state, Tensor) or state.dtype is not uint8 or tuple(state.shape) != (STATE_BYTES,):
        given = state._form if isinstance(state, Tensor) else type(state).__name__
        raise ArgumentTypeError(
            f"the state of gradwire's random numbers is a uint8 tensor of {STATE_BYTES} elements, got {given}: "
            "one that PyTorch saved does not fit"
        )
    return state.cpu()


def takes_generator(function: Function) -> Function:
    """Let a function that draws random numbers take ``generator=``."""

    @wraps(function)
    def drawing(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
        if generator is None:
            return function(*args, **kwargs)
        with drawing_from(generator):
            return function(*args, **kwargs)

    show_as(drawing, lambda: with_keywords(inspect.signature(function), {"generator": "Generator | None"}))
    return drawing  # type: ignore[return-value]


def drawing_from(generator: Any) -> Any:
    """A ``with`` inside of which random numbers come from a generator.

    Raises:
        ArgumentTypeError: for what is no generator.
    """
    if not isinstance(generator, Generator):
        raise ArgumentTypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return generator.drawing()


def _take_generator(generator: Generator) -> dict[str, Any]:
    kept = ATTRIBUTES.take(generator)
    kept["_local"] = deepcopy(generator._local)
    return kept


def _put_generator(generator: Generator, kept: dict[str, Any]) -> None:
    ATTRIBUTES.put(generator, kept)
    generator._local = deepcopy(kept["_local"])


KEEPERS[Generator] = Keeper(_take_generator, _put_generator)
