"""``torch.autograd.Function``: operations whose forward and derivative are the program's own Python, over proxies."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentTypeError, CheckpointError, GraphError, ShapeError
from gradwire_protocol.history import MADE_IN_FUNCTION
from gradwire_protocol.meta import meta
from gradwire_protocol.ops.control import GRAD_MODE, INFERENCE_MODE
from gradwire_protocol.shapes import broadcast
from gradwire_protocol.table import TABLE

from ..context.modes import MODES, no_grad
from ..graph.forward_levels import OPEN
from ..graph.graph_mirror import Edge, Node, edge_of
from ..graph.inplace import keep_watching
from ..graph.node_hooks import NodeHooks
from ..graph.node_signature import NodeSignature
from ..tensor.saved_tensors import SavedTensor
from ..tensor.tensor import GRAD_ONLY, Tensor
from .function_tangents import innermost_level, with_tangents
from .mapped_function import apply_rule, rule_of
from .raw_saved_tensors import FunctionSavedTensor

_NO_TENSOR = meta((0,), dtypes.float32)


class FunctionCtx(Node):
    """What a Function's methods get as ``ctx``; it is the ``grad_fn`` of the results, too.

    Attributes set on it stay until the graph is dropped.
    """

    function: Any = None

    def __init__(self, name: str) -> None:
        super().__init__(NodeSignature(name, ()), ())
        self.part = NodeHooks()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads: bool = True
        self._materialize_non_diff_grads = True
        self.non_differentiable: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.to_save: tuple[Any, ...] | None = None
        self.saved_for_forward: tuple[Any, ...] | None = None
        self.jvp_tensors: tuple[Any, ...] | None = None
        self._saved: list[SavedTensor | None] | None = None
        self._released = False
        self._freed = False  # for good: not to be computed again
        self._histories: list[Edge | None] = []  # inside a checkpointed function
        self._tensor_at: tuple[bool, ...] = ()
        self._kinds: tuple[bool, ...] = ()
        self._attached: tuple[int, ...] = ()
        self._changed: dict[int, int] = {}
        self._undifferentiated: tuple[int, ...] = ()

    def __repr__(self) -> str:
        # As PyTorch prints it, with the place of its class there.
        return f"<torch.autograd.function.{self.label} object at {id(self):#x}>"

    # What forward and setup_context call

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for ``backward``, which finds them in :attr:`saved_tensors`. ``None`` may be among them."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ArgumentTypeError(
                    f"save_for_backward keeps tensors, not {type(tensor).__name__}: set anything else as an attribute"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for ``jvp``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ArgumentTypeError(f"save_for_forward keeps tensors, not {type(tensor).__name__}")
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs ``forward`` changes in place. They have to be among its results."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results no gradient flows through. ``backward`` gets zeros for them."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros for results without a gradient (the default), or ``None``."""
        self.materialize_grads = value

    def no_tangent(self, value: Any) -> Any:
        """The tangent of an argument that has none: zeros for a tensor, where gradients are materialized."""
        if not isinstance(value, Tensor) or not self.materialize_grads or not value._form.dtype.carries_gradient:
            return None
        with no_grad():
            return value.detach().new_zeros(tuple(value.shape))

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved: in ``jvp`` for it, elsewhere for ``backward``.

        Raises:
            GraphError: when backward has freed it, or one of the tensors was changed in place since.
        """
        if self.jvp_tensors is not None:
            return self.jvp_tensors
        if self._released:
            raise GraphError(
                f"what {self.label} saved was freed by an earlier backward; pass retain_graph=True there to go through "
                "it again"
            )
        if self._saved is None:
            return self.to_save or ()
        return tuple([None if s is None else s.unpack() for s in self._saved])

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """What was saved for ``backward``, before it is unpacked: hooks can be registered on each.

        Raises:
            GraphError: when backward has freed it.
        """
        if self._released:
            raise GraphError(f"what {self.label} saved was freed by an earlier backward; pass retain_graph=True there")
        return tuple([FunctionSavedTensor(self, i) for i in range(len(self._saved or ()))])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The former name of :attr:`saved_tensors`."""
        warnings.warn("saved_variables is deprecated: use saved_tensors", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    # What a checkpointed region does

    def let_go(self) -> None:
        """Forget what was saved, until it is computed again."""
        if self._saved:
            self._saved, self._released = None, True

    def give_up(self) -> None:
        """Forget what was saved until it is computed again, but not where gradients for it go."""
        self._histories = [None if s is None else s.history for s in self._saved or ()]
        for saved in self._saved or ():
            if saved is not None:
                saved.place(self)
        self.let_go()

    def take_over(self, again: FunctionCtx) -> None:
        """Use what another run of the same call has saved, with the history it had here.

        Raises:
            CheckpointError: when that run saved another number of tensors.
        """
        if len(again._saved or ()) != len(self._histories):
            raise CheckpointError(
                f"{self.label} saved {len(self._histories)} tensors in the checkpointed function, and "
                f"{len(again._saved or ())} when backward ran it again: it has to do the same each time"
            )
        if again._saved is not None and not self._freed:
            pairs = zip(again._saved, self._histories, strict=True)
            self._saved = [None if s is None else s.moved(self, edge) for s, edge in pairs]
            self._released = again._released

    # What the driver calls

    def free(self) -> None:
        self.let_go()
        self._freed = True
        self.to_save = None

    def differentiate(self, gradients: list[Tensor | None], arrived: list[bool]) -> list[Any]:
        """The gradients of the tensor inputs, from those of the results.

        Raises:
            GraphError: when ``backward`` returns too many or too few, or something that does not fit.
            NotImplementedError: when the Function has no ``backward``.
        """
        given = [
            gradient if is_tensor and (defined or self._materializes(i)) else None
            for i, (gradient, defined, is_tensor) in enumerate(zip(gradients, arrived, self._kinds, strict=True))
        ]
        result = _derivative_of(self.function)(self, *given)
        returned = result if isinstance(result, tuple) else (result,)
        expected = len(self._tensor_at)
        if len(returned) > expected and all(g is None for g in returned[expected:]):
            returned = returned[:expected]
        if len(returned) != expected:
            raise GraphError(
                f"{self.label} returned {len(returned)} gradients; its forward took {expected} arguments, and each "
                "needs one (None where there is none)"
            )
        found = []
        edges = iter(self.edges)
        for i, (gradient, is_tensor) in enumerate(zip(returned, self._tensor_at, strict=True)):
            if not is_tensor:
                if gradient is not None:
                    raise GraphError(f"{self.label} returned a gradient for argument {i}, which is no tensor")
                continue
            found.append(self._checked(gradient, i, next(edges)))
        return found

    def _materializes(self, output: int) -> bool:
        """Whether zeros stand for the gradient of an output that has none."""
        return self.materialize_grads and (self._materialize_non_diff_grads or output in self._attached)

    def _checked(self, gradient: Tensor | None, i: int, edge: Edge | None) -> Any:
        if gradient is None:
            return None
        if not isinstance(gradient, Tensor):
            raise GraphError(f"{self.label} returned {type(gradient).__name__} as gradient {i}: a tensor or None")
        if edge is None:
            return gradient
        described = edge[0].outs[edge[1]]
        wanted = described.shape
        if not gradient.dtype.is_floating_point and gradient.dtype.is_complex != described.dtype.is_complex:
            raise GraphError(
                f"{self.label} returned a {gradient.dtype.name} gradient for argument {i}, which is "
                f"{described.dtype.name}: return its real part, or a float"
            )
        try:
            fits = broadcast(gradient._known_meta().shape, wanted) == gradient._form.shape
        except ShapeError:
            fits = False
        if not fits:
            raise GraphError(
                f"{self.label} returned a gradient of shape {list(gradient.shape)} for argument {i}, which has shape "
                f"{list(wanted)}"
            )
        return gradient


def _derivative_of(function: Any) -> Callable[..., Any]:
    own, vjp = function.backward, function.vjp
    if own is not Function.backward and vjp is not Function.vjp:
        raise GraphError(f"{function.__name__} defines both backward and vjp: they are the same, define one")
    found: Callable[..., Any] = vjp if own is Function.backward else own
    return found


class _FunctionMeta(type):
    """Gives each Function the class of its contexts, named as its nodes are."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._context = type(
            name + "Backward", (FunctionCtx,), {"function": cls, "__module__": "torch.autograd.function"}
        )

    @property
    def _backward_cls(cls) -> type:
        """The class of its nodes, as PyTorch calls it."""
        return cls._context


class Function(metaclass=_FunctionMeta):
    """Base of custom operations: define static methods ``forward`` and ``backward``, call the class's ``apply``.

    ``forward(ctx, *args)`` computes with proxies and records no history; or ``forward(*args)`` with
    ``setup_context(ctx, inputs, output)`` beside it. ``backward(ctx, *grad_outputs)`` returns one gradient per argument
    of forward. Both run in the client, backward at the line that calls it; the server runs what they record, and never
    their code.
    """

    _context: type[FunctionCtx]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self).__name__}: an instance of a Function does nothing; use the class's apply()",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a Function is applied by its class.

        Raises:
            GraphError: always.
        """
        raise GraphError(f"{type(self).__name__}: instances of a Function are not called, use the class's apply()")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results. To be defined by the subclass."""
        raise NotImplementedError("a Function needs a static method forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, where ``forward`` takes no ``ctx``."""
        raise NotImplementedError("a Function whose forward takes no ctx needs a static method setup_context")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Compute the gradients. To be defined by the subclass, as ``backward(ctx, *grad_outputs)``."""
        # Of these arguments a type checker lets a subclass define any.
        function = getattr(args[0] if args else None, "function", None)
        raise NotImplementedError(
            f"{getattr(function, '__name__', 'this Function')} has no backward: define it to differentiate through the "
            "function"
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name under which a subclass may define ``backward``."""
        raise NotImplementedError("a Function needs a static method backward")

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """Compute the tangents of the results. To be defined by the subclass for forward-mode differentiation, as
        ``jvp(ctx, *grad_inputs)``."""
        raise NotImplementedError("a Function needs a static method jvp for forward-mode differentiation")

    generate_vmap_rule: bool = False
    """Whether ``vmap`` may map what forward and backward do, which then must consist of mappable operations."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Compute the function for all samples of a ``vmap``: ``in_dims`` says which dimension of each argument is
        mapped. Returns the results and their ``out_dims``. To be defined by the subclass."""
        raise NotImplementedError("a Function needs a static method vmap, or generate_vmap_rule = True")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and record one node for it.

        Raises:
            GraphError: when the results break what ``mark_dirty`` or in-place changes ask for.
        """
        separate = cls.setup_context is not Function.setup_context
        if separate or kwargs:
            args = _bound(cls, args, kwargs, separate)
        if MODES.maps and not _tangents_alone(args) and (rule := rule_of(cls, Function)) is not None:
            return apply_rule(cls, rule, args)
        return cls._called(args, separate)[1]

    @classmethod
    def _called(cls, args: tuple[Any, ...], separate: bool) -> tuple[Any, Any]:
        """The context of a call, and its result."""
        if OPEN and (level := innermost_level(args)) is not None:
            if cls.jvp is Function.jvp:
                raise NotImplementedError(f"{cls.__name__} has no jvp: define it to use the function in forward mode")
            return with_tangents(cls, args, separate, level)
        context: Any = cls._context(cls.__name__ + "Backward")
        context._tensor_at = tuple([isinstance(a, Tensor) for a in args])
        context.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        inputs = [a for a in args if isinstance(a, Tensor)]
        with no_grad():
            if separate:
                output = cls.forward(*args)
                cls.setup_context(context, args, output)
            else:
                output = cls.forward(context, *args)
        outputs = list(output) if isinstance(output, tuple) else [output]
        recording = MODES.flags & GRAD_MODE != 0 and any(context.needs_input_grad)
        results = _wrap(cls, context, inputs, outputs, recording)
        return context, tuple(results) if isinstance(output, tuple) else results[0]


def _tangents_alone(args: tuple[Any, ...]) -> bool:
    """Whether all that a map has a part in are tangents: then ``jvp`` is mapped, and forward runs once."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    return bool(OPEN) and not any(t._levels for t in tensors) and innermost_level(args) is not None


def _bound(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], separate: bool) -> tuple[Any, ...]:
    """All arguments of forward by position, defaults included."""
    signature = inspect.signature(cls.forward)
    bound = signature.bind(*args, **kwargs) if separate else signature.bind(None, *args, **kwargs)
    if separate:
        bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentTypeError(f"{cls.__name__}.apply passes arguments by position: {sorted(bound.kwargs)} cannot be")
    return bound.args if separate else bound.args[1:]


def _wrap(cls: type[Function], context: Any, inputs: list[Any], outputs: list[Any], recording: bool) -> list[Any]:
    """The results with their history, and what the context saves."""
    dirty, plain = context.dirty_tensors, context.non_differentiable
    for tensor in dirty:
        if not _among(tensor, outputs):
            raise GraphError(f"{cls.__name__} marks an input dirty that is not among its results")
        if not _among(tensor, inputs):
            warnings.warn(f"{cls.__name__} marks a result dirty that is no input", UserWarning, stacklevel=4)
    attached: list[int] = []
    changed: list[int] = []
    written: list[int] = []
    results: list[Any] = []
    given = list(outputs)
    for i, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            results.append(output)
            continue
        is_input, is_changed = _among(output, inputs), _among(output, dirty)
        flows = recording and output._form.dtype.carries_gradient and not _among(output, plain)
        if is_changed and not (flows and output._base_tensor is not None):
            output._bump()
        if is_changed and flows:
            _check_changed(cls, output, len(outputs))
            if output._base_tensor is None:
                changed.append(i)
            else:
                # The function's own result is the memory without a past; the view is then written with it.
                written.append(i)
                with no_grad():
                    given[i] = output.detach()
        elif is_changed:
            given[i] = output.detach() if output.requires_grad else output
        elif is_input:
            with no_grad():
                given[i] = output.view_as(output)
        if flows:
            attached.append(i)
        results.append(given[i])
    if recording:
        context.edges = tuple([edge_of(t) if t._form.dtype.carries_gradient else None for t in inputs])
        outs = tuple([t._form if isinstance(t, Tensor) else _NO_TENSOR for t in results])
        context.signature = NodeSignature(context.label, outs)
        context._kinds = tuple([isinstance(t, Tensor) for t in results])
        context._attached = tuple(attached)
        tensors = [t if isinstance(t, Tensor) else None for t in results]
        session = inputs[0]._session
        values = [context.label, inputs, tensors, tuple(attached), tuple(changed)]
        number = session.record(TABLE["attach_function"], values, 1)
        context.part.custom = True
        context.part.place = Tensor._make(session, number, meta((0,), inputs[0].dtype, inputs[0]._form.device))
        if attached and MODES.flags & INFERENCE_MODE:
            MODES.expect_inference_leaves()
        for i in (*changed, *written):
            outputs[i].grad = None
        for i in attached:
            before = results[i]._node, results[i]._slot
            results[i]._node, results[i]._slot, results[i]._requires = context, i, False
            keep_watching(results[i], *before)
            if results[i]._base_tensor is not None:
                results[i]._seen, results[i]._creation = results[i]._version, MADE_IN_FUNCTION
        for i in written:
            results[i] = outputs[i].copy_(results[i])
        if context.to_save is not None:
            context._saved = [_save(t, context, outputs, results) for t in context.to_save]
        if MODES.region is not None:
            MODES.region.note_function(context)
    context.to_save = None if recording else context.to_save
    if dirty:
        context._changed = {
            i: next(k for k, t in enumerate(inputs) if t is output)
            for i, output in enumerate(outputs)
            if _among(output, dirty) and _among(output, inputs)
        }
    context._undifferentiated = tuple([i for i, output in enumerate(outputs) if _among(output, plain)])
    # The results hold the context; it must not hold them.
    context.dirty_tensors = context.non_differentiable = ()
    return results


def _save(tensor: Tensor, context: Any, outputs: list[Any], results: list[Any]) -> SavedTensor | None:
    if tensor is None:
        return None
    at = next((i for i, o in enumerate(outputs) if o is tensor), None)
    if at is None:
        return SavedTensor(tensor, context, False)
    result = results[at]
    return SavedTensor(result, context, result._node is context)


def _among(tensor: Tensor, tensors: Sequence[Tensor]) -> bool:
    return any(t is tensor for t in tensors)


def _check_changed(cls: type[Function], tensor: Tensor, count: int) -> None:
    if tensor.is_leaf and tensor._requires:
        raise GraphError(f"{cls.__name__} changes a leaf that requires grad in place: clone it first")
    if tensor._base_tensor is not None and count > 1:
        raise GraphError(f"{cls.__name__} changes a view in place and has {count} results: only one is possible")


class InplaceFunction(Function):
    """A Function with a flag, as older programs derive from it."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace: bool = inplace


class _Twice(Function):
    """What the results of a derivative that cannot be differentiated again go through."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple([t.detach() for t in tensors])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise GraphError("this gradient came from a function marked once_differentiable: it has no derivative")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that is not itself to be differentiated: doing so raises, rather than being wrong."""

    @functools.wraps(fn)
    def inside(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            result = fn(ctx, *gradients)
        recorded = MODES.flags & GRAD_ONLY == 1
        if not recorded or not any(isinstance(g, Tensor) and g.requires_grad for g in gradients):
            return result
        items = list(result) if isinstance(result, tuple) else [result]
        places = [i for i, t in enumerate(items) if isinstance(t, Tensor)]
        tensors = [items[i].detach().requires_grad_() for i in places]
        for i, tensor in zip(places, _Twice.apply(*tensors) if tensors else (), strict=True):
            items[i] = tensor
        return tuple(items) if isinstance(result, tuple) else items[0]

    return inside


__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
