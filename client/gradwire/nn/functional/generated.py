"""The functions that the op table offers as they are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.table import TABLE, Op

from ..._core.context.late_signatures import show_as
from ..._core.surface.methods import FUNCTIONS, function_of
from ..._core.surface.op_help import doc_of, signature_of

# Of torch's plain functions these are functions of its nn.functional, too.
ALSO_PLAIN = (
    "sigmoid", "tanh", "conv_tbc", "native_channel_shuffle", "rrelu_",
    *(f"max_pool{count}d_with_indices" for count in (1, 2, 3)),
)  # fmt: skip


def with_inplace(op: Op, form: Op) -> Callable[..., Any]:
    """A function whose last argument, ``inplace``, chooses the form that writes into the tensor."""
    plain, inplace = function_of(op), function_of(form)
    count = len(op.params)

    def function(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.pop("inplace", False) if kwargs else False
        if len(args) > count:
            *args, chosen = args  # type: ignore[assignment]
        if not isinstance(chosen, bool):
            raise ArgumentTypeError(f"{op.name}: inplace is True or False, not {chosen!r:.40}")
        return (inplace if chosen else plain)(*args, **kwargs)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = doc_of(op)
    show_as(function, lambda: signature_of(op, inplace=True))
    return function


def functions() -> dict[str, Callable[..., Any]]:
    """All functions of the table that belong here, by name."""
    found = {}
    for op in TABLE.values():
        if "nn.functional" in op.exposed:
            form = TABLE.get(op.name + "_")
            found[op.name] = function_of(op) if form is None else with_inplace(op, form)
    return found | {name: FUNCTIONS[name] for name in ALSO_PLAIN}
