"""A stack machine for pickles that builds only plain values.

Python's machine imports and calls whatever a file names. This one looks names up in a table and calls only functions
of that table. :mod:`pickletools` parses the stream and executes nothing.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pickle import UnpicklingError
from typing import IO, Any, Final

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError

from ..context.size import device as Device

MOST_STEPS: Final = 50_000_000
"""Instructions that one file may have."""


class RefusedPickle(ArgumentValueError, UnpicklingError):
    """A pickle that uses an unknown name, or is damaged."""


class Callee:
    """A replacement for a name that a file may call.

    Args:
        name: the name in the file.
        function: creates the value from the arguments.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


class Known:
    """A replacement for a name that a file may refer to: a class or function of gradwire's or the program's.

    Args:
        name: the name in the file.
        value: what it stands for.
        called: whether a file may call it. Else it may only be referred to, and, if it is a class, have objects that
            get their attributes from the file.
    """

    __slots__ = ("called", "name", "value")

    def __init__(self, name: str, value: Any, called: bool) -> None:
        self.name = name
        self.value = value
        self.called = called


class Stateful:
    """An allowed value whose state a file may set after its creation."""

    __slots__ = ()

    def take(self, state: Any) -> Any:
        """Accept the state and return the value's replacement."""
        raise NotImplementedError


class Instance(Stateful):
    """What will be made of a known class or function, once the tensors are there.

    Attributes:
        known: the class or function.
        arguments: of the constructor or function; of ``__new__`` if nothing is called.
        called: whether the class itself, or a function, is called.
        state: the object's attributes, if ``has_state``.
    """

    __slots__ = ("arguments", "called", "has_state", "known", "state")

    def __init__(self, known: Known, arguments: tuple[Any, ...], called: bool) -> None:
        self.known = known
        self.arguments = arguments
        self.called = called
        self.state: Any = None
        self.has_state = False

    def take(self, state: Any) -> Instance:
        if self.has_state or (self.called and not isinstance(self.known.value, type)):
            raise RefusedPickle(f"the pickle gives what {self.known.name} made a state of its own")
        self.state, self.has_state = state, True
        return self


_PLAIN: Final = (str, int, float, complex, bytes, type(None), DType, Device)


def key(value: Any) -> Any:
    """A valid key: a plain value, or a tuple of plain values. Malicious nested tuples could take forever to hash.

    Raises:
        RefusedPickle: for any other value.
    """
    if isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(item, _PLAIN) for item in value)):
        return value
    raise RefusedPickle(f"the pickle has a {type(value).__name__} for a key")


_MARK: Final = object()

_VALUES: Final = frozenset({
    "INT", "LONG", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
    "BINBYTES8", "BYTEARRAY8",
})  # fmt: skip
_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_NEW: Final[dict[str, Callable[[], Any]]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class Machine:
    """Reads one pickle.

    Args:
        names: the allowed names, by ``"module name"``.
        persistent: creates the value of a persistent id.
    """

    def __init__(self, names: Mapping[str, Any], persistent: Callable[[Any], Any]) -> None:
        self._names = names
        self._persistent = persistent
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self, stream: IO[bytes]) -> Any:
        """The value of the pickle at the stream's position, which moves to the pickle's end.

        Raises:
            RefusedPickle: naming the unknown name or the damage.
        """
        self._stack, self._memo = [], {}
        try:
            for steps, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
                if steps > MOST_STEPS:
                    raise RefusedPickle(f"the pickle has more than {MOST_STEPS:,} instructions")
                if opcode.name == "STOP":
                    return self._stack.pop()
                self._step(opcode.name, argument)
        except RefusedPickle:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise RefusedPickle(f"the pickle is damaged: {type(error).__name__}: {error!s:.100}") from None
        raise RefusedPickle("the pickle ends too early")

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _NEW:
            stack.append(_NEW[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        else:
            act = getattr(self, f"_{name.lower()}", None)
            if act is None:
                raise RefusedPickle(f"the pickle has the instruction {name}, which no file of tensors needs")
            act(argument)

    def _proto(self, version: int) -> None:
        """Nothing depends on it."""

    def _frame(self, size: int) -> None:
        """Nothing depends on it."""

    # The stack

    def _mark(self, _: Any) -> None:
        self._stack.append(_MARK)

    def _to_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self._stack.pop()) is not _MARK:
            items.append(item)
        items.reverse()
        return items

    def _pop(self, _: Any) -> None:
        self._stack.pop()

    def _pop_mark(self, _: Any) -> None:
        self._to_mark()

    def _dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    # The memo

    def _put(self, index: Any) -> None:
        self._memo[int(index)] = self._stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _get(self, index: Any) -> None:
        self._stack.append(self._memo[int(index)])

    _binget = _long_binget = _get

    # Containers

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._to_mark()))

    def _list(self, _: Any) -> None:
        self._stack.append(self._to_mark())

    def _dict(self, _: Any) -> None:
        items = self._to_mark()
        self._stack.append(dict(zip(map(key, items[::2]), items[1::2], strict=True)))

    def _frozenset(self, _: Any) -> None:
        self._stack.append(frozenset(map(key, self._to_mark())))

    def _append(self, _: Any) -> None:
        item = self._stack.pop()
        self._top(list).append(item)

    def _appends(self, _: Any) -> None:
        items = self._to_mark()
        self._top(list).extend(items)

    def _additems(self, _: Any) -> None:
        items = self._to_mark()
        self._top(set).update(map(key, items))

    def _setitem(self, _: Any) -> None:
        value, name = self._stack.pop(), self._stack.pop()
        self._top(dict)[key(name)] = value

    def _setitems(self, _: Any) -> None:
        items = self._to_mark()
        self._top(dict).update(zip(map(key, items[::2]), items[1::2], strict=True))

    def _top(self, kind: type) -> Any:
        found = self._stack[-1]
        if not isinstance(found, kind):
            raise RefusedPickle(f"the pickle treats a {type(found).__name__} as a {kind.__name__}")
        return found

    # Names

    def _global(self, argument: str) -> None:
        self._stack.append(self._named(argument))

    def _stack_global(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._stack.append(self._named(f"{module} {name}"))

    def _named(self, name: str) -> Any:
        if name not in self._names:
            dotted = name.replace(" ", ".", 1)
            raise RefusedPickle(
                f"the file names {dotted}, which gradwire neither imports nor calls: it reads tensors, containers, "
                "numbers, strings and the layers of torch.nn. If it is a class of the program and you trust the file, "
                f"call torch.serialization.add_safe_globals([{name.rpartition(' ')[2]}]) before; else save a "
                "state_dict()"
            )
        return self._names[name]

    def _reduce(self, _: Any) -> None:
        arguments, callee = self._stack.pop(), self._stack.pop()
        if isinstance(callee, Known) and callee.called and isinstance(arguments, tuple):
            self._stack.append(Instance(callee, arguments, called=True))
            return
        if not isinstance(callee, Callee) or not isinstance(arguments, tuple):
            raise RefusedPickle(f"the pickle calls {getattr(callee, 'name', 'a ' + type(callee).__name__)}")
        self._stack.append(callee(*arguments))

    def _newobj(self, _: Any) -> None:
        arguments, callee = self._stack[-1], self._stack[-2]
        if not isinstance(callee, Known):
            self._reduce(_)
            return
        if not isinstance(callee.value, type) or not isinstance(arguments, tuple) or (arguments and not callee.called):
            raise RefusedPickle(f"the pickle makes an object of {callee.name} with arguments that it never has")
        self._stack[-2:] = [Instance(callee, arguments, called=False)]

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        found = self._stack[-1]
        if isinstance(found, Stateful):
            taken = found.take(state)
            if taken is not found:
                self._replace(found, taken)
        elif isinstance(found, OrderedDict) and isinstance(state, dict) and set(state) <= {"_metadata"}:
            vars(found).update(state)  # a module's state dict has its versions here
        elif state:
            raise RefusedPickle(f"the pickle gives a {type(found).__name__} a state of its own")

    def _replace(self, old: Any, new: Any) -> None:
        self._stack[-1] = new
        for index, kept in self._memo.items():
            if kept is old:
                self._memo[index] = new

    def _binpersid(self, _: Any) -> None:
        self._stack.append(self._persistent(self._stack.pop()))
