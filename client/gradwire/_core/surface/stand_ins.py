"""Names of PyTorch's that programs import before they know whether they need them, and that gradwire lacks.

Each is a class whose call raises an error with its name. So the import is no error, nor is a mention as a default
(``ShardingStrategy.FULL_SHARD``), as a base class, or in ``isinstance``, which is never true.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gradwire_protocol.errors import Unsupported

from .unsupported import WHERE


class StandIn(type):
    """The type of a name that is refused where it is called."""

    shown: str
    instead: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(f"{cls.shown} is not supported by gradwire: {cls.instead}; {WHERE}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name, f"{cls.shown}.{name}", cls.instead)


def stand_in(name: str, shown: str, instead: str, module: str = __name__) -> StandIn:
    """The class for one name.

    Args:
        shown: the name as the error says it.
        instead: what there is instead, or why there is nothing.
    """
    return StandIn(name, (), {"shown": shown, "instead": instead, "__module__": module, "__doc__": f"{instead}."})


def stand_ins(module: str, names: str, instead: str) -> dict[str, StandIn]:
    """Classes for several names of one module, to be put into its namespace."""
    place = module.replace("gradwire", "torch", 1)
    return {name: stand_in(name, f"{place}.{name}", instead, module) for name in names.split()}
