"""Frames for backward with callbacks: custom functions, hooks, recomputed regions."""

from __future__ import annotations

from gradwire_protocol import dtypes
from gradwire_protocol.ops.callbacks import ACCUMULATED, AFTER, BEFORE, BEFORE_RUN, HOLD, INSTEAD

from .acts import act, leaf, plain, read
from .frame_maker import FrameMaker, Ref


def chain(f: FrameMaker) -> tuple[Ref, Ref, Ref]:
    """A leaf, the place of its exponential, and the sum."""
    x = leaf(f, 1.0, 2.0)
    (y,) = f.record("exp", x)
    (place,) = f.record("place_of", y)
    return x, place, f.record("sum", y)[0]


@act("attach_function", "square", "attach_function: a derivative of the client's own, as docs/protocol.md shows it")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0, 2.0)
    f.record("set_mode", 0)
    (y,) = f.record("mul", x, x)
    f.record("set_mode", 1)
    (place,) = f.record("attach_function", "SquareBackward", [x], [y], (0,))
    (loss,) = f.record("sum", y)
    (run,) = f.record("begin_backward", [loss], [None], None, [place], (INSTEAD,))
    (gradient,) = f.record("advance", run, 0, [], 1, results=1)
    (product,) = f.record("mul", gradient, x)
    (doubled,) = f.record("mul", product, 2.0)
    f.record("finish_backward", run, 1, [doubled], results=0)
    read(f, gradient, *f.record("grad_of", x), *f.record("grad_fn_of", y))


@act("attach_function", "outputs", "attach_function: an attached output that is none")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0)
    f.record("attach_function", "F", [x], [*f.record("ones", (1,))], (3,))


@act("begin_backward", "before-and-after", "begin_backward: a hook before and after a node, with gradients as results")
def _(f: FrameMaker) -> None:
    x, place, loss = chain(f)
    (run,) = f.record("begin_backward", [loss], [None], [x], [place, place], (BEFORE, AFTER), False, False, False)
    (arrived,) = f.record("advance", run, 0, [], 1, results=1)
    (tripled,) = f.record("mul", arrived, 3.0)
    operand, came = f.record("advance", run, 1, [tripled], 2, results=2)
    (zeros,) = f.record("zeros_like", operand)
    read(f, came, operand, *f.record("finish_backward", run, 2, [zeros], results=1))


@act("begin_backward", "keeps", "begin_backward: a null keeps the gradient as it is")
def _(f: FrameMaker) -> None:
    x, place, loss = chain(f)
    (run,) = f.record("begin_backward", [loss], [None], None, [place], (BEFORE_RUN,))
    (arrived,) = f.record("advance", run, 0, [], 1, results=1)
    f.record("finish_backward", run, 1, [None], results=0)
    read(f, arrived, *f.record("grad_of", x))


@act("begin_backward", "accumulated", "begin_backward: a pause after a leaf has its gradient")
def _(f: FrameMaker) -> None:
    x, _, loss = chain(f)
    (run,) = f.record("begin_backward", [loss], [None], None, [x], (ACCUMULATED,))
    f.record("advance", run, 0, [], 0, results=0)
    (grad,) = f.record("grad_of", x)
    f.record("finish_backward", run, 1, [], results=0)
    read(f, grad)


@act("begin_backward", "stage", "begin_backward: a stage that does not exist")
def _(f: FrameMaker) -> None:
    _, place, loss = chain(f)
    f.record("begin_backward", [loss], [None], None, [place], (9,))


@act("advance", "step", "advance: a step that the backward does not stand at")
def _(f: FrameMaker) -> None:
    _, place, loss = chain(f)
    (run,) = f.record("begin_backward", [loss], [None], None, [place], (BEFORE,))
    f.record("advance", run, 1, [], 1, results=1)


@act("advance", "places", "advance: two places of a chain, one after the other")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0)
    (y,) = f.record("exp", x)
    (z,) = f.record("neg", y)
    (run,) = f.record("begin_backward", [z], [None], None, [z, y], (BEFORE, BEFORE))
    (first,) = f.record("advance", run, 0, [], 1, results=1)
    (second,) = f.record("advance", run, 1, [None], 1, results=1)
    f.record("finish_backward", run, 2, [None], results=0)
    read(f, first, second, *f.record("grad_of", x))


@act("finish_backward", "early", "finish_backward: a pause is still ahead")
def _(f: FrameMaker) -> None:
    _, place, loss = chain(f)
    (run,) = f.record("begin_backward", [loss], [None], None, [place], (BEFORE,))
    f.record("finish_backward", run, 0, [], results=0)


@act("abandon_backward", "usable", "abandon_backward: the graph is still there")
def _(f: FrameMaker) -> None:
    x, place, loss = chain(f)
    (run,) = f.record("begin_backward", [loss], [None], None, [place], (BEFORE,))
    f.record("advance", run, 0, [], 1, results=1)
    f.record("abandon_backward", run)
    f.record("backward", [loss], [None])
    read(f, *f.record("grad_of", x))


@act("place_of", "leaf", "place_of: no history, no place")
def _(f: FrameMaker) -> None:
    f.record("place_of", plain(f, 1.0))


@act("place_of", "form", "place_of: a tensor without elements")
def _(f: FrameMaker) -> None:
    (y,) = f.record("exp", leaf(f, 1.0))
    read(f, *f.record("grad_fn_of", *f.record("place_of", y)), *f.record("shape_of", *f.record("place_of", y)))


@act("next_place", "edge", "next_place: the node that an edge leads to")
def _(f: FrameMaker) -> None:
    (y,) = f.record("neg", *f.record("exp", leaf(f, 1.0)))
    (place,) = f.record("place_of", y)
    read(f, *f.record("grad_fn_of", *f.record("next_place", place, 0)))


@act("rejoin", "stands", "rejoin: the memory of one tensor, standing where another stands")
def _(f: FrameMaker) -> None:
    x = leaf(f, 2.0)
    (y,) = f.record("mul", x, x)
    (joined,) = f.record("rejoin", plain(f, 100.0), *f.record("place_of", y))
    f.record("backward", [joined], [None])
    read(f, joined, *f.record("grad_of", x))


@act("bump_version", "noticed", "bump_version: backward takes it for a change")
def _(f: FrameMaker) -> None:
    (y,) = f.record("exp", leaf(f, 1.0))
    f.record("bump_version", y)
    f.record("backward", [y], [None])


@act("saved_of", "result", "saved_of: what a node keeps for backward")
def _(f: FrameMaker) -> None:
    (y,) = f.record("exp", leaf(f, 0.0))
    read(f, *f.record("saved_of", *f.record("place_of", y), "result", (1,), (1,), dtypes.float32))


@act("let_go", "missed", "let_go: what was not brought back is missed")
def _(f: FrameMaker) -> None:
    _, place, loss = chain(f)
    f.record("let_go", place, ("result",), (-1,))
    f.record("backward", [loss], [None])


@act("bring_back", "held", "bring_back: the client held what the node saved, and gives it back in backward")
def _(f: FrameMaker) -> None:
    x, place, loss = chain(f)
    (held,) = f.record("saved_of", place, "result", (2,), (1,), dtypes.float32)
    (kept,) = f.record("clone", held)
    f.record("let_go", place, ("result",), (-1,))
    (run,) = f.record("begin_backward", [loss], [None], None, [place], (HOLD,))
    f.record("advance", run, 0, [], 0, results=0)
    f.record("bring_back", place, kept, "result")
    f.record("finish_backward", run, 1, [], results=0)
    read(f, *f.record("grad_of", x))


def region(f: FrameMaker) -> tuple[Ref, Ref, Ref]:
    """A leaf, a region with its exponential, and the sum."""
    x = leaf(f, 1.0, 2.0)
    (first,) = f.record("new_region")
    f.record("set_region", first)
    (y,) = f.record("exp", x)
    f.record("set_region")
    return x, first, f.record("sum", y)[0]


@act("new_region", "recomputed", "new_region: a checkpoint, computed again during backward and handed over")
def _(f: FrameMaker) -> None:
    x, first, loss = region(f)
    (run,) = f.record("begin_backward", [loss], [None], None, [first], (HOLD,))
    f.record("advance", run, 0, [], 0, results=0)
    (again,) = f.record("new_region", first)
    f.record("set_region", again)
    (alike,) = f.record("detach", x)
    f.record("requires_grad_", alike)
    f.record("exp", alike)
    f.record("set_region")
    f.record("hand_over", again)
    f.record("finish_backward", run, 1, [], results=0)
    read(f, *f.record("grad_of", x))


@act("set_region", "saves-nothing", "set_region: nodes of a region keep nothing for backward")
def _(f: FrameMaker) -> None:
    _, _, loss = region(f)
    f.record("backward", [loss], [None])


@act("hand_over", "differs", "hand_over: the second computation was another")
def _(f: FrameMaker) -> None:
    _, first, _ = region(f)
    f.record("hand_over", *f.record("new_region", first))


@act("forget_region", "gives-up", "forget_region: nothing is left of what was handed over")
def _(f: FrameMaker) -> None:
    x, first, loss = region(f)
    (again,) = f.record("new_region", first)
    f.record("set_region", again)
    f.record("requires_grad_", x)
    f.record("exp", x)
    f.record("set_region")
    f.record("hand_over", again)
    f.record("forget_region", first)
    f.record("backward", [loss], [None])
