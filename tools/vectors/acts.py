"""Frames for the ops that act on the session instead of computing a value, which have no samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from .frame_maker import FrameMaker, Ref

Make = Callable[[FrameMaker], None]
NAME: Final = "conformance.weight"


class Act(NamedTuple):
    """A frame for an op.

    Attributes:
        facts: what the vector says besides.
        compared: whether its values follow from the protocol.
    """

    op: str
    name: str
    text: str
    make: Make
    facts: dict[str, Any]
    compared: bool


ACTS: Final[list[Act]] = []


def act(op: str, name: str, text: str, *, compared: bool = True, **facts: Any) -> Callable[[Make], Make]:
    """Register the function as the maker of a frame for an op."""

    def register(make: Make) -> Make:
        ACTS.append(Act(op, name, text, make, facts, compared))
        return make

    return register


def leaf(f: FrameMaker, *values: float) -> Ref:
    """A float32 vector that requires grad."""
    found = plain(f, *values)
    f.record("requires_grad_", found)
    return found


def plain(f: FrameMaker, *values: float) -> Ref:
    """A float32 vector."""
    return f.upload("float32", [len(values)], list(values))


def one(f: FrameMaker, value: float) -> Ref:
    """A float32 number."""
    return f.upload("float32", [], value)


def matrix(f: FrameMaker, rows: list[list[float]]) -> Ref:
    """A float32 matrix."""
    return f.upload("float32", [len(rows), len(rows[0])], rows)


def parameter(f: FrameMaker) -> Ref:
    """A leaf of two numbers with a gradient."""
    found = leaf(f, 1.0, -2.0)
    f.record("set_grad", found, plain(f, 0.5, 0.25))
    return found


def read(f: FrameMaker, *refs: Ref) -> None:
    """Read values."""
    f.reads += map(int, refs)


@act("upload", "dtypes", "upload: a tensor of each kind of dtype")
def _(f: FrameMaker) -> None:
    read(f, f.upload("bool", [2], [True, False]), f.upload("uint8", [2], [0, 255]),
        f.upload("int64", [1], ["-9223372036854775808"]),
         f.upload("float16", [2], [0.5, "NaN"]), f.upload("bfloat16", [1], ["-Infinity"]),
         f.upload("float64", [0, 2], []), f.upload("complex64", [1], [[0.5, "Infinity"]]))  # fmt: skip


@act("set_mode", "no-grad", "set_mode: records under mode 0 have no history, those under mode 1 do")
def _(f: FrameMaker) -> None:
    x = leaf(f, 2.0)
    f.record("set_mode", 0)
    (constant,) = f.record("mul", x, x)
    f.record("set_mode", 1)
    (y,) = f.record("mul", x, constant)
    f.record("backward", [y], [None])
    read(f, *f.record("grad_of", x), *f.record("grad_fn_of", constant))


@act("set_mode", "anomaly", "set_mode: mode 5 looks for NaN in backward, and names the forward op")
def _(f: FrameMaker) -> None:
    x = leaf(f, -1.0)
    f.record("set_mode", 5)
    (y,) = f.record("sqrt", x)
    f.record("backward", [y], [None])


@act("backward", "scalar", "backward: gradients accumulate in the leaves")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0, 2.0, 3.0)
    (y,) = f.record("mul", x, x)
    (loss,) = f.record("sum", y)
    f.record("backward", [loss], [None], retain_graph=True)
    f.record("backward", [loss], [None])
    read(f, loss, *f.record("grad_of", x))


@act("backward", "gradient", "backward: of a vector with an initial gradient, into one of two leaves")
def _(f: FrameMaker) -> None:
    x, w = leaf(f, 1.0, 2.0), leaf(f, 3.0, 4.0)
    (y,) = f.record("mul", x, w)
    f.record("backward", [y], [plain(f, 0.5, -1.0)], [w])
    read(f, *f.record("grad_of", w), *f.record("grad_of", x))


@act("backward", "no-graph", "backward: of a tensor without history")
def _(f: FrameMaker) -> None:
    f.record("backward", [one(f, 1.0)], [None])


@act("backward", "twice", "backward: a graph is freed by the first")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0)
    (y,) = f.record("exp", x)
    f.record("backward", [y], [None])
    f.record("backward", [y], [None])


@act("backward", "changed", "backward: a saved tensor was changed in place")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0)
    (y,) = f.record("exp", x)
    f.record("add_", y, 1)
    f.record("backward", [y], [None])


@act("backward", "no-gradient", "backward: of several elements without an initial gradient")
def _(f: FrameMaker) -> None:
    (y,) = f.record("exp", leaf(f, 1.0, 2.0))
    f.record("backward", [y], [None])


@act("grad", "second", "grad: a second derivative by create_graph, and no grad anywhere")
def _(f: FrameMaker) -> None:
    x = leaf(f, 2.0)
    (y,) = f.record("pow", x, 3)
    (first,) = f.record("grad", [y], [x], [None], create_graph=True, results=1)
    (second,) = f.record("grad", [first], [x], [None], results=1)
    read(f, first, second, *f.record("grad_of", x))


@act("grad", "unused", "grad: an undefined gradient, and a materialized one")
def _(f: FrameMaker) -> None:
    x, unused = leaf(f, 2.0), leaf(f, 3.0)
    (y,) = f.record("exp", x)
    read(f, *f.record("grad", [y], [unused], [None], retain_graph=True, allow_unused=True, results=1),
         *f.record("grad", [y], [unused], [None], materialize_grads=True, allow_unused=True, results=1))  # fmt: skip


@act("grad_of", "undefined", "grad_of: a leaf without gradient has an undefined one")
def _(f: FrameMaker) -> None:
    read(f, *f.record("grad_of", leaf(f, 1.0)))


@act("set_grad", "assigned", "set_grad: a gradient is assigned, then removed")
def _(f: FrameMaker) -> None:
    x = parameter(f)
    (grad,) = f.record("grad_of", x)
    (kept,) = f.record("clone", grad)
    f.record("set_grad", x)
    read(f, kept, *f.record("grad_of", x))


@act("set_grad", "shape", "set_grad: a gradient of another shape")
def _(f: FrameMaker) -> None:
    f.record("set_grad", leaf(f, 1.0), plain(f, 1.0, 2.0))


@act("set_grad_dtype", "float64", "set_grad_dtype: gradients of a float32 leaf are float64")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.5)
    f.record("set_grad_dtype", x, _dtype("float64"))
    f.record("backward", [*f.record("mul", x, x)], [None])
    read(f, *f.record("grad_of", x, _dtype("float64")))


def _dtype(name: str) -> Any:
    from gradwire_protocol import dtypes

    return dtypes.BY_NAME[name]


@act("requires_grad_", "on-off", "requires_grad_: recording starts, and stops")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0)
    (y,) = f.record("exp", x)
    f.record("requires_grad_", x, False)
    (z,) = f.record("exp", x)
    read(f, *f.record("grad_fn_of", y), *f.record("grad_fn_of", z))


@act("requires_grad_", "int", "requires_grad_: an integer tensor cannot")
def _(f: FrameMaker) -> None:
    f.record("requires_grad_", f.upload("int64", [1], [1]))


@act("retain_grad", "inner", "retain_grad: a tensor that is no leaf keeps its gradient")
def _(f: FrameMaker) -> None:
    (y,) = f.record("exp", leaf(f, 0.0))
    f.record("retain_grad", y)
    f.record("backward", [*f.record("mul", y, 3.0)], [None])
    read(f, *f.record("grad_of", y))


@act("detach_", "history", "detach_: the tensor has no history any more")
def _(f: FrameMaker) -> None:
    (y,) = f.record("exp", leaf(f, 0.0))
    f.record("detach_", y)
    read(f, y, *f.record("grad_fn_of", y))


@act("data_of", "writes", "data_of: writes through it are seen, and go unnoticed by backward")
def _(f: FrameMaker) -> None:
    x = leaf(f, 2.0)
    (y,) = f.record("mul", x, x)
    f.record("fill_", *f.record("data_of", x), 5.0)
    f.record("backward", [y], [None])
    read(f, x, *f.record("grad_of", x))


@act("set_data", "moved", "set_data: a leaf shows other memory")
def _(f: FrameMaker) -> None:
    x = leaf(f, 2.0)
    f.record("set_data", x, plain(f, 7.0, 8.0))
    read(f, x)


@act("resized", "smaller", "resized: the first elements, in another shape")
def _(f: FrameMaker) -> None:
    read(f, *f.record("resized", plain(f, 1.0, 2.0, 3.0, 4.0, 5.0), (2, 2)))


@act("manual_seed", "same", "manual_seed: the same seed gives the same numbers, in bits")
def _(f: FrameMaker) -> None:
    drawn = []
    for _ in range(2):
        f.record("manual_seed", 3)
        drawn += [*f.record("rand", (4,)), *f.record("randn", (4,)), *f.record("randint", 0, 100, (4,))]
    for first, again in zip(drawn[:3], drawn[3:], strict=True):
        read(f, *f.record("eq", first, again))


@act("manual_seed", "goes-on", "manual_seed: numbers drawn one after the other differ")
def _(f: FrameMaker) -> None:
    f.record("manual_seed", 3)
    (same,) = f.record("eq", *f.record("rand", (8,)), *f.record("rand", (8,)))
    read(f, *f.record("any", same))


@act("get_rng_state", "form", "get_rng_state: 16 bytes")
def _(f: FrameMaker) -> None:
    f.record("manual_seed", 3)
    (state,) = f.record("get_rng_state")
    read(f, *f.record("shape_of", state))


@act("set_rng_state", "restored", "set_rng_state: the numbers after a state come again")
def _(f: FrameMaker) -> None:
    (state,) = f.record("get_rng_state")
    (first,) = f.record("rand", (4,))
    f.record("set_rng_state", state)
    read(f, *f.record("eq", first, *f.record("rand", (4,))))


@act("set_default_dtype", "float64", "set_default_dtype: floats become float64, until it is set back")
def _(f: FrameMaker) -> None:
    f.record("set_default_dtype", "float64")
    (wide,) = f.record("full", (1,), 1.5)
    f.record("set_default_dtype", "float32")
    read(f, wide, *f.record("full", (1,), 1.5))


@act("set_default_dtype", "unknown", "set_default_dtype: no such dtype")
def _(f: FrameMaker) -> None:
    f.record("set_default_dtype", "float8")


@act("set_float32_matmul_precision", "highest", "set_float32_matmul_precision: as a session starts")
def _(f: FrameMaker) -> None:
    f.record("set_float32_matmul_precision", "highest")
    x = matrix(f, [[1.0, 2.0], [3.0, 4.0]])
    read(f, *f.record("matmul", x, x))


@act("set_float32_matmul_precision", "unknown", "set_float32_matmul_precision: no such precision")
def _(f: FrameMaker) -> None:
    f.record("set_float32_matmul_precision", "lowest")


@act("set_name", "moved", "set_name: a name held before moves")
def _(f: FrameMaker) -> None:
    f.record("set_name", plain(f, 1.0), NAME)
    f.record("set_name", plain(f, 2.0), NAME)
    read(f, *f.record("by_name", NAME))


@act("by_name", "found", "by_name: the same tensor, not a copy")
def _(f: FrameMaker) -> None:
    x = plain(f, 1.0, 2.0)
    f.record("set_name", x, NAME)
    (found,) = f.record("by_name", NAME)
    f.record("add_", x, 1)
    read(f, found)


@act("by_name", "unknown", "by_name: no tensor has the name")
def _(f: FrameMaker) -> None:
    f.record("by_name", "conformance.nobody")


@act("grad_fn_of", "name", "grad_fn_of: the letters of the node's name as uint8; none for a leaf")
def _(f: FrameMaker) -> None:
    x = leaf(f, 1.0)
    read(f, *f.record("grad_fn_of", *f.record("exp", x)), *f.record("grad_fn_of", x))


@act("shape_of", "dynamic", "shape_of: an extent that depended on data")
def _(f: FrameMaker) -> None:
    (found,) = f.record("nonzero", f.upload("int64", [2, 2], [[0, 3], [4, 0]]))
    read(f, *f.record("shape_of", found))


@act("offset_of", "view", "offset_of: where a view begins")
def _(f: FrameMaker) -> None:
    (view,) = f.record("slice", plain(f, 1.0, 2.0, 3.0), 0, 2)
    read(f, *f.record("offset_of", view))


# Optimizers


@act("zero_grad", "both", "zero_grad: gradients are removed, or filled with zeros")
def _(f: FrameMaker) -> None:
    x, y = parameter(f), parameter(f)
    f.record("zero_grad", [x])
    f.record("zero_grad", [y], False)
    read(f, *f.record("grad_of", x), *f.record("grad_of", y))


@act("clip_grad_norm_", "clipped", "clip_grad_norm_: the norm before, and the gradients after")
def _(f: FrameMaker) -> None:
    x, y = parameter(f), parameter(f)
    (norm,) = f.record("clip_grad_norm_", [x, y], 0.5)
    read(f, norm, *f.record("grad_of", x), *f.record("grad_of", y))


@act("sgd_step", "plain", "sgd_step: without momentum; a parameter without gradient is left alone")
def _(f: FrameMaker) -> None:
    x, alone = parameter(f), leaf(f, 9.0)
    f.record("sgd_step", [x, alone], [None, None], 0.1)
    read(f, x, alone)


@act("sgd_step", "momentum", "sgd_step: Nesterov's momentum and weight decay, two steps")
def _(f: FrameMaker) -> None:
    x, buffer = parameter(f), plain(f, 0.0, 0.0)
    for first in (True, False):
        f.record("sgd_step", [x], [buffer], 0.1, momentum=0.9, weight_decay=0.01, nesterov=True, first=(first,))
    read(f, x, buffer)


@act("adam_step", "adam", "adam_step: one step")
def _(f: FrameMaker) -> None:
    x, mean, square = parameter(f), plain(f, 0.0, 0.0), plain(f, 0.0, 0.0)
    f.record("adam_step", [x], [mean], [square], [None], 0.01)
    read(f, x, mean, square)


@act("adam_step", "adamw", "adam_step: AdamW with amsgrad, two steps")
def _(f: FrameMaker) -> None:
    x, mean, square, most = parameter(f), plain(f, 0.0, 0.0), plain(f, 0.0, 0.0), plain(f, 0.0, 0.0)
    for step in (1, 2):
        f.record("adam_step", [x], [mean], [square], [most], 0.01, weight_decay=0.1, step=step, amsgrad=True,
                 decoupled_weight_decay=True)  # fmt: skip
    read(f, x, mean, square, most)


@act("adam_step", "state", "adam_step: a state of another shape")
def _(f: FrameMaker) -> None:
    f.record("adam_step", [parameter(f)], [plain(f, 0.0)], [plain(f, 0.0, 0.0)], [None], 0.01)


@act("rmsprop_step", "centered", "rmsprop_step: centered, with momentum")
def _(f: FrameMaker) -> None:
    x, states = parameter(f), [plain(f, 0.0, 0.0) for _ in range(3)]
    f.record("rmsprop_step", [x], *[[state] for state in states], 0.01, momentum=0.9, centered=True)
    read(f, x, *states)


def _stepped(name: str, states: int, *numbers: float, start: float = 0.0, **options: Any) -> None:
    @act(name, "one", f"{name}: one step")
    def _(f: FrameMaker) -> None:
        x, held = parameter(f), [plain(f, start, start) for _ in range(states)]
        f.record(name, [x], *[[state] for state in held], *numbers, **options)
        read(f, x, *held)


_stepped("adagrad_step", 1, 0.1, lr_decay=0.01, step=2)
_stepped("adamax_step", 2, 0.01)
_stepped("nadam_step", 2, 0.01, mu=0.9, mu_next=0.91, mu_product=0.9)
_stepped("radam_step", 2, 0.01, step=8)
_stepped("adadelta_step", 2)
_stepped("rprop_step", 2, start=0.01)
_stepped("asgd_step", 1, 0.01)


@act("adafactor_step", "matrix", "adafactor_step: a matrix by its rows and columns")
def _(f: FrameMaker) -> None:
    x = matrix(f, [[1.0, 2.0], [3.0, 4.0]])
    f.record("requires_grad_", x)
    f.record("set_grad", x, matrix(f, [[0.5, -0.25], [0.125, 1.0]]))
    rows, columns = matrix(f, [[0.0], [0.0]]), matrix(f, [[0.0, 0.0]])
    f.record("adafactor_step", [x], [rows], [columns], [None], 0.01)
    read(f, x, rows, columns)


@act("muon_step", "matrix", "muon_step: the momentum; the direction is rounded to bfloat16, so it is not compared")
def _(f: FrameMaker) -> None:
    x = matrix(f, [[1.0, 2.0], [3.0, 4.0]])
    f.record("requires_grad_", x)
    f.record("set_grad", x, matrix(f, [[0.5, -0.25], [0.125, 1.0]]))
    momentum = matrix(f, [[0.0, 0.0], [0.0, 0.0]])
    f.record("muon_step", [x], [momentum], 0.01)
    (moved,) = f.record("shape_of", x)
    read(f, moved, momentum)


@act("unscale_gradients", "finite", "unscale_gradients: gradients are divided, and whether one was not finite")
def _(f: FrameMaker) -> None:
    x, y = parameter(f), leaf(f, 1.0)
    f.record("set_grad", y, f.upload("float32", [1], ["Infinity"]))
    scale = one(f, 4.0)
    read(f, *f.record("unscale_gradients", [x], scale), *f.record("grad_of", x),
         *f.record("unscale_gradients", [x, y], scale))  # fmt: skip


@act("update_scale", "both", "update_scale: it shrinks where a gradient was not finite, and grows otherwise")
def _(f: FrameMaker) -> None:
    scale, tracker = one(f, 8.0), f.upload("int32", [], 0)
    f.record("update_scale", scale, tracker, [one(f, 1.0)])
    (shrunk,) = f.record("clone", scale)
    f.record("update_scale", scale, tracker, [one(f, 0.0)], growth_interval=1)
    read(f, shrunk, scale, tracker)


@act("flat_gradient", "two", "flat_gradient: zeros where there is none")
def _(f: FrameMaker) -> None:
    read(f, *f.record("flat_gradient", [parameter(f), leaf(f, 1.0)]))


@act("flat_values", "two", "flat_values: one after the other")
def _(f: FrameMaker) -> None:
    read(f, *f.record("flat_values", [parameter(f), leaf(f, 7.0)]))


@act("move_params", "direction", "move_params: along a direction, then back to an origin")
def _(f: FrameMaker) -> None:
    x, y = parameter(f), leaf(f, 7.0)
    (origin,) = f.record("flat_values", [x, y])
    f.record("move_params", [x, y], plain(f, 1.0, 2.0, 3.0), 0.5)
    (moved,) = f.record("flat_values", [x, y])
    f.record("move_params", [x, y], plain(f, 1.0, 2.0, 3.0), 0.0, origin)
    read(f, moved, *f.record("flat_values", [x, y]))


@act("gradient_facts", "direction", "gradient_facts: what a line search asks")
def _(f: FrameMaker) -> None:
    read(f, *f.record("gradient_facts", plain(f, 1.0, -2.0), plain(f, 0.5, 0.25)))


@act("lbfgs_direction", "first", "lbfgs_direction: the second step of a run")
def _(f: FrameMaker) -> None:
    made = f.record("lbfgs_direction", plain(f, 0.5, 1.0), plain(f, 1.0, 3.0), plain(f, -1.0, -3.0), 0.5, [], [], [],
                    one(f, 1.0))  # fmt: skip
    read(f, *made)


# Mapping and forward mode


@act("batch", "mapped", "batch and unbatch: a function of rows, mapped over a matrix")
def _(f: FrameMaker) -> None:
    (row,) = f.record("batch", matrix(f, [[1.0, 2.0], [3.0, 4.0]]), 0, 1)
    (total,) = f.record("sum", row)
    read(f, *f.record("unbatch", total, 1, 0, 2))


@act("unbatch", "unmapped", "unbatch: what was not mapped is repeated, as a new last dimension")
def _(f: FrameMaker) -> None:
    (row,) = f.record("batch", matrix(f, [[1.0, 2.0], [3.0, 4.0]]), 1, 1)
    (column,) = f.record("mul", row, 2.0)
    read(f, *f.record("unbatch", column, 1, 1, 2), *f.record("unbatch", plain(f, 5.0), 1, 0, 2))


@act("enter_dual_level", "derivative", "forward mode: the derivative of a square in one direction", fresh=True)
def _(f: FrameMaker) -> None:
    f.record("enter_dual_level", 1)
    (dual,) = f.record("make_dual", plain(f, 3.0), plain(f, 2.0), 1)
    (y,) = f.record("mul", dual, dual)
    read(f, *f.record("primal_of", y, 1), *f.record("tangent_of", y, 1))
    f.record("exit_dual_level", 1)


@act("make_dual", "shape", "make_dual: a tangent of another shape", fresh=True)
def _(f: FrameMaker) -> None:
    f.record("enter_dual_level", 1)
    f.record("make_dual", plain(f, 3.0), plain(f, 2.0, 1.0), 1)


@act("primal_of", "plain", "primal_of: a view without tangent", fresh=True)
def _(f: FrameMaker) -> None:
    f.record("enter_dual_level", 1)
    (dual,) = f.record("make_dual", plain(f, 3.0), plain(f, 2.0), 1)
    (primal,) = f.record("primal_of", dual, 1)
    read(f, primal, *f.record("tangent_of", primal, 1))


@act("tangent_of", "none", "tangent_of: zeros where there is none", fresh=True)
def _(f: FrameMaker) -> None:
    f.record("enter_dual_level", 1)
    read(f, *f.record("tangent_of", plain(f, 3.0, 4.0), 1))


@act("exit_dual_level", "gone", "exit_dual_level: no level is open", fresh=True)
def _(f: FrameMaker) -> None:
    f.record("exit_dual_level", 1)


def without_group(op: str, *args: Any) -> None:
    """Register a frame with a collective whose group is not open: groups are opened by the session, not by a frame."""

    def make(f: FrameMaker) -> None:
        read(f, *f.record(op, *[plain(f, 1.0, 2.0) if arg is Ref else arg for arg in args]))

    act(op, "no_group", f"{op}: without an open group it fails")(make)


for _collective, _arguments in {
    "all_reduce_": [Ref, "world"],
    "reduce_": [Ref, "world", 0],
    "broadcast_": [Ref, "world", 0],
    "all_gather": [Ref, "world", 2],
    "gather_to": [Ref, "world", 0, 0, 2],
    "scatter_from_": [Ref, "world", 1],
    "reduce_scatter": [Ref, "world", 2],
    "all_to_all": [Ref, "world", (1, 1), (1, 1)],
    "barrier": ["world"],
    "send": [Ref, "world", 1],
    "recv_": [Ref, "world", 1],
}.items():
    without_group(_collective, *_arguments)


@act("average_gradients", "no_group", "average_gradients: without an open group it fails, and so do steps after it")
def _(f: FrameMaker) -> None:
    f.record("average_gradients", [plain(f, 1.0, 2.0)], "world", (0,))


@act("broadcast_each", "no_group", "broadcast_each: without an open group it fails, and its tensors keep their values")
def _(f: FrameMaker) -> None:
    x = plain(f, 1.0, 2.0)
    f.record("broadcast_each", [x], "world", 0)
    read(f, x)
