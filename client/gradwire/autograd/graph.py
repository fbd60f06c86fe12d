"""``torch.autograd.graph``: hooks on nodes and on what they save, gradient edges, versions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, GraphError

from .._core.backward import saved_attributes  # noqa: F401  (which adds to nodes)
from .._core.backward.client_backward import current_backward
from .._core.backward.gradient_edges import GradientEdge, get_gradient_edge
from .._core.context.hook_handles import RemovableHandle
from .._core.context.modes import MODES
from .._core.dispatch.dispatch import call
from .._core.graph.graph_mirror import Node, edge_of
from .._core.tensor.saved_tensors import saved_tensors_hooks
from .._core.tensor.tensor import Tensor
from .mutation import allow_mutation_on_saved_tensors

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a change of the tensor's memory (or of each tensor's) that autograd could not see."""
    for item in [tensor] if isinstance(tensor, Tensor) else tensor:
        if item._inference:
            continue  # its writes are not counted
        call("bump_version", item)
        item._bump()


class save_on_cpu(saved_tensors_hooks):
    """Keep what operations inside save for backward in the server's main memory, off its GPU.

    Args:
        pin_memory: accepted for PyTorch's sake; transfers on the server are what they are.
        device_type: the kind of device to keep saved tensors off.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> Any:
            return tensor.device, tensor.cpu()

        def unpack(packed: Any) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse :class:`saved_tensors_hooks` inside, with this message.

    Raises:
        GraphError: when hooks are active already.
    """
    if MODES.packing:
        raise GraphError(error_message)
    before, MODES.no_packing = MODES.no_packing, error_message
    try:
        yield
    finally:
        MODES.no_packing = before


class _MultiHandle(RemovableHandle):
    """Removes the hooks of several tensors at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = tuple(handles)
        self.id = self._handles[0].id if self._handles else -1

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> RemovableHandle:
    """Call ``fn`` once a backward has computed the gradients of all these tensors (of any of them).

    With ``mode="all"`` it gets a list with one gradient per tensor, ``None`` for those that the backward does not
    reach; with ``mode="any"`` it gets the first gradient, and is called once per backward.

    Raises:
        ArgumentValueError: for another mode.
        GraphError: when one of the tensors does not require grad.
    """
    if mode not in ("all", "any"):
        raise ArgumentValueError(f"mode is 'all' or 'any', not {mode!r}")
    if not callable(fn):
        raise ArgumentTypeError(f"a hook is a function, not {type(fn).__name__}")
    state = _Together(list(tensors), fn, mode)
    return _MultiHandle([t.register_hook(state.hook(i)) for i, t in enumerate(tensors)])


class _Together:
    """Collects the gradients of several tensors, one backward at a time."""

    def __init__(self, tensors: list[Any], fn: Callable[..., Any], mode: str) -> None:
        self._edges = [edge_of(t) for t in tensors]
        self._fn = fn
        self._mode = mode
        self._lock = threading.Lock()
        self._found: dict[int, list[Any]] = {}
        self._expected: dict[int, int] = {}

    def hook(self, i: int) -> Callable[[Any], None]:
        def arrived(gradient: Any) -> None:
            run = current_backward()
            with self._lock:
                number = id(run)
                if number not in self._found:
                    self._found[number] = [None] * len(self._edges)
                    self._expected[number] = sum(e is not None and run.passes(e[0]) for e in self._edges)
                    run.at_end(lambda: (self._found.pop(number, None), self._expected.pop(number, None)))
                found = self._found[number]
                found[i] = gradient
                self._expected[number] -= 1
                left = self._expected[number]
                first = sum(g is not None for g in found) == 1
            if self._mode == "any":
                if first:
                    self._fn(gradient)
            elif left == 0:
                self._fn(list(found))

        return arrived
