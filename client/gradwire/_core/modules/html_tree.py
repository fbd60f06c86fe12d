"""A module as a notebook shows it: a tree that folds, with kinds, shapes and numbers of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.quantities import counted, spell_bytes

from ..context import html
from ..tensor.tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

MOST_LINES: Final = 2_000
"""Modules and tensors of a tree that are shown; of the rest, how many there are."""
MOST_BESIDE: Final = 64
"""Of those, in one module."""
OPEN_LEVELS: Final = 1
"""Levels that are unfolded to begin with."""
EXTRA: Final = 160
"""Characters shown of ``extra_repr()``."""


def module_html(module: Module) -> str:
    """The tree of a module. It asks the server nothing."""
    tree = _Tree()
    parameters, other = _tensors(module)
    about = [f"{counted(_count(parameters), 'parameter')}"]
    trained = _count(each for each in parameters if _has_shape(each) and each.requires_grad)
    if trained != _count(parameters):
        about.append(f"{trained:,} trained")
    about.append(html.text(spell_bytes(_bytes([*parameters, *other]))))
    about += sorted({html.text(f"{each.dtype.name} on {each.device}") for each in parameters if _has_shape(each)})[:4]
    about.append("training" if module.training else "evaluation")
    return html.card(module._get_name(), about, tree.node("", module, OPEN_LEVELS))


class _Tree:
    """Writes one tree, and stops where it is long enough."""

    def __init__(self) -> None:
        self._left = MOST_LINES
        self._above: list[Module] = []

    def node(self, name: str, module: Any, opened: int) -> str:
        """A module with all below it."""
        self._left -= 1
        kind = module._get_name()
        extra = " ".join(module.extra_repr().split())
        parameters, _ = _tensors(module)
        line = html.code(name) + " " if name else ""
        line += f"<b>{html.text(kind)}</b>" + (
            html.faint(f"({extra[:EXTRA]}{'…' * (len(extra) > EXTRA)})") if extra else ""
        )
        if parameters:
            line += html.tag(f"{_count(parameters):,}")
        if any(module is each for each in self._above):
            return html.leaf(f"{line} {html.faint('contains itself')}")
        inner = [self._tensor(key, value, "parameter") for key, value in module._parameters.items()]
        inner += [self._tensor(key, value, "buffer") for key, value in module._buffers.items()]
        self._above.append(module)
        children = list(module._modules.items())
        for at, (key, child) in enumerate(children):
            if at >= MOST_BESIDE or self._left <= 0:
                inner.append(html.leaf(html.faint(f"and {counted(len(children) - at, 'more module')}")))
                break
            if child is None:
                inner.append(html.leaf(f"{html.code(key)} {html.faint('None')}"))
            else:
                inner.append(self.node(key, child, opened - 1))
        self._above.pop()
        return html.fold(line, "".join(inner), opened > 0) if inner else html.leaf(line)

    def _tensor(self, name: str, tensor: Any, what: str) -> str:
        self._left -= 1
        if tensor is None:
            return html.leaf(f"{html.code(name)} {html.faint('None')}")
        if not _has_shape(tensor):
            return html.leaf(f"{html.code(name)} {html.faint(what + ', no shape yet')}")
        told = f"{what} {tensor.dtype.name}"
        if what == "parameter" and not tensor.requires_grad:
            told += ", not trained"
        shape = f"[{', '.join(map(str, tensor._form.shape))}]"
        return html.leaf(f"{html.code(name)} {html.code(shape)} {html.faint(told)}")


def _has_shape(tensor: Any) -> bool:
    """Whether it is a tensor whose shape is known here and now. That of a lazy module has none yet."""
    try:
        return isinstance(tensor, Tensor) and tensor._form.known
    except GradwireError:
        return False


def _tensors(module: Module) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters and the buffers of a module and of those below it, each once."""
    parameters: dict[int, Tensor] = {}
    buffers: dict[int, Tensor] = {}
    for each in module.modules():
        for table, found in ((each._parameters, parameters), (each._buffers, buffers)):
            found.update((id(tensor), tensor) for tensor in table.values() if tensor is not None)
    return list(parameters.values()), list(buffers.values())


def _count(tensors: Iterable[Tensor]) -> int:
    return sum(prod(each._form.shape) for each in tensors if _has_shape(each))


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(each._form.nbytes for each in tensors if _has_shape(each))
