"""``gradwire.compile``: a function whose Python body runs once for each kind of call, and is replayed from then on."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, Protocol, TypeVar, overload
from weakref import WeakSet

import numpy as np

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ..context.call_sites import shown_file, spell_place
from ..context.default_device import PLACES
from ..context.displayed import DisplayedDict, DisplayedText
from ..context.modes import MODES
from ..graph.forward_levels import OPEN
from ..graph.graph_mirror import next_seq
from ..modules.module import Module, SomeModule
from ..session.current_session import current_session
from ..session.kept_objects import AFTER_REWIND
from ..tensor.tensor import Tensor
from .capture import Capture
from .input_tensors import InputTensors
from .purity_check import PurityCheck, Unwatched
from .state import CONSTANTS, MOST_ARRAY_BYTES, NotReplayable, ReachableState, attributes_of, facts
from .variant import MISS, Variant

if TYPE_CHECKING:
    from ..session.session import Session

Given = ParamSpec("Given")
Returned = TypeVar("Returned", covariant=True)

VARIANTS: Final = 8
"""Kinds of calls that a function is kept for, as in PyTorch's ``recompile_limit``."""
ATTEMPTS: Final = 4
"""Recordings of one kind of call that may turn out to be of no use; the first step of a training is none."""

_LOOKS: Final = frozenset({"param_groups", "get_last_lr", "get_lr"})
"""What a body looks at an optimizer's numbers by, which a replay renews without it."""

_FLEETING: Final = frozenset({"_version", "data_ptr"})


class CompiledFunction(Generic[Given, Returned]):
    """A function of which calls are replayed.

    It does what the function does. A call of a kind that was recorded is sent as it was then, with the tensors, numbers
    and states of now, and the body does not run. A body that cannot be replayed runs each time; :meth:`stats` says why.

    Args:
        function: what is called; a module's call, for a module.
        limit: how many kinds of calls are kept.
        strict: raise an error instead of running a body that cannot be replayed.
        pure: it is known that the body looks at its arguments alone and changes nothing else, as a compiler's graph.
    """

    def __init__(
        self, function: Callable[Given, Returned], limit: int = VARIANTS, strict: bool = False, pure: bool = False
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._limit = limit
        self._strict = strict
        self._pure = pure
        self.clear()
        _all.add(self)

    @property
    def _function_replayed(self) -> Callable[..., Any]:
        return self._function

    def clear(self) -> None:
        """Forget all that was recorded."""
        self._variants: dict[Any, list[Variant]] = {}
        self._attempts: Counter[Any] = Counter()
        self._recorded = self._ran = self._replayed = 0
        self._reasons: Counter[str] = Counter()

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        session = current_session()
        reason = _occasion(session)
        if reason is None:
            try:
                call = CompiledCall(session, args, kwargs)
            except NotReplayable as unfit:
                reason = str(unfit)
        if reason is not None:
            return self._run(reason, args, kwargs)
        known = self._variants.get(call.key)
        if known is not None:
            for variant in known:
                if variant.differs(call.tensors) is None:
                    found = variant.replay(call.tensors)
                    if found is not MISS:
                        self._replayed += 1
                        return found
        if self._attempts[call.key] >= ATTEMPTS:
            return self._run("", args, kwargs)
        if sum(map(len, self._variants.values())) >= self._limit:
            return self._run(
                f"{self._limit} kinds of calls are recorded already (recompile_limit): arguments that are tensors of "
                "one shape, and not Python numbers, are one kind", args, kwargs,
            )  # fmt: skip
        return self._record(session, call, args, kwargs)

    def variant(self, session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Variant | None, Any]:
        """The recorded call that a call now would be a replay of, if there is one; and its tensors."""
        call = CompiledCall(session, args, kwargs)
        for variant in self._variants.get(call.key, ()):
            if variant.differs(call.tensors) is None:
                return variant, call.tensors
        return None, call.tensors

    def _run(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if reason:
            self._reasons[reason] += 1
        if self._strict:
            why = reason or next(iter(self._reasons), "it was tried before")
            raise ArgumentValueError(f"{self._name} runs without being replayed, and fullgraph=True: {why}")
        self._ran += 1
        return self._function(*args, **kwargs)

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__qualname__", type(self._function).__name__))

    def _record(self, session: Session, call: CompiledCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the body, and keep what it recorded if that can be replayed."""
        self._attempts[call.key] += 1
        roots = call.objects if self._pure else [("the function", self._function), *call.objects]
        try:
            state = ReachableState(roots)
            before = InputTensors(call.tensors, state, next_seq())
        except NotReplayable as unfit:
            return self._run(str(unfit), args, kwargs)
        dice, numpys = random.getstate(), np.random.get_state()[1:]  # type: ignore[index]
        names, modes = dict(session.names), _modes(session)
        watch = Unwatched() if self._pure else PurityCheck()
        with session.lock:
            session.flush(must=True)
            capture = Capture(session)
            watch.waits = capture.let_others
            base = session.builder.next_id
            MODES.capture, session.link.watched = capture, capture.sent
            try:
                with watch:
                    result = self._function(*args, **kwargs)
                session.flush(must=True)
            finally:
                MODES.capture = session.link.watched = None
                if capture.shared:
                    session.lock.acquire()
            self._ran += 1
            reason = capture.reason or watch.reason or _beyond(watch, state)
            if random.getstate() != dice or not _alike(np.random.get_state()[1:], numpys):  # type: ignore[index]
                reason = "it draws random numbers in the client"
            elif names != session.names:
                reason = "it names tensors"
            elif modes != _modes(session):
                reason = "it leaves modes or defaults changed behind"
            try:
                if reason is not None:
                    raise NotReplayable(reason)
                made = session.builder.next_id - base
                variant = Variant(session, capture, state, call.tensors, before, result, base, made)
            except NotReplayable as unfit:
                self._reasons[str(unfit)] += 1
                if self._strict and self._attempts[call.key] >= ATTEMPTS:
                    raise ArgumentValueError(f"{self._name} cannot be replayed, and fullgraph=True: {unfit}") from None
            else:
                self._recorded += 1
                self._attempts[call.key] -= 1
                self._variants.setdefault(call.key, []).append(variant)
        return result

    def stats(self) -> dict[str, Any]:
        """How many calls were replayed, how often the body ran, how many kinds of calls are recorded; and why the body
        ran where it was not to be recorded: reasons with their counts."""
        return CallCounts({
            "replayed": self._replayed, "ran": self._ran, "recorded": self._recorded,
            "variants": sum(map(len, self._variants.values())), "reasons": dict(self._reasons),
        })  # fmt: skip

    def explain(self) -> str:
        """:meth:`stats` in words."""
        lines = [
            f"{self._name}: {self._replayed} calls replayed, the body ran {self._ran} times, "
            f"{sum(map(len, self._variants.values()))} kinds of calls are recorded"
        ]
        lines += [f"  {count} x not recorded: {reason}" for reason, count in self._reasons.most_common()]
        return DisplayedText("\n".join(lines))

    def _repr_html_(self) -> str:
        return DisplayedText(self.explain())._repr_html_()

    def __repr__(self) -> str:
        return f"<compiled {self._name}>"


class CallCounts(DisplayedDict):
    """What :meth:`CompiledFunction.stats` returns."""

    __slots__ = ()
    title: ClassVar[str] = "compiled function"


_all: WeakSet[CompiledFunction[..., Any]] = WeakSet()


def forget_all() -> None:
    """Let every compiled function forget what was recorded of it."""
    for each in list(_all):
        each.clear()


AFTER_REWIND.append(forget_all)


class CompiledCall:
    """The arguments of a call, taken apart.

    Attributes:
        key: what decides which recorded call it may be a replay of, as far as arguments tell.
        tensors: the tensors among them, in order.
        objects: what they hold besides tensors and constants, with where.

    Raises:
        Unfit: for an argument whose changes could not be noticed.
    """

    def __init__(self, session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tensors: list[Tensor] = []
        self.objects: list[tuple[str, Any]] = []
        key: list[Any] = [session, session.default_dtype, MODES.flags, PLACES.current, PLACES.cuda]
        for i, value in enumerate(args):
            self._take(value, key, i)
        for name in kwargs:
            key.append(name)
            self._take(kwargs[name], key, name)
        if len(self.tensors) > 1:
            ids = [id(t) for t in self.tensors]
            if len(set(ids)) < len(ids):
                key.append(tuple([ids.index(each) for each in ids]))
        for tensor in self.tensors:
            if tensor._session is not session:
                raise NotReplayable("an argument belongs to another session than the current one")
            if attributes_of(tensor):
                raise NotReplayable(f"an argument carries attributes of the program's: {attributes_of(tensor)}")
            if tensor._levels or not tensor._form.known or tensor._id < 0:
                raise NotReplayable("an argument is mapped, on the meta device, or of a shape that depends on data")
        self.key = tuple(key)

    def _take(self, value: Any, key: list[Any], where: Any) -> None:
        if isinstance(value, Tensor):
            self.tensors.append(value)
            key.append(facts(value))
        elif isinstance(value, slice):
            key.append((slice, repr(value)))
        elif isinstance(value, CONSTANTS):
            key += (type(value), repr(value) if type(value) is float else value)
        elif type(value) in (list, tuple):
            key += (type(value), len(value))
            for item in value:
                self._take(item, key, where)
        elif type(value) is dict:
            key += (dict, len(value))
            for name in value:
                if not isinstance(name, CONSTANTS):
                    raise NotReplayable(f"argument {where!r} is a dictionary with keys that are no constants")
                key.append(name)
                self._take(value[name], key, where)
        elif isinstance(value, np.ndarray):
            raise NotReplayable(
                f"argument {where!r} is a NumPy array: make a tensor of it before the call"
                if value.nbytes > MOST_ARRAY_BYTES
                else f"argument {where!r} is a NumPy array"
            )
        else:
            key.append((type(value), id(value)))
            self.objects.append((f"argument {where!r}", value))


def _occasion(session: Session) -> str | None:
    """Why no call can be recorded or replayed just now."""
    if MODES.capture is not None:
        return "it is called by a function that is being recorded"
    if MODES.maps or MODES.packing or MODES.region is not None or MODES.mutations is not None or OPEN:
        return "it is called inside of vmap, of a checkpoint, of hooks on saved tensors or of forward mode"
    if MODES.casts is not None:
        return "it is called inside of autocast: let the function enter autocast itself"
    if session.builder.recorder is not None:
        return "a profiler runs, which shows the body's operations"
    return None


def _modes(session: Session) -> tuple[Any, ...]:
    return MODES.flags, MODES.maps, MODES.anomaly, MODES.region, MODES.packing, MODES.casts, session.default_dtype


def _beyond(watch: PurityCheck, state: ReachableState) -> str | None:
    """What of the code that ran belongs to functions whose globals and variables nobody has looked at."""
    for code in watch.codes:
        if code not in state.codes:
            return (
                f"it runs {code.co_name} ({spell_place(shown_file(code.co_filename), code.co_firstlineno)}), "
                "which it cannot be seen to reach"
            )
        if state.optimizers and not _LOOKS.isdisjoint(code.co_names):
            return f"{code.co_name} looks at an optimizer's numbers, which the next step may change"
        if not _FLEETING.isdisjoint(code.co_names):
            return f"{code.co_name} looks at versions or addresses, which are others each time"
        if "random" in code.co_names and ("np" in code.co_names or "numpy" in code.co_names):
            return f"{code.co_name} draws random numbers in the client"
    return None


def _alike(found: Any, before: Any) -> bool:
    return bool(np.array_equal(found[0], before[0])) and tuple(found[1:]) == tuple(before[1:])


class Compiling(Protocol):
    """What :func:`compile` returns without a function: a decorator."""

    @overload
    def __call__(self, function: SomeModule, /) -> SomeModule: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[Given, Returned], /) -> CompiledFunction[Given, Returned]: ...


@overload
def compile(  # type: ignore[overload-overlap]
    model: SomeModule, *, fullgraph: bool = False, dynamic: bool | None = None, backend: str = "inductor",
    mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False,
    recompile_limit: int = VARIANTS,
) -> SomeModule: ...  # fmt: skip
@overload
def compile(
    model: Callable[Given, Returned], *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: str = "inductor", mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False,
    recompile_limit: int = VARIANTS,
) -> CompiledFunction[Given, Returned]: ...  # fmt: skip
@overload
def compile(
    model: None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: str = "inductor",
    mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False,
    recompile_limit: int = VARIANTS,
) -> Compiling: ...  # fmt: skip


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    recompile_limit: int = VARIANTS,
) -> Callable[..., Any]:
    """A function or module whose calls are replayed without running the Python body. Also a decorator.

    Args:
        model: the function or module; without it, a decorator is returned.
        fullgraph: raise an error where a body cannot be replayed, instead of running it each time.
        dynamic: None or False; shapes are never dynamic, each is a kind of call of its own.
        backend: accepted by name; what computes is the server.
        mode: accepted: "default", "reduce-overhead", "max-autotune" or "max-autotune-no-cudagraphs".
        options: none but an empty dictionary.
        disable: change nothing.
        recompile_limit: how many kinds of calls are kept.

    Raises:
        ArgumentValueError: for a ``mode`` or ``options`` that there are not, or for ``dynamic=True``.
        ArgumentTypeError: for what cannot be called, and for a ``backend`` that is a function.
    """
    if dynamic:
        raise ArgumentValueError("dynamic=True: shapes are never dynamic here, each is a kind of call of its own")
    if not isinstance(backend, str):
        raise ArgumentTypeError("backend is accepted by name only: what computes is the server, not a Python function")
    if mode not in (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        raise ArgumentValueError(f"there is no mode {mode!r}")
    if options:
        raise ArgumentValueError(f"there are no options here, got {sorted(options)}")
    if recompile_limit < 1:
        raise ArgumentValueError(f"recompile_limit is at least 1, not {recompile_limit}")

    def made(function: Any) -> Any:
        if not callable(function):
            raise ArgumentTypeError(f"compile takes a function or a module, not {type(function).__name__}")
        if disable or isinstance(function, CompiledFunction):
            return function
        if isinstance(function, Module):
            from .module import CompiledModule

            return CompiledModule(function, CompiledFunction(function.__call__, recompile_limit, fullgraph))
        return CompiledFunction(function, recompile_limit, fullgraph)

    return made if model is None else made(model)
