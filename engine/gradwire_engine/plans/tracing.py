"""Watching a frame run on the tape: every array that is made or written to becomes an instruction of a program.

The engine tells the tracer of the few places where arrays come to be. Whatever reads values in between, or belongs to
what no plan deals with, stops the tracer, with a reason; the frame itself goes on as if nobody had watched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.table import Kind, Op

from ..autograd.operands import cast_operand
from ..autograd.registry import CONTROLS, PLANNED, Kernel, Row
from ..autograd.tape import Saved
from ..autograd.tensor import Storage, Tensor
from ..runtime import work
from ..runtime.arrays import Array, Native
from ..runtime.backends import Backend
from ..runtime.fusing import Layout
from ..runtime.numpy_views import way_to
from .device import HOST, applied, array_types, carried, uploaded
from .inputs import Found, Unplannable, is_part, passed_on
from .numbers import TRACKED, TracedSaved, plain
from .program import (
    ArrivedGradient,
    At,
    DynamicView,
    Input,
    KernelCall,
    Lay,
    Number,
    Offset,
    OptimizerStep,
    PlanProgram,
    Thing,
    View,
    Write,
)

if TYPE_CHECKING:
    from ..autograd.engine import Engine
    from ..autograd.tape import Node

log = logging.getLogger("gradwire.plans")

MOST_INSTRUCTIONS: Final = 20_000
CONSTANT_BYTES: Final = 1 << 16


class _Random:
    """Stands for the session's generator among the arguments of a call."""


RANDOM: Final = _Random()


def _noted(method: Callable[..., None]) -> Callable[..., None]:
    """What cannot be noted stops the tracer, and not the frame."""

    @wraps(method)
    def note(self: Tracer, *args: Any) -> None:
        try:
            method(self, *args)
        except Unplannable as unplannable:
            self.stop(str(unplannable))
        except Exception:
            log.exception("a frame could not be captured")
            self.stop("a defect")

    return note


def _by_places(indices: list[Tensor | None]) -> bool:
    """Whether there is no mask among these, of whose elements a shape depends on."""
    return all(index is None or index.dtype.name != "bool" for index in indices)


def _flat(args: list[Any]) -> list[Any]:
    return [each for arg in args for each in (arg if type(arg) in (list, tuple) else (arg,))]


def _settled(
    row: Row, compiled: Callable[..., Any], args: list[Any], arguments: list[Any], shift: int
) -> tuple[Callable[..., Any], list[Any]]:  # fmt: skip
    """A compiled kernel that applies, and what it is given: arrays alone, where it settles all else."""
    found = None if row.settle is None or row.writes else row.settle(*arguments[shift:])
    return (compiled, args) if found is None else (found, [arg for arg in args[shift:] if type(arg) is At])


def _described(value: Any) -> Any:
    if type(value) in (list, tuple):
        return tuple(map(_described, value))
    return value.meta if type(value) is Tensor else value


def _cannot_fail(op: Op, values: list[Any], made: Meta) -> bool:
    """Whether no values of these operands make the op fail: floating point ones, and masks beside them."""
    masked = op.elementwise and made.dtype.carries_gradient
    given = [v.meta.dtype for v in _flat(values) if type(v) is Tensor]
    return bool(op.total) and all(dtype.carries_gradient or (masked and dtype is dtypes.bool_) for dtype in given)


class Tracer:
    """Notes the instructions of one frame, while the engine has it as its ``tracer``.

    It keeps no tensor and no array alive, since backward looks at who else holds a gradient.

    Attributes:
        reason: why there will be no plan; empty while nothing speaks against one.
        numbered: nodes of this frame with the numbers of the frame that they keep, by position of the parameter.
        grads: tensors that were in ``grad`` of a parameter when an optimizer ran, by the number of their template.
        device: where the frame computes; empty before its first array.
        numbers: the frame's, and behind them those that nodes of before the frame keep, as far as they are data.
        kept: the places of the latter, by the number of the node and the position of the parameter.
    """

    def __init__(self, engine: Engine, found: Found, numbers: list[Any]) -> None:
        self.engine = engine
        self.numbers = list(numbers)
        self.reason = ""
        self.program = PlanProgram()
        self.numbered: dict[int, tuple[ref[Any], dict[int, int]]] = {}
        self.kept: dict[tuple[int, int], int] = {}
        self.alive = [ref(thing) for thing in found.objects]
        self.things = {id(thing): i for i, thing in enumerate(found.objects)}
        self.payloads: list[tuple[Any, list[Any], int]] = []
        self.grads: list[tuple[ref[Any], int, Meta, int, int]] = []
        self._values: dict[int, tuple[ref[Any], int]] = {}
        self._arrays: dict[int, tuple[ref[Any], int]] = {}
        self._wholes: dict[int, tuple[ref[Any], int]] = {}
        self._whole_values: dict[int, int] = {}
        self._parts: set[int] = set()
        for i, thing in enumerate(found.objects):
            if type(thing) is Tensor:
                if is_part(thing):
                    self._parts.add(i)
                self._arrays.setdefault(id(thing.array), (ref(thing.array), i))
                whole = thing.storage.array
                self._wholes.setdefault(id(whole), (ref(whole), i))
        self._mappings: list[dict[int, int]] = []
        self._pending: list[Any] | None = None
        self._record: list[Any] | None = None
        self._record_mapping: dict[int, int] = {}
        self.kinds: list[str] = []
        self._raws: list[int] = []
        self.device = ""
        self._backend: Backend | None = None
        self._types = array_types(engine)

    @property
    def backend(self) -> Backend:
        """Of the device that the frame computes on."""
        return self.engine.backends[self.device or HOST]

    def stop(self, reason: str) -> None:
        """Give up: there will be no plan."""
        self.reason = self.reason or reason
        self.engine.tracer = None

    # Records and ops

    @_noted
    def record(self, op: Op, args: list[Any], values: list[Any]) -> None:
        """A record begins, with these decoded arguments."""
        mapping = {}
        for i, (param, arg) in enumerate(zip(op.params, args, strict=False)):
            kind = param.kind
            if type(arg) is str and kind in (Kind.SCALAR, Kind.POSITION, Kind.OPERAND):
                mapping[i] = len(self.kinds)
                self.kinds.append(arg)
        self._record, self._record_mapping = values, mapping

    @_noted
    def payload(self, op: Op, values: list[Any], at: int) -> None:
        """A payload of the frame is about to be given to an op."""
        array = values[at]
        number = self._new(array, None)
        self.program.payloads.append((number, len(self.payloads)))
        self.program.old.add(number)
        template = list(values)
        template[at] = None
        self.payloads.append((op, template, at))

    def took(self, values: list[Any]) -> bool:
        """Whether :meth:`run` hands these on to the engine."""
        taken, self._pending = self._pending is values, None
        return taken

    def run(self, row: Row, values: list[Any]) -> Any:
        """``engine.run``, with an eye on it."""
        mapping: dict[int, int] = {}
        if values is self._record:
            mapping, self._record = self._record_mapping, None
        followed = {i: value.place for i, value in enumerate(values) if type(value) in TRACKED}
        if followed:
            mapping = mapping | followed
            values = [plain(value) if i in followed else value for i, value in enumerate(values)]
        try:
            self._enter(row, values, mapping)
        except Unplannable as unplannable:
            self.stop(str(unplannable))
            return self.engine.run(row, values)
        op = row.op
        self._mappings.append(mapping)
        self._pending = values
        watching = self.engine.tracer
        if op.step:
            self.engine.tracer = None  # it is run as it is
        try:
            return self.engine.run(row, values)
        finally:
            self._mappings.pop()
            self._pending = None
            if watching is not None and not self.reason:
                self.engine.tracer = watching

    def _enter(self, row: Row, values: list[Any], mapping: dict[int, int]) -> None:
        op, engine = row.op, self.engine
        if engine.batched or engine.dual_levels:
            raise Unplannable("vmap or forward mode")
        if op.dynamic and not (op.name == "index" and _by_places(values[1])):
            raise Unplannable(f"op {op.name}: its shape depends on values")
        if op.control:
            if op.step:
                self._step(row, values, mapping)
                return
            if op.name not in PLANNED:
                raise Unplannable(f"op {op.name}")
        if op.mutates is not None:
            for value in values:
                for each in value if type(value) in (list, tuple) else (value,):
                    if type(each) is Tensor:
                        self.placed(each)
        if op.control or row.composite is not None:
            self.program.guarded.update(mapping.values())
        if len(self.program.code) > MOST_INSTRUCTIONS:
            raise Unplannable(f"more than {MOST_INSTRUCTIONS:,} instructions")

    def guard(self, place: int) -> None:
        """The plan holds only for frames with the same number at this place."""
        self.program.guarded.add(place)

    def numbers_checked(self) -> None:
        """The numbers of the op being run were looked at: another one may have to be refused."""
        if self._mappings:
            self.program.guarded.update(self._mappings[-1].values())

    def placed(self, tensor: Tensor) -> None:
        """Where this tensor begins in its memory is about to be used in another way than to make a view of it."""
        program = self.program
        if tensor.base is not None:
            self.placed(tensor.base)
        try:
            begins = program.offsets.get(self.value(tensor.array))
        except Unplannable:
            return  # whoever uses its memory will say so
        for place, i in begins.terms if begins is not None else ():
            if place < 0:
                thing = self.alive[i]()
                program.fixed[i] = thing.offset if thing is not None else tensor.offset
            else:
                program.guarded.update(n.place for n in program.places[place].args if type(n) is Number)

    # Values

    def _new(self, array: Array | None, memory: int | None) -> int:
        owners = self.program.memory
        number = len(owners)
        owners.append(number if memory is None else owners[memory])
        layout = None
        if array is not None and type(array) in self._types:
            self._values[id(array)] = (ref(array), number)
            layout = Layout(array.shape, array.strides, array.dtype.char)
        self.program.layouts.append(layout)
        return number

    def value(self, array: Array) -> int:
        """The number of this array.

        Raises:
            Unplannable: for one that came from nowhere.
        """
        found = self._values.get(id(array))
        if found is not None and found[0]() is array:
            return found[1]
        there = self._arrays.get(id(array))
        if there is None or there[0]() is not array:
            raise Unplannable("an array came from nowhere")
        thing = self.alive[there[1]]()
        if thing is None:
            raise Unplannable("an array outlived its tensor")
        memory = self.memory(thing.storage)
        number = self._new(array, memory)
        self.program.inputs[number] = Input(number, there[1], False)
        if there[1] in self._parts:
            self.program.offsets[number] = Offset(0, ((-1, there[1]),))
        return number

    def memory(self, storage: Storage) -> int:
        """The number of the value that is all of this memory.

        Raises:
            Unplannable: for memory that came from nowhere.
        """
        array = storage.array
        there = self._wholes.get(id(array))
        if there is not None and there[0]() is array:
            number = self._whole_values.get(id(array))
            if number is None:
                number = self._whole_values[id(array)] = self._new(None, None)
                self.program.inputs[number] = Input(number, there[1], True)
                self.program.old.add(number)
            return number
        found = self._values.get(id(array))
        if found is None or found[0]() is not array:
            raise Unplannable("memory came from nowhere")
        return found[1]

    def known(self, thing: object) -> int | None:
        """The number of an object that was there before the frame."""
        found = self.things.get(id(thing))
        return found if found is not None and self.alive[found]() is thing else None

    def _on(self, device: str) -> None:
        """Arrays are about to be computed here."""
        if device != self.device:
            if self.device:
                raise Unplannable("it computes on two devices")
            self.device = device

    # Where arrays come to be

    @_noted
    def called(
        self, row: Row, compiled: Kernel | None, values: list[Any], arguments: list[Any],
        casts: tuple[Native | None, Native | None], inferred: Inference, result: Any, fused: bool = False,
        applies: bool = False,
    ) -> None:  # fmt: skip
        """A kernel ran: the device's own if ``fused``, the compiled one if that ``applies``. ``arguments`` are
        ``values`` prepared, behind what else the kernel takes."""
        op, mapping = row.op, self._mappings[-1] if self._mappings else {}
        shift, function = len(arguments) - len(values), row.kernel
        assert function is not None
        self._on(inferred.outs[0].device if inferred.outs else values[0].device)
        if row.measure is not None:
            raise Unplannable(f"op {op.name}: its size depends on values")
        args: list[Any] = list(arguments[:shift])
        if op.random:
            args[1] = RANDOM
        for i, (value, argument) in enumerate(zip(values, arguments[shift:], strict=True)):
            if type(value) is Tensor:
                args.append(self._operand(value, argument, casts))
            elif i in mapping:
                if op.params[i].kind is Kind.POSITION and not op.params[i].free:
                    self.guard(mapping[i])
                wraps = type(value) is int and i in row.tensor_at
                args.append(Number(mapping[i], inferred.compute if wraps else None))
            elif type(value) in (list, tuple) and type(argument) is list and i in row.tensor_at:
                operands = zip(value, argument, strict=True)
                args.append([None if v is None else self._operand(v, a, casts) for v, a in operands])
            elif type(argument) in self._types or type(argument) is np.ndarray:
                args.append(At(self.value(argument)))
            else:
                args.append(argument)
        writes = None
        if op.mutates is not None and row.writes:
            if arguments[shift] is not values[0].array:
                raise Unplannable(f"op {op.name}: it writes through a copy")
            writes = self.value(arguments[shift])
            self._raws = []
        else:
            results = result if type(result) is tuple else (result,)
            self._raws = [self._new(raw, None) for raw in results]
            if op.name == "upload":
                self.program.old.update(self._raws)
        backend, launches = self.backend, False
        host = backend.xp is np
        if not host:
            kernels = backend.fused
            own = None if kernels is None else kernels.get(op.name)
            if own is not None:
                function = applied(own, function, row.half, inferred.compute, self.engine.coarse_products)
            # What else a graph cannot hold is found when it is captured. A payload is another one each time.
            launches = kernels is not None and (fused or not (op.random or row.payload_at is not None))
        machine = False
        if compiled is not None and not any(type(each) is Number for each in _flat(args)):
            # Whether it applies follows from what is the same for every frame of the plan.
            machine = applies
            if applies:
                function, args = _settled(row, compiled, args, arguments, shift)
            compiled = None
        # The device's own kernels choose by dtypes and layout, never by values.
        total = (fused and not host) or _cannot_fail(op, values, inferred.outs[0] if inferred.outs else values[0].meta)
        self.program.code.append(
            KernelCall(
                op.name,
                function,
                args,
                self._raws,
                compiled,
                writes,
                total,
                total and not op.random,
                inferred.outs,
                type(result) is tuple,
                launches=launches,
                machine=machine,
                steps=work.steps(op, list(map(_described, values)), inferred),
            )
        )

    def _operand(self, tensor: Tensor, argument: Array, casts: tuple[Native | None, Native | None]) -> At:
        array, backend = tensor.array, self.backend
        if argument is array:
            return At(self.value(array))
        source = self.value(array)
        number = self._new(argument, None)
        if type(array) is not backend.array_type:
            call = KernelCall("carried", carried, [At(source), backend, *casts], [number], total=True)
        else:
            launches = backend.fused is not None
            call = KernelCall("cast", cast_operand, [At(source), *casts], [number], total=True, launches=launches)
        self.program.code.append(call)
        return At(number)

    @_noted
    def laid_out(self, i: int, raw: Array, data: Array, out: Meta, operands: list[Tensor]) -> None:
        """The ``i``-th result of the kernel that ran last became ``data``."""
        number = self._raws[i]
        backend = self.backend
        # For other values a kernel may return NumPy's scalar in place of an array of no dimension.
        scalar = backend.xp is np and out.shape == () and (data is raw or type(raw) is not np.ndarray)
        if data is raw and not scalar and not self._depends_on_numbers(out):
            return
        made = self._new(data, None)
        shown = [] if scalar else [self.value(t.array) for t in operands if type(t.array) is backend.array_type]
        same = scalar and isinstance(raw, np.generic) and raw.dtype == data.dtype
        self.program.code.append(Lay(made, number, out, shown, scalar, same))

    def _depends_on_numbers(self, out: Meta) -> bool:
        """Whether the last call takes a number of the frame that may differ, on which the layout of this result might
        depend. A total op's depends on it at most where it is not row-major: ``x ** 1`` is a copy, ``x ** 3`` is not.
        """
        call = self.program.code[-1]
        if type(call) is not KernelCall or (call.total and out.contiguous):
            return False
        return any(type(arg) is Number for arg in call.args)

    @_noted
    def written(self, target: Array, raw: Array) -> None:
        """The result of the kernel that ran last was written over this array."""
        same = getattr(raw, "dtype", None) == target.dtype
        self.program.code.append(Write(self.value(target), self._raws[0], not same and hasattr(raw, "astype")))

    @_noted
    def viewed(
        self, row: Row, source: Tensor, rule_args: list[Any], inferred: Inference, results: list[Tensor]
    ) -> None:
        """These views of a tensor were made."""
        mapping, program = self._mappings[-1] if self._mappings else {}, self.program
        self._on(source.device)
        memory = self.memory(source.storage)
        origin = self.value(source.array)
        begins = program.offsets.get(origin)
        if begins is not None and any(out.dtype.itemsize != source.dtype.itemsize for out in inferred.outs):
            self.placed(source)
            begins = None
        terms = () if begins is None else begins.terms
        before = source.offset if begins is None else begins.constant
        positions = {i: place for i, place in mapping.items() if row.op.params[i].kind is Kind.POSITION}
        program.guarded.update(place for i, place in mapping.items() if i not in positions)
        if positions:
            args = tuple([Number(positions[i]) if i in positions else arg for i, arg in enumerate(rule_args)])
            program.places.append(DynamicView(row, args, inferred))
        for i, (result, delta) in enumerate(zip(results, inferred.offsets or (), strict=True)):
            out = result.meta
            size = out.dtype.itemsize
            number = self._new(result.array, memory)
            offset: int | Offset = result.offset * size
            if positions or terms:
                if size != source.dtype.itemsize:
                    raise Unplannable(f"op {row.op.name}: a view of another dtype begins where a number says")
                mine = ((len(program.places) - 1, i),) if positions else ()
                offset = Offset(before + (0 if positions else delta), (*terms, *mine))
                program.offsets[number] = offset
                if result.path is not None or row.op.name == "as_strided":
                    self.placed(result)
            strides = tuple([step * size for step in out.stride])
            ordered = memory in program.inputs or source.storage.array.flags.c_contiguous
            program.code.append(View(number, memory, out.shape, strides, offset, result.array.dtype, size, ordered))
            way = "" if positions or type(result.array) is not np.ndarray else way_to(source.array, result.array)
            if way:
                program.code[-1].source, program.code[-1].way = origin, way  # type: ignore[union-attr]

    @_noted
    def computed(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], result: Array | None) -> None:
        """Something other than a kernel ran on arrays; where it returned nothing, it wrote into the first one."""
        shown = [At(self.value(arg)) if type(arg) in self._types else arg for arg in args]
        writes = shown[0].value if result is None else None
        outs = [] if result is None else [self._new(result, None)]
        launches = self.backend.fused is not None
        call = KernelCall(name, function, shown, outs, writes=writes, total=True, launches=launches)
        self.program.code.append(call)

    @_noted
    def constant(self, host: Array, array: Array, backend: Backend) -> None:
        """An array was made of values that follow from the structure of the frame."""
        if host.nbytes > CONSTANT_BYTES:
            raise Unplannable("a large constant")
        function, args = (np.array, [host.copy()]) if backend.xp is np else (uploaded, [host.copy(), backend])
        self.program.code.append(KernelCall("constant", function, args, [self._new(array, None)], total=True))

    def _step(self, row: Row, values: list[Any], mapping: dict[int, int]) -> None:
        """An optimizer is about to run."""
        args: list[Any] = []
        given: list[ArrivedGradient] = []
        written: list[int] = []
        for i, value in enumerate(values):
            if i in mapping:
                args.append(Number(mapping[i]))
            elif type(value) is Tensor:
                args.append(Thing(self._old(row, value)))
                written.append(args[-1].number)
            elif type(value) is list:
                args.append([None if v is None else Thing(self._old(row, v)) for v in value])
                written.extend(thing.number for thing in args[-1] if thing is not None)
                if row.op.params[i].name == "params":
                    given.extend(ArrivedGradient(self._old(row, v), self._grad(row, v.grad)) for v in value)
            else:
                args.append(value)
        step = OptimizerStep(row.op.name, CONTROLS[row.op.name], args, given, written, self.engine.grad_enabled)
        self.program.code.append(step)

    def _old(self, row: Row, tensor: Tensor) -> int:
        number = self.known(tensor)
        if number is None:
            raise Unplannable(f"op {row.op.name}: a tensor of this frame")
        return number

    def _grad(self, row: Row, grad: Tensor | None) -> Any:
        """What a parameter has in ``grad``: nothing, an old object, or the number of a template in :attr:`grads`."""
        if grad is None:
            return None
        number = self.known(grad)
        if number is not None:
            return Thing(number)
        if grad._grad_fn is not None or grad.base is not None:
            raise Unplannable(f"op {row.op.name}: a gradient with history")
        for reference, *facts in self.grads:
            if reference() is grad:
                return facts[0]
        at = len(self.grads)
        self.grads.append((ref(grad), at, grad.meta, self.value(grad.array), self.memory(grad.storage)))
        if grad.offset or grad.array is not grad.storage.array:
            raise Unplannable(f"op {row.op.name}: a gradient that is a view")
        return at

    # Nodes and what they keep

    def noded(self, node: Node) -> None:
        """The op being run made this node."""
        mapping = self._mappings[-1] if self._mappings else None
        if mapping:
            self.numbered[id(node)] = (ref(node), mapping)

    def numbers_of(self, node: Node) -> dict[int, int]:
        """The places of numbers that a node of the frame keeps, by parameter."""
        found = self.numbered.get(id(node))
        return found[1] if found is not None and found[0]() is node else {}

    def _numbers_before(self, node: Node) -> dict[int, int]:
        """The places of numbers that are data in a node of before the frame, by parameter."""
        thing = self.known(node) if node.row.passed_on else None
        if thing is None:
            return {}
        found = {}
        for at in passed_on(node):
            place = self.kept.get((thing, at))
            if place is None:
                place = self.kept[thing, at] = len(self.numbers)
                self.numbers.append(node.values[at])
            found[at] = place
        return found

    def saved(self, node: Node, needed: list[bool]) -> Saved:
        """What a derivative sees."""
        numbers = self.numbers_of(node) or self._numbers_before(node)
        return TracedSaved(node, needed, numbers, self.guard) if numbers else Saved(node, needed)
