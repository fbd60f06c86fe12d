"""``torch.compile(model, backend="gradwire")``: a graph of PyTorch's is recorded once, and replayed from then on.

PyTorch's compiler traces forward and backward into graphs of the device's operations. The first call of a graph runs
its operations; gradwire keeps what they recorded, and later calls send their tensors and that they are wanted again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import torch
from torch._dynamo import trace_rules
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.utils._pytree import tree_leaves

import gradwire as gw
from gradwire._core.compiling.function import CompiledFunction

from .device_type import NAME
from .memory import Memory, memory_of, ours, same_memory, theirs, upload, view_of

_TENSORS: Final = frozenset((torch.Tensor, torch.nn.Parameter))
_MOST_KINDS: Final = 1024
"""Kinds of calls of one graph that are known at a time; sizes that change make new ones."""


class _CompiledGraph:
    """A graph that is replayed.

    What is replayed makes memory. The views that the graph returns of it, or of what it is given, are PyTorch's, and
    are the same each time.
    """

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self._graph: Callable[..., Any] = graph.forward
        self._copied = _copied(graph)
        self._numbers = _numbers(graph)
        self._replayable = _is_of_the_device(graph)
        self._turn = threading.RLock()
        self._given: Sequence[Any] = ()
        self._kind: Any = None
        self._kinds: dict[Any, str] = {}
        self._names = map(str, count())
        self._results: dict[str, list[_Result]] = {}
        self.program: Any = CompiledFunction(lambda *_: self.body(), pure=True)

    def body(self) -> list[gw.Tensor]:
        """What is recorded: the graph's operations on the tensors of the call. Returns the memory that is new."""
        memories = [memory_of(one) for one in self._given if _here(one)]
        for memory in memories:  # views from before would be tensors that no argument leads to
            memory.forms = None
        made = self._graph(*self._given)
        places: dict[int, tuple[bool, int]] = {}
        for i, one in enumerate(self._given):
            if _here(one):
                places.setdefault(id(memory_of(one)), (True, i))
        fresh: list[Memory] = []
        whole: list[Memory] = []
        results = self._results[self._kind] = []
        for one in made:
            if not _here(one):
                results.append(_Result(one))
                continue
            memory = memory_of(one)
            if id(memory) not in places:
                places[id(memory)] = False, len(fresh)
                fresh.append(memory)
            results.append(_Result(None, places[id(memory)], one))
            if memory in fresh and memory not in whole and results[-1].is_all_of(memory):
                whole.append(memory)
                results[-1].whole = True
        for memory in memories:
            memory.forms = None
        return [memory.root for memory in fresh]

    def __call__(self, *inputs: Any) -> list[Any]:
        given = list(inputs)
        roots: list[gw.Tensor] = []
        places: dict[int, int] = {}
        about: list[Any] = []
        for i, one in enumerate(inputs):
            if type(one) not in _TENSORS and not isinstance(one, torch.Tensor):
                about.append((type(one), repr(one) if type(one) is float else one))
                continue
            if i in self._numbers:
                one = given[i] = theirs(upload(one))
            memory = getattr(one.untyped_storage(), "memory", None)
            if memory is None or not self._replayable:
                return list(self._graph(*inputs))
            if one.storage_offset() and i in self._copied:
                one = given[i] = _from_beginning(one)
                memory = memory_of(one)
            root = memory.root
            at = places.setdefault(id(root), len(roots))  # which are the same memory
            if at == len(roots):
                roots.append(root)
            about.append((at, one.dtype, one.storage_offset(), one.size(), one.stride()))
        with self._turn:
            kind = self._kind = self._named(tuple(about))
            self._given = given
            try:
                made = [theirs(one) for one in self.program(*roots, kind)]
            finally:
                self._given = ()
            return [result.of(given, made) for result in self._results[kind]]

    def _named(self, about: Any) -> str:
        """The name of a kind of call, by what is known of its arguments."""
        found = self._kinds.get(about)
        if found is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
                self._results.clear()
            found = self._kinds[about] = next(self._names)
        return found


def _copied(graph: torch.fx.GraphModule) -> frozenset[int]:
    """The places of the arguments that may be copied: those that the graph does not write to. None of a graph that
    looks at memory by strides of its own."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    places = set(range(len(inputs)))
    for node in graph.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            continue
        if schema.name in ("aten::as_strided", "aten::_reshape_alias"):
            return frozenset()
        if schema.is_mutable:
            places -= {inputs.index(one) for one in node.all_input_nodes if one in inputs}
    return frozenset(places)


def _numbers(graph: torch.fx.GraphModule) -> frozenset[int]:
    """The places of arguments that are numbers in tensors of the CPU, and go along with operations on the device: they
    may have other values at each call."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    return frozenset(
        i
        for i, node in enumerate(inputs)
        if isinstance(value := node.meta.get("val"), torch.Tensor)
        and value.device.type == "cpu"
        and value.ndim == 0
        and node.users
        and all(_is_there(user) and user.op == "call_function" for user in node.users)
    )


def _is_of_the_device(graph: torch.fx.GraphModule) -> bool:
    """Whether all that a graph computes is on the device. What it computes on the CPU may be something else each time,
    random numbers say, and would be sent as it was when the graph was recorded."""
    return all(_is_there(node) for node in graph.graph.nodes if node.op == "call_function")


def _is_there(node: torch.fx.Node) -> bool:
    """Whether the tensors that a node makes are on the device."""
    if node.target is torch.ops.aten._local_scalar_dense.default:
        return False
    made = [value for value in tree_leaves(node.meta.get("val")) if isinstance(value, torch.Tensor)]
    return all(value.device.type == NAME for value in made)


def _from_beginning(value: torch.Tensor) -> torch.Tensor:
    """A part of a memory that lies behind its beginning as memory of its own: the next batch of a data set has another
    offset, which would be another kind of call."""
    return theirs(ours(value).clone(memory_format=gw.contiguous_format))


class _Result:
    """Where a result of a graph is: in what was given or made, or it is no tensor of the device.

    Attributes:
        whole: it is all of a memory that is made, and the first result that is.
    """

    def __init__(self, value: Any, place: tuple[bool, int] | None = None, tensor: torch.Tensor | None = None) -> None:
        self.value, self.place = value, place
        self.whole = False
        if tensor is not None:
            self.form = tensor.dtype, tensor.size(), tensor.stride(), int(tensor.storage_offset())

    def is_all_of(self, memory: Memory) -> bool:
        """Whether it has the form in which the memory was made."""
        dtype, size, stride, offset = self.form
        return bool((dtype, offset, size, stride) == memory.whole)

    def of(self, given: Sequence[Any], made: list[torch.Tensor]) -> Any:
        """The result of a call."""
        if self.place is None:
            return self.value
        is_given, at = self.place
        dtype, size, stride, offset = self.form
        source = given[at] if is_given else made[at]
        if self.whole:
            return source
        if source.dtype is not dtype:
            return same_memory(source, dtype, size, stride, offset)
        return view_of(source, size, stride, offset)


def _here(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


for _package in ("gradwire_torch", "gradwire", "gradwire_protocol"):
    trace_rules.add(_package)  # what computes operations is no part of the program that is traced


def _compiled(graph: torch.fx.GraphModule, examples: list[Any]) -> Any:
    return make_boxed_func(_CompiledGraph(graph))


gradwire: Final = aot_autograd(fw_compiler=_compiled, bw_compiler=_compiled)
"""The back end of PyTorch's compiler for this device."""
