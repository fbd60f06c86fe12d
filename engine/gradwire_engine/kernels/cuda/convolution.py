"""Convolution by cuDNN, through NVIDIA's frontend, where both are installed; else the engine's own products of unrolled
windows run.

Engines of cuDNN whose sums are in no fixed order are left out, so that a replay gives the same bits, and so are those
that narrow their operands. On tensor cores float32 is rounded to TF32: their engines are left out for float32, unless
the session says that they may do so.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from importlib.util import find_spec
from math import prod
from typing import Any, Final

from gradwire_protocol.ops.convolution import Geometry, transposed_extents

from ...numerics.windows import Ints, Windows
from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.registry import fused
from .problem import aligned

KEPT: Final = 1024
"""Problems whose plan is remembered."""

IMAGE, WEIGHT, OUTPUT = 1, 2, 3
_TYPES: Final = {"float32": "FLOAT", "float16": "HALF", "bfloat16": "BFLOAT16"}
_mine: Final = threading.local()


class Frontend:
    """cuDNN for one thread: its handle, and the plans that were built."""

    def __init__(self, cudnn: Any) -> None:
        self.cudnn = cudnn
        self.handle = cudnn.create_handle()
        self._plans: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def plan(self, key: tuple[Any, ...]) -> Any:
        """The built graph of one problem; None where cuDNN has no engine for it."""
        if key in self._plans:
            self._plans.move_to_end(key)
        else:
            try:
                self._plans[key] = self._build(*key)
            except (self.cudnn.cudnnGraphNotSupportedError, RuntimeError):
                self._plans[key] = None
            if len(self._plans) > KEPT:
                self._plans.popitem(last=False)
        return self._plans[key]

    def _build(
        self, kind: str, element: str, shapes: tuple[Ints, Ints, Ints], before: Ints, after: Ints, stride: Ints,
        dilation: Ints, coarse: bool,
    ) -> Array:  # fmt: skip
        cudnn = self.cudnn
        own, single = getattr(cudnn.data_type, _TYPES[element]), cudnn.data_type.FLOAT
        graph = cudnn.pygraph(
            io_data_type=own, intermediate_data_type=single, compute_data_type=single, handle=self.handle
        )
        image, weight, output = shapes
        options = {
            "pre_padding": list(before), "post_padding": list(after), "stride": list(stride),
            "dilation": list(dilation), "compute_data_type": single,
        }  # fmt: skip

        def operand(uid: int, shape: Ints) -> Array:
            return graph.tensor(dim=list(shape), stride=_dense(shape), data_type=own, uid=uid)

        if kind == "forward":
            made = graph.conv_fprop(image=operand(IMAGE, image), weight=operand(WEIGHT, weight), **options)
        elif kind == "input":
            made = graph.conv_dgrad(loss=operand(OUTPUT, output), filter=operand(WEIGHT, weight), **options)
        else:
            made = graph.conv_wgrad(image=operand(IMAGE, image), loss=operand(OUTPUT, output), **options)
        uid, shape = {"forward": (OUTPUT, output), "input": (IMAGE, image), "weight": (WEIGHT, weight)}[kind]
        made.set_output(True).set_uid(uid).set_dim(list(shape)).set_stride(_dense(shape)).set_data_type(own)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        notes = [cudnn.numerical_note.NONDETERMINISTIC, cudnn.numerical_note.DOWN_CONVERT_INPUTS]
        if element == "float32" and not coarse:
            notes.append(cudnn.numerical_note.TENSOR_CORE)
        graph.deselect_numeric_notes(notes)
        graph.check_support()
        graph.build_plans()
        return graph


def frontend(xp: Namespace) -> Frontend | None:
    """This thread's way to cuDNN; None where it is not installed."""
    given = getattr(xp, "frontend", None)  # a test's
    if given is not None:
        found: Frontend = given
        return found
    if not hasattr(_mine, "frontend"):
        _mine.frontend = None
        if getattr(xp, "__name__", "") == "cupy" and find_spec("cudnn") is not None:
            try:
                import cudnn

                _mine.frontend = Frontend(cudnn)
            except (ImportError, RuntimeError, AttributeError):  # the frontend without cuDNN, or one of another age
                pass
    return _mine.frontend


def _dense(shape: Ints) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def _after(windows: Windows) -> Ints | None:
    """Padding behind the input, by which cuDNN comes to as many outputs; None when no padding does."""
    found = []
    for axis, n in enumerate(windows.outputs):
        s = windows.stride[axis]
        reach = (n - 1) * s + windows.dilation[axis] * (windows.kernel[axis] - 1) + 1
        short = reach - windows.extents[axis] - windows.padding[axis]
        if short <= -s:
            return None
        found.append(max(short, 0))
    return tuple(found)


def run(
    xp: Namespace, kind: str, windows: Windows, groups: int, coarse: bool, image: Any, weight: Any, output: Any
) -> Array:
    """One of the three products of a convolution: ``forward``, ``input`` or ``weight``. The operand that is made is
    given by its shape, the others as arrays ``(batch, channels, ...)`` and ``(made, channels / groups, ...)``."""
    lib = frontend(xp)
    given = [x for x in (image, weight, output) if not isinstance(x, tuple)]
    element = given[0].dtype.name
    after = _after(windows)
    usable = all(x.dtype.name == element and x.size for x in given)
    if lib is None or element not in _TYPES or after is None or not usable or not prod(windows.outputs):
        return NotImplemented
    operands = [x if isinstance(x, tuple) else aligned(xp.ascontiguousarray(x)) for x in (image, weight, output)]
    shapes = [x if isinstance(x, tuple) else tuple(x.shape) for x in operands]
    walks = [windows.padding, after, windows.stride, windows.dilation]
    if len(windows.kernel) == 1:  # cuDNN's images have two dimensions at least
        shapes = [(*s[:2], 1, *s[2:]) for s in shapes]
        walks = [(0, *walks[0]), (0, *walks[1]), (1, *walks[2]), (1, *walks[3])]
    plan = lib.plan((kind, element, tuple(shapes), *walks, coarse))
    if plan is None:
        return NotImplemented
    places = [xp.empty(x, given[0].dtype) if isinstance(x, tuple) else x for x in operands]
    size = plan.get_workspace_size()
    work = xp.empty((max(size, 1),), "B")
    lib.cudnn.set_stream(lib.handle, xp.cuda.get_current_stream().ptr)
    addresses = {uid: x.data.ptr for uid, x in zip((IMAGE, WEIGHT, OUTPUT), places, strict=True)}
    plan.execute(addresses, work.data.ptr, handle=lib.handle)
    return places[next(i for i, x in enumerate(operands) if isinstance(x, tuple))]


@fused("convolution", half=True, products=True)
def convolution(
    xp: Namespace, x: Array, weight: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, *,
    coarse: bool,
) -> Array:  # fmt: skip
    windows = Windows(x.shape[2:], extents, weight.shape[2:], stride, padding, dilation)
    shape = (x.shape[0], weight.shape[0], *extents)
    return run(xp, "forward", windows, groups, coarse, x, weight, shape)


@fused("convolution_input", half=True, products=True)
def convolution_input(
    xp: Namespace, g: Array, weight: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, *,
    coarse: bool,
) -> Array:  # fmt: skip
    windows = Windows(extents, g.shape[2:], weight.shape[2:], stride, padding, dilation)
    shape = (g.shape[0], weight.shape[1] * groups, *extents)
    return run(xp, "input", windows, groups, coarse, shape, weight, g)


@fused("convolution_weight", half=True, products=True)
def convolution_weight(
    xp: Namespace, g: Array, x: Array, extents: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, *,
    coarse: bool,
) -> Array:  # fmt: skip
    windows = Windows(x.shape[2:], g.shape[2:], extents, stride, padding, dilation)
    shape = (g.shape[1], x.shape[1] // groups, *extents)
    return run(xp, "weight", windows, groups, coarse, x, shape, g)


@fused("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", half=True, products=True)
def conv_transpose(
    xp: Namespace, x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, output_padding: Ints,
    groups: int, dilation: Ints, *, coarse: bool,
) -> Array:  # fmt: skip
    geometry = Geometry("conv_transpose", weight.shape[2:], stride, padding, dilation)
    x = x if x.ndim == weight.ndim else x[None]
    extents = transposed_extents("conv_transpose", x.shape[2:], geometry, output_padding)
    walk = (geometry.stride, geometry.before, geometry.dilation)
    out = convolution_input(xp, x, weight, extents, *walk, groups, coarse=coarse)
    if out is not NotImplemented and bias is not None:
        out += bias.reshape(-1, *[1] * (out.ndim - 2))
    return out


@fused("conv1d", "conv2d", "conv3d", half=True, products=True)
def conv(
    xp: Namespace, x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, *, coarse: bool,
) -> Array:  # fmt: skip
    geometry = Geometry("conv", weight.shape[2:], stride, padding, dilation)
    x = x if x.ndim == weight.ndim else x[None]
    extents = geometry.outputs(x.shape[2:])
    walk = (geometry.stride, geometry.before, geometry.dilation)
    out = convolution(xp, x, weight, extents, *walk, groups, coarse=coarse)
    if out is not NotImplemented and bias is not None:
        out += bias.reshape(-1, *[1] * (out.ndim - 2))
    return out
