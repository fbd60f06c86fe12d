"""Names that gradwire lacks and that programs import before they know whether they need them.

Each is a class whose call raises an error with its name. So the import is no error, nor is a mention as a default
(``ShardingStrategy.FULL_SHARD``), as a decorator's name or in ``isinstance``, which is never true.
"""

from __future__ import annotations

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
        instead: why it is not supported, or what to use instead. Without it the error names the page of differences.
        module: the module that it will be a name of.
    """
    name = shown.rpartition(".")[2]
    about = {"shown": shown, "instead": instead, "__module__": module, "__doc__": f"Not supported. {instead}".strip()}
    return StandIn(name, (), about)
