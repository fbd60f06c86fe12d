"""``torch.compile(model, backend="gradwire")``: a graph of PyTorch's is recorded once, and one record from then on.

PyTorch's compiler traces forward and backward into graphs of the device's operations. The first call of a graph runs
its operations; gradwire keeps what they recorded, and later calls send their tensors and that they are wanted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func

import gradwire as gw
from gradwire._core.compiling.function import CompiledFunction

from .device_type import NAME
from .memory import memory_of, ours, theirs, view_of

Graph = Callable[..., Any]


class _CompiledGraph:
    """A graph that is replayed."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._given: Sequence[Any] = ()
        self.program: Any = CompiledFunction(lambda *_: self.body(), pure=True)

    def body(self) -> list[Any]:
        """What is recorded: the graph's operations on the tensors of the call."""
        memories = [memory_of(one) for one in self._given if _here(one)]
        for memory in memories:  # views from before would be tensors that no argument leads to
            memory.forms = None
        made = self._graph(*self._given)
        results = [ours(one) if _here(one) else one for one in made]
        for memory in memories:
            memory.forms = None
        return results

    def __call__(self, *given: Any) -> list[Any]:
        self._given = given
        mine = [ours(one) if _here(one) else one for one in given]
        roots = {id(root): root for root in (memory_of(one).root for one in given if _here(one))}
        for one in mine:
            roots.pop(id(one), None)
        try:
            results = self.program(*mine, *roots.values())
        finally:
            self._given = ()
        return [_as_theirs(one, given) for one in results]


def _here(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _as_theirs(result: Any, given: Sequence[Any]) -> Any:
    """A result as PyTorch's tensor; a view of what was given as a view of it."""
    if not isinstance(result, gw.Tensor):
        return result
    if result._is_view():
        for one in given:
            if _here(one) and one.dtype is not None and memory_of(one).root is result._base:
                return view_of(one, result.shape, result.stride(), result.storage_offset())
    return theirs(result)


def _compiled(graph: torch.fx.GraphModule, examples: list[Any]) -> Any:
    return make_boxed_func(_CompiledGraph(graph.forward))


gradwire: Final = aot_autograd(fw_compiler=_compiled, bw_compiler=_compiled)
"""The back end of PyTorch's compiler for this device."""
