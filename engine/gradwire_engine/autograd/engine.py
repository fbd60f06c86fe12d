"""The one pipeline that runs every op: describe, infer, check, cast, compute, wrap, record.

An engine belongs to one session. It has no global state: modes, random numbers and memory are its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary, ref

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, InternalError, KernelError, LinAlgError, OutOfMemory, ShapeError
from gradwire_protocol.history import MADE_IN_INFERENCE, MADE_IN_NO_GRAD, ONE_OF_SEVERAL, PLAIN
from gradwire_protocol.meta import Inference, Meta, meta
from gradwire_protocol.overlap import repeats
from gradwire_protocol.promotion import DEFAULT_FLOAT

from ..runtime import work
from ..runtime.arrays import Array, Native, dtype_of, native, widened_native
from ..runtime.backends import Backends, NumpyBackend
from ..runtime.deadline import Clock
from ..runtime.groups import Group
from ..runtime.memory import Limits, MemoryAccount
from ..runtime.random import Generator
from . import forward, inplace
from .describing import described, tensors_among
from .engine_context import ChangeLog, FrameTracer, GradientWatcher, NodeObserver, ResultObserver
from .known_calls import SHARED, KnownCall, KnownCalls, ShortWay
from .operands import lay_out, operand, widened, wrapped_number
from .plain_calls import plain_call
from .plain_views import plain_view
from .recording import any_requires_grad, keep_results, make_node, refuse_underived
from .registry import CONTROLS, WRITING, Row, row
from .tape import Node
from .tensor import Storage, Tensor
from .vmap import holds_batched, run_batched

_WHY_UNDEFINED: Final = {
    "Singular matrix": "a matrix is singular",
    "Matrix is not positive definite": "a matrix is not positive definite",
    "Array must not contain infs or NaNs": "a matrix has infinities or NaN",
    "SVD did not converge": "the singular values do not converge",
    "Eigenvalues did not converge": "the eigenvalues do not converge",
    "SVD did not converge in Linear Least Squares": "the singular values do not converge",
}
"""What the array library says of matrices, in words of ours."""
_TOO_LARGE: Final = (
    "array is too big", "imum supported dimension", "imum allowed dimension", "cannot reshape array of size 0",
)  # fmt: skip
"""What array libraries say of a shape with more dimensions, or extents, than they count to."""


class Engine:
    """Computes for one session.

    Attributes:
        grad_enabled, inference, anomaly: the modes of the record being run.
        default_dtype: what Python floats become.
        generator: the session's random numbers.
        account: the session's memory.
        position: of the record being run; nodes remember it.
        timeline: where backward notes its nodes' times, for a frame that asked for them: the record being run, the
            node's name, the position of the record that made it, start and end in ns.
        compiled: whether compiled kernels run where there are any; they must have been loaded. It changes between
            frames only, and a session's journal says where.
        takes_short_ways: whether plain calls go the short way (:mod:`.plain_calls`), and derivatives of them
            (:mod:`.plain_derivatives`).
        coarse_products: whether a GPU may round float32 to TF32 in products of matrices.
        undo: told of every change to what was there before the frame, while one runs on the tape.
        watcher: told by the backward that runs of gradients of leaves, as soon as they are complete.
        clock: of the frame that runs.
        tracer: told of every array that is made or written to, while a frame is captured for a plan.
        dual_levels: the levels of forward mode at which tangents are computed now, outermost first.
        duals: per open level, who has tangents there.
        groups: the open groups of sessions, by name.
        observer: sees all results and gradients, in a replay that looks for something.
    """

    compiled = False
    coarse_products = False
    takes_short_ways = True

    def __init__(
        self, limits: Limits | None = None, backends: Backends | None = None, seed: int = 0,
        default_dtype: DType = dtypes.float32,
    ) -> None:  # fmt: skip
        self.account = MemoryAccount(limits or Limits())
        self.backends = backends or Backends()
        self.generator = Generator(seed)
        self.default_dtype = default_dtype
        self.grad_enabled = True
        self.inference = False
        self.anomaly = False
        self.names: dict[str, Tensor] = {}
        self.groups: dict[str, Group] = {}
        self.batched = 0  # how many tensors are inside a vmap
        self.handles: dict[int, tuple[ref[Tensor], Any]] = {}
        self.region: NodeObserver | None = None
        self.dual_levels: tuple[int, ...] = ()
        self.duals: dict[int, WeakValueDictionary[int, forward.Tangents]] = {}
        self._rules = KnownCalls()
        if type(self.backends["cpu"]) is not NumpyBackend:
            self.takes_short_ways = False
        self._seq = 0
        self.position = 0
        self.timeline: list[tuple[int, str, int, int, int]] | None = None
        self.tracer: FrameTracer | None = None
        self.watcher: GradientWatcher | None = None
        self.observer: ResultObserver | None = None
        self.undo: ChangeLog | None = None
        self.clock = Clock()

    @property
    def differentiates(self) -> bool:
        """Whether what is computed now is differentiated in turn: derivatives avoid kernels that have none then."""
        return self.grad_enabled or bool(self.dual_levels)

    # Ways in

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Run an op by name with Python-style arguments. Returns a tensor, a tuple of them, or None."""
        entry = row(name)
        return self.run(entry, entry.op.bind(args, kwargs))

    def from_numpy(self, array: Any, requires_grad: bool = False, device: str = "cpu") -> Tensor:
        """A leaf with the values of a NumPy array, copied, in row-major order.

        Within an op, what is brought in like this must follow from metas and attributes: a plan has it as a constant.
        """
        backend = self.backends[device]
        try:
            host = np.array(array, order="C")
            self.account.check(host.nbytes, "the uploaded tensor")
            data = backend.from_host(host)
        except MemoryError as error:
            raise self.out_of_memory("an upload", error) from None
        if self.tracer is not None:
            self.tracer.constant(host, data, backend)
        tensor = Tensor(self, data, meta(host.shape, dtype_of(host), device), Storage(data, self.account))
        tensor.requires_grad_flag = requires_grad
        tensor.inference = self.inference
        return tensor

    def to_numpy(self, tensor: Tensor) -> Array:
        """The tensor's values; may share its memory."""
        if self.tracer is not None:
            self.tracer.stop("values are looked at")
        try:
            return self.backends[tensor.meta.device].to_host(tensor.array)
        except MemoryError as error:
            raise self.out_of_memory("a read", error) from None

    def run(self, entry: Row, values: list[Any]) -> Any:
        """Run one op on bound values, in which tensors are engine tensors."""
        if self.tracer is not None and not self.tracer.took(values):
            return self.tracer.run(entry, values)
        if entry.op.underived and self.grad_enabled:
            refuse_underived(entry, values)
        if self.batched and holds_batched(entry, values):
            return run_batched(self, entry, values)
        op = entry.op
        rule_args, key = described(entry, values)
        inferred, plain, _ = self._rules.get(key) or self._known(entry, rule_args, key)
        if inferred.check is not None:
            inferred.check(*values)
            if self.tracer is not None:
                self.tracer.numbers_checked()
        if plain is not None and self.tracer is None and not self.dual_levels:
            result = plain.run(self, values, rule_args)
            if result is not None:
                return result
        if op.control:
            if self.undo is not None and op.name in WRITING:
                self.undo.expect_writes(values, WRITING[op.name] == "gradients")
            return CONTROLS[op.name](self, *values)
        if inferred.offsets is not None:
            return self._run_view(entry, values, rule_args, inferred)
        if op.mutates is not None:
            return self._run_inplace(entry, values, rule_args, inferred)
        outs = inferred.outs
        if inferred.scratch or len(outs) != 1 or not self.account.fits(outs[0].nbytes):
            self.account.check_op(op.name, outs, inferred.scratch)
        if entry.composite is not None:
            return entry.composite(self, *values)
        drawn = self.generator.offset if op.random else 0
        tensors = tensors_among(entry, values)
        results: list[Tensor] | None = None
        try:
            results = self._wrap(self._compute(entry, values, tensors, inferred), inferred, tensors)
        except MemoryError:
            pass  # not here: the error's traceback holds what the first try has made
        if results is None:
            results = self._made_again(entry, values, tensors, inferred, drawn)
        if entry.has_derivative:
            self._record(entry, values, rule_args, inferred, results)
        if self.dual_levels:
            forward.propagate(self, entry, values, rule_args, inferred, results)
        if self.inference:
            for result in results:
                result.inference = True
        return results[0] if op.results == 1 else tuple(results[: op.results])  # others were for backward

    # Infer

    def _infer(self, entry: Row, rule_args: list[Any]) -> Inference:
        key = (entry, *rule_args, *[type(rule_args[i]) for i in entry.number_at])
        return (self._rules.get(key) or self._known(entry, rule_args, key)).inferred

    def _known(self, entry: Row, rule_args: list[Any], key: tuple[Any, ...]) -> KnownCall:
        """What the rule says, and the short way of the call if it has one, for a key that is new here."""
        common = (self.default_dtype, self.takes_short_ways, *key)
        found = SHARED.get(common)
        known = found is not None
        if found is None:
            if self.default_dtype is not DEFAULT_FLOAT.get():
                DEFAULT_FLOAT.set(self.default_dtype)
            inferred = entry.op.infer(rule_args)
            plain: ShortWay | None = None
            if self.takes_short_ways:
                short = plain_call if inferred.offsets is None else plain_view
                plain = short(self, entry, rule_args, inferred)
            found = KnownCall(inferred, plain, None)
        # What is over the limit does not enter the memo: so it is checked here once, and nowhere again.
        steps = work.check(entry.op, rule_args, found.inferred, self.account, found.steps)
        if not known and not entry.op.control:
            SHARED.keep(common, found._replace(steps=steps), rule_args)
        self._rules.keep(key, found, rule_args)
        return found

    def forget_rules(self) -> None:
        """Empty the memo, after the default dtype changed."""
        self._rules.clear()

    def is_plain(self, entry: Row, values: list[Any]) -> bool:
        """Whether a call of an op has the short way."""
        rule_args, key = described(entry, values)
        return (self._rules.get(key) or self._known(entry, rule_args, key)).plain is not None

    # Compute

    def _made_again(
        self, entry: Row, values: list[Any], tensors: list[Tensor], inferred: Inference, drawn: int
    ) -> list[Tensor]:
        """The results of the kernel, after memory ran out: room is made and the op is tried once more, with the random
        numbers from ``drawn`` on.

        Raises:
            OutOfMemory: when there is still too little.
        """
        self.make_room()
        if self.tracer is not None:
            self.tracer.stop("memory ran out")
        if entry.op.random:
            self.generator.set_state((self.generator.seed, drawn))
        try:
            return self._wrap(self._compute(entry, values, tensors, inferred), inferred, tensors)
        except MemoryError as error:
            raise self.out_of_memory(entry.op.name, error) from None

    def _write(self, entry: Row, values: list[Any], tensors: list[Tensor], inferred: Inference) -> None:
        """Compute, and write the result over the first operand."""
        target: Tensor = values[0]
        result = self._compute(entry, values, tensors, inferred)
        if type(result) is tuple:
            result = result[0]
        before = target.array
        if repeats(target.meta):
            self._write_changes(before, result)
            return
        before[...] = result if getattr(result, "dtype", None) == before.dtype else _cast(result, target)
        if self.tracer is not None:
            self.tracer.written(before, result)

    def _write_changes(self, before: Array, result: Array) -> None:
        """Write a result over an expanded array. Of the elements at one place in memory, one that changed counts."""
        if self.tracer is not None:
            self.tracer.stop("an expanded tensor is written to")
        result = result.astype(before.dtype)
        changed = (result != before) & ((result == result) | (before == before))
        before[changed] = result[changed]

    def _written(self, entry: Row, values: list[Any], tensors: list[Tensor], inferred: Inference) -> None:
        """:meth:`_write`, or the kernel that writes by itself; tried again only when nothing was written yet."""
        drawn = self.generator.get_state() if entry.op.random else None
        try:
            if entry.writes:
                self._compute(entry, values, tensors, inferred)
            else:
                self._write(entry, values, tensors, inferred)
            return
        except MemoryError as error:
            if entry.writes:
                raise self.out_of_memory(entry.op.name, error) from None
        self.make_room()
        if self.tracer is not None:
            self.tracer.stop("memory ran out")
        if drawn is not None:
            self.generator.set_state(drawn)
        try:
            self._write(entry, values, tensors, inferred)
        except MemoryError as error:
            raise self.out_of_memory(entry.op.name, error) from None

    def _compute(self, entry: Row, values: list[Any], tensors: list[Tensor], inferred: Inference) -> Any:
        """Cast operands, call the kernel, return its raw result."""
        if entry.kernel is None:
            raise InternalError(f"op {entry.op.name} has no kernel")
        outs = inferred.outs
        device = outs[0].device if outs else tensors[0].device
        backend = self.backends[device]
        kernel = entry.kernel
        fused = None if backend.fused is None else backend.fused.get(entry.op.name)
        compute = inferred.compute
        target: Native | None = None
        via: Native | None = None
        if compute is not None:
            target = via = native(compute)
            if not (entry.half if fused is None else fused.half):
                target = widened_native(compute)
        arguments: list[Any] = [backend.xp]
        if entry.op.random:
            arguments.append(self.generator)
        if entry.announced:
            arguments.append(outs[0])
        arguments.extend(values)
        shift = len(arguments) - len(values)
        for i in entry.tensor_at:
            value = values[i]
            if type(value) is Tensor:
                if entry.across and value.device != backend.device:
                    arguments[i + shift] = backend.from_host(self.to_numpy(value))
                else:
                    arguments[i + shift] = operand(value, target, via, backend)
            elif type(value) in (list, tuple):
                arguments[i + shift] = [None if v is None else operand(v, target, via, backend) for v in value]
            elif compute is not None and type(value) is int:
                arguments[i + shift] = wrapped_number(value, compute)
        if entry.measure is not None:
            nbytes, steps = entry.measure(*arguments)
            self.account.check(nbytes, f"what {entry.op.name} makes of these values")
            work.check_steps(entry.op.name, steps, self.account.limits.max_op_work)
        given = arguments
        try:
            if fused is not None:
                found = fused.run(*arguments, coarse=self.coarse_products) if fused.products else fused.run(*arguments)
                if found is not NotImplemented:
                    if self.tracer is not None:
                        self.tracer.called(entry, None, values, arguments, (target, via), inferred, found, True)
                    return found
                if fused.half and not entry.half and compute is not None and compute.is_low_precision:
                    arguments = [widened(a, via) for a in arguments]
            compiled = entry.compiled if self.compiled and backend.xp is np else None
            found = NotImplemented if compiled is None else compiled(*arguments)
            applies = found is not NotImplemented
            if not applies:
                found = kernel(*arguments)
            if self.tracer is not None:
                self.tracer.called(entry, compiled, values, given, (target, via), inferred, found, False, applies)
            return found
        except OverflowError as error:
            raise ArgumentError(f"{entry.op.name}: a number does not fit into the dtype ({error})") from None
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{entry.op.name}: {_WHY_UNDEFINED.get(str(error), str(error))}") from None
        except ValueError as error:
            if any(said in str(error) for said in _TOO_LARGE):
                raise ShapeError(f"{entry.op.name}: cannot create its array ({error})") from None
            raise
        except ZeroDivisionError:
            raise KernelError(f"{entry.op.name}: integer division by zero") from None

    def make_room(self) -> None:
        """Let go of memory that nothing uses: in cycles of dropped objects, and in the devices' pools."""
        gc.collect()
        for backend in self.backends.opened():
            backend.trim()

    def out_of_memory(self, name: str, error: MemoryError) -> OutOfMemory:
        """The error to raise in place of Python's, after room was made."""
        self.make_room()
        return OutOfMemory(f"{name}: no memory left on this device ({error or 'allocation failed'})")

    def _wrap(self, arrays: Any, inferred: Inference, operands: list[Tensor]) -> list[Tensor]:
        outs = inferred.outs
        if type(arrays) is not tuple:
            arrays = (arrays,)
        if len(arrays) != len(outs):
            raise InternalError(f"a kernel returned {len(arrays)} results instead of {len(outs)}")
        results = []
        for i, (array, out) in enumerate(zip(arrays, outs, strict=True)):
            backend = self.backends[out.device]
            if not out.known:
                if self.tracer is not None:
                    self.tracer.stop("a shape depends on values")
                out = meta(tuple(array.shape), out.dtype, out.device)
                self.account.check(out.nbytes, f"a result of shape {list(out.shape)}")
            data = lay_out(array, out, backend, [t.array for t in operands])
            if self.tracer is not None:
                self.tracer.laid_out(i, array, data, out, operands)
            results.append(Tensor(self, data, out, Storage(data, self.account)))
        return results

    # Views

    def _run_view(self, entry: Row, values: list[Any], rule_args: list[Any], inferred: Inference) -> Any:
        source: Tensor = values[0]
        if entry.op.name == "as_strided" and values[4]:  # counted from the beginning of the memory
            if self.tracer is not None:
                self.tracer.placed(source)
            return self.run(entry, [*values[:3], values[3] - source.offset, False])
        tracked = self.grad_enabled and entry.has_derivative and source.requires_grad
        node: Node | None = None
        if tracked:
            node = make_node(self, entry, rule_args, values, inferred, inferred.outs)
        results = []
        for i, (out, delta) in enumerate(zip(inferred.outs, inferred.offsets or (), strict=True)):
            result = self.view(entry, source, out, delta)
            if node is not None and (out.dtype.is_floating_point or out.dtype.is_complex):
                result.grad_fn, result.slot = node, i
            results.append(result)
        if self.tracer is not None:
            self.tracer.viewed(entry, source, rule_args, inferred, results)
        if node is not None:
            keep_results(node, results)
        if self.dual_levels:
            forward.propagate(self, entry, values, rule_args, inferred, results)
        return results[0] if entry.op.results == 1 else tuple(results)

    def view(self, entry: Row, source: Tensor, out: Meta, delta: int) -> Tensor:
        """One view that an op makes of a tensor, without its node.

        Args:
            delta: where it begins, in elements of the result from the beginning of the source.
        """
        op, backend = entry.op, self.backends[source.device]
        offset = source.offset
        if out.dtype.itemsize != source.dtype.itemsize:  # the distance counts elements of the result
            offset, rest = divmod(offset * source.dtype.itemsize, out.dtype.itemsize)
            if rest:
                raise ArgumentError(f"{op.name}: the tensor is not aligned to {out.dtype.name}; clone it first")
        offset += delta
        if op.name == "as_strided":
            check_inside(source.storage, out, offset)
        try:
            array = backend.view(source.storage.memory(backend), out.shape, out.stride, offset, out.dtype)
        except (ValueError, OverflowError) as error:  # sizes beyond what the array library counts to
            raise ShapeError(f"{op.name}: cannot create an array of shape {list(out.shape)} ({error})") from None
        storage = source.storage.unversioned() if op.untracked else source.storage
        result = Tensor(self, array, out, storage, offset)
        result.inference = source.inference
        if op.grad_fn is not None and not op.untracked and not source.inference:
            result.base = source.base if source.base is not None else source
            result.seen_version = source.storage.version
            result.creation = self.creation_of(entry, source)
            result.path = inplace.path_of(op, source, result)
        return result

    def on_arrays(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function on arrays, outside of any kernel. It returns a new array, or writes into its first argument
        and returns nothing; it must not depend on anything but its arguments."""
        result = function(*args)
        if self.tracer is not None:
            self.tracer.computed(name, function, args, result)
        return result

    def creation_of(self, entry: Row, source: Tensor) -> int:
        """What stands as ``Tensor.creation`` of a view that an op makes of a tensor now."""
        if self.inference:
            return MADE_IN_INFERENCE
        if source.base is not None and source.creation != PLAIN:
            return source.creation
        if not self.grad_enabled:
            return MADE_IN_NO_GRAD
        return ONE_OF_SEVERAL if entry.op.results is None else PLAIN

    # In place

    def _run_inplace(self, entry: Row, values: list[Any], rule_args: list[Any], inferred: Inference) -> Tensor:
        target: Tensor = values[0]
        tensors = tensors_among(entry, values)
        requires = self.grad_enabled and entry.has_derivative and any_requires_grad(entry, values)
        if entry.op.casts and not target.meta.dtype.carries_gradient:
            requires = False
        inplace.check_writable(entry.op, values, len(tensors), self, requires)
        readable = inplace.separate(self, entry, values) if len(tensors) > 1 else values
        node = None
        if requires:
            node = make_node(self, entry, rule_args, values, inferred, (target.meta,), overwritten=target)
        if self.undo is not None:
            self.undo.overwrite(target)
        tangents = forward.before_write(self, entry, values) if self.dual_levels else None
        if inferred.scratch:
            self.account.check(inferred.scratch, f"the working memory of {entry.op.name}")
        self._written(entry, readable, tensors, inferred)
        target.storage.version += 1
        if node is not None:
            keep_results(node, [target])
            inplace.rebase(target, node, self)
        if tangents:
            forward.after_write(self, target, tangents)
        return target

    # Record

    def _record(
        self, entry: Row, values: list[Any], rule_args: list[Any], inferred: Inference, results: list[Tensor]
    ) -> None:
        if not self.grad_enabled or not any_requires_grad(entry, values):
            return
        if len(results) == 1:
            result = results[0]
            if not result.meta.dtype.carries_gradient:
                return
            node = make_node(self, entry, rule_args, values, inferred, (result.meta,))
            result._grad_fn = node
        else:
            constant = entry.op.constant
            carrying = [i for i, r in enumerate(results) if r.meta.dtype.carries_gradient and i not in constant]
            if not carrying:
                return
            node = make_node(self, entry, rule_args, values, inferred, tuple([r.meta for r in results]))
            for i in carrying:
                results[i]._grad_fn, results[i].slot = node, i
        keep_results(node, results)

    def new_node_seq(self) -> int:
        self._seq += 1
        return self._seq


def _cast(result: Any, target: Tensor) -> Any:
    return result.astype(native(target.dtype)) if hasattr(result, "astype") else result


def check_inside(storage: Storage, out: Meta, start: int) -> None:
    """Check that a view stays inside the storage: as_strided is the one whose rule cannot know.

    Raises:
        ShapeError: naming both extents.
    """
    if not out.numel:
        return
    end = start + sum((n - 1) * s for n, s in zip(out.shape, out.stride, strict=True)) + 1
    held = storage.array.nbytes // out.dtype.itemsize  # the memory of an alias is accounted for once, at the other
    if start < 0 or end > held:
        raise ShapeError(
            f"as_strided: size {list(out.shape)} with strides {list(out.stride)} covers elements {start} to {end} of "
            f"the storage, which has {held}"
        )
