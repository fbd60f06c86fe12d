"""Names that gradwire lacks and that programs import before they know whether they need them.

Each is a class whose call raises an error with its name. So the import is no error, nor is a mention as a default
(``ShardingStrategy.FULL_SHARD``), as a decorator's name or in ``isinstance``, which is never true.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from gradwire_protocol.errors import Unsupported

from .unsupported import where


class StandIn(type):
    """The type of a name that is refused where it is called."""

    shown: str
    instead: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(f"{cls.shown} is not supported by gradwire: {cls.instead or where()}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{cls.shown}.{name}", cls.instead)


def stand_in(shown: str, instead: str = "", module: str = __name__) -> StandIn:
    """The class that stands for one name.

    Args:
        shown: the full name in PyTorch, which the error tells.
        instead: why it is not supported, or what to use instead. Without it the error names the page of missing names.
        module: the module that it will be a name of.
    """
    name = shown.rpartition(".")[2]
    about = {"shown": shown, "instead": instead, "__module__": module, "__doc__": f"Not supported. {instead}".strip()}
    return StandIn(name, (), about)


def stand_ins(module: str, names: str | Iterable[str], instead: str) -> dict[str, StandIn]:
    """The classes for several names of one module, by name.

    Args:
        module: the module's full name.
        names: the names, or one string with spaces between them.
        instead: why they are not supported, or what to use instead.
    """
    place = module.replace("gradwire", "torch", 1)
    several = names.split() if isinstance(names, str) else names
    return {name: stand_in(f"{place}.{name}", instead, module) for name in several}


def fill(module: str, names: str | Iterable[str], instead: str) -> None:
    """Put the :func:`stand_ins` of names that a module has not into it, and into its ``__all__``."""
    given = vars(sys.modules[module])
    made = {name: cls for name, cls in stand_ins(module, names, instead).items() if name not in given}
    given.update(made)
    if "__all__" in given:
        given["__all__"] = [*given["__all__"], *(name for name in made if not name.startswith("_"))]
