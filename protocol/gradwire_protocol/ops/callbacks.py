"""Backward with a client taking part: custom Functions, hooks, and recomputed segments.

A client knows the shape of the graph, so it says in advance where a backward is to pause (:func:`begin_backward`). Each
:func:`advance` goes on to the next pause and results in the gradients that stand there; the client computes with them
as with any tensor, and hands what it made to the next :func:`advance`. Nobody waits for anybody: a whole
backward with its callbacks travels in one frame.

A *place* is a tensor that names a node of the graph: any tensor made by that node, the leaf itself for a leaf, or
what :func:`place_of` gives, which keeps no values alive.
"""

from __future__ import annotations

from typing import Final

from ..dtypes import DType, float32, uint8
from ..errors import ArgumentError
from ..meta import Inference, new, nothing
from ..table import Ints, Strings, Tensor, op
from .control import check_gradient

BEFORE: Final = 0
"""Gradients have arrived at the node: one result per output of the node. What is supplied replaces them; null leaves
one as it is. Tensors that retain their gradient receive it after this stage."""
INSTEAD: Final = 1
"""The node's derivative lives in the client: results as BEFORE, with zeros for what is undefined. What is supplied are
the gradients for the node's operands; null is undefined."""
AFTER: Final = 2
"""The node has run: one result per operand, then one per output, as they arrived. What is supplied replaces the
operands' gradients; null leaves one as it is."""
ACCUMULATED: Final = 3
"""A leaf has received its gradient. No results, nothing is supplied."""
HOLD: Final = 4
"""A region (:func:`new_region`, in the list of places) is about to be passed, and the client computes it again; or a
node that let go of what it had saved, and the client brings it back. No results, nothing is supplied."""
BEFORE_RUN: Final = 5
"""The node is about to run, and retained gradients are up to date: results and what is supplied as BEFORE."""
STAGES: Final = range(6)
NAME_LENGTH: Final = 1000


@op(control=True, exposed=())
def place_of(self: Tensor) -> Inference:
    """A place: a tensor without elements that stands where ``self`` stands in the graph."""
    return new((0,), self.dtype, self.device)


@op(control=True, exposed=())
def next_place(self: Tensor, edge: int) -> Inference:
    """The place that this edge of a place leads to: ``next_functions[edge]``."""
    if edge < 0:
        raise ArgumentError(f"edge {edge} is negative")
    return new((0,), self.dtype, self.device)


@op(control=True, exposed=())
def rejoin(self: Tensor, place: Tensor, slot: int = 0) -> Inference:
    """The memory of ``self``, standing where output ``slot`` of the place's node stands in the graph."""
    return new(self.shape, self.dtype, self.device, stride=self.stride)


@op(control=True, results=0, exposed=())
def bump_version(self: Tensor) -> Inference:
    """Count a change of the tensor's memory, as an in-place op does."""
    return nothing()


@op(control=True, exposed=())
def attach_function(
    name: str, inputs: list[Tensor], outputs: list[Tensor | None], attached: Ints = (), changed: Ints = ()
) -> Inference:
    """Make ``outputs`` the results of a node whose derivative lives in the client. Its place is the result.

    ``attached`` lists the outputs that gradients flow through; ``changed`` those that are inputs written to in
    place. Null stands for an output that is no tensor.
    """
    for i in (*attached, *changed):
        if not 0 <= i < len(outputs) or outputs[i] is None:
            raise ArgumentError(f"{i} does not number a tensor among the {len(outputs)} outputs")
    if not 0 < len(name) <= NAME_LENGTH:
        raise ArgumentError(f"a function's name has 1 to {NAME_LENGTH} characters, this one has {len(name)}")
    if not inputs:
        raise ArgumentError("a function without tensor inputs has nothing to differentiate by")
    return new((0,), inputs[0].dtype, inputs[0].device)


@op(control=True, exposed=())
def saved_of(place: Tensor, name: str, shape: Ints, stride: Ints, dtype: DType, at: int = -1) -> Inference:
    """What a node keeps for backward under the name of an operand or result, or a number that it was called with. It
    must have this shape and dtype; ``at`` counts in a list of tensors, -1 elsewhere."""
    if len(shape) != len(stride):
        raise ArgumentError(f"got {len(shape)} extents, but {len(stride)} strides")
    return new(shape, dtype, place.device, stride=stride)


@op(control=True, results=0, exposed=())
def let_go(place: Tensor, names: Strings, at: Ints) -> Inference:
    """Let a node forget what it saved under these names; ``at`` counts in a list of tensors, -1 elsewhere."""
    if len(names) != len(at):
        raise ArgumentError(f"got {len(names)} names, but {len(at)} positions")
    return nothing()


@op(control=True, results=0, exposed=())
def bring_back(place: Tensor, tensor: Tensor, name: str, at: int = -1) -> Inference:
    """Give a node back what it had let go of under this name."""
    return nothing()


@op(control=True, exposed=())
def new_region(source: Tensor | None = None) -> Inference:
    """A region: nodes made in it keep nothing for backward. With a ``source``, the same computation run again, whose
    nodes do keep what they save, until :func:`hand_over`."""
    return new((0,), uint8, "cpu")


@op(control=True, results=0, exposed=())
def set_region(region: Tensor | None = None) -> Inference:
    """The region of the records that follow, until the end of the frame. A frame starts with none."""
    return nothing()


@op(control=True, results=0, exposed=())
def hand_over(region: Tensor) -> Inference:
    """Give the nodes of the region's source what was saved when it was computed again."""
    return nothing()


@op(control=True, results=0, exposed=())
def forget_region(region: Tensor) -> Inference:
    """Let the nodes of a region give up what was handed to them."""
    return nothing()


@op(control=True, exposed=())
def begin_backward(
    tensors: list[Tensor],
    gradients: list[Tensor | None],
    inputs: list[Tensor] | None,
    places: list[Tensor],
    stages: Ints,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    accumulate: bool = True,
) -> Inference:
    """Prepare a backward that pauses at ``places``, each in one of the ``stages``, in this order. The result names it.

    With ``inputs`` only what leads to them is computed; ``accumulate`` says whether gradients go to their ``grad`` or
    become the results of :func:`finish_backward`.
    """
    if len(gradients) != len(tensors):
        raise ArgumentError(f"got {len(tensors)} tensors, but {len(gradients)} gradients")
    for tensor, gradient in zip(tensors, gradients, strict=True):
        check_gradient(tensor, gradient)
    if len(places) != len(stages) or any(stage not in STAGES for stage in stages):
        raise ArgumentError(f"{len(places)} places come with the stages {list(stages)}: one of 0 to 4 for each")
    return new((0,), float32, "cpu")


@op(control=True, results=None, exposed=())
def advance(run: Tensor, step: int, supplied: list[Tensor | None], results: int = 0, removed: Ints = ()) -> Inference:
    """Go on to the next pause with what the last one asked for. ``step`` counts the pauses, from 0.

    ``results`` says how many of the tensors there the client wants: it may know of fewer outputs than the node has.
    ``removed`` lists what was there and is to be undefined from now on.
    """
    return Inference(())


@op(control=True, results=None, exposed=())
def finish_backward(
    run: Tensor,
    step: int,
    supplied: list[Tensor | None],
    allow_unused: bool = False,
    materialize_grads: bool = False,
    removed: Ints = (),
) -> Inference:
    """Go on to the end. Results in the gradients of the inputs, where they do not accumulate."""
    return Inference(())


@op(control=True, results=0, exposed=())
def abandon_backward(run: Tensor) -> Inference:
    """Give a backward up where it stands, since a callback failed. What has accumulated stays."""
    return nothing()
