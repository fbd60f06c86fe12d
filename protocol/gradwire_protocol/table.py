"""The op table: one declaration per op, from which everything else about it is derived.

A function declares an op. Its signature is the schema of a record on the wire, its docstring the documentation, its
body the rule that infers the results' metas from the operands' metas. ``gradients`` declares what its derivative saves
and returns::

    @op(grad_fn="TanhBackward0")
    @gradients("tanh_backward(grad, result)")
    def tanh(self: Tensor) -> Tensor:
        \"\"\"Hyperbolic tangent, elementwise.\"\"\"
        return elementwise(self, promotion=Promote.INT_TO_FLOAT)

A rule gets a :class:`~gradwire_protocol.meta.Meta` for each tensor, a ``ScalarKind`` for each Python number that is
data, and the value of any other argument. Client and engine both call it, so it depends only on its arguments (and the
default float dtype).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple, get_type_hints

from . import dtypes
from .accepts import check_exists
from .autocast import AS_GIVEN, Autocast
from .costs import Cost
from .dtypes import DType
from .errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, ShapeError, UnknownOp, Unsupported
from .meta import UNKNOWN, Inference, Meta
from .out import Out
from .params import (
    COMMON,
    ELEMENT,
    FLOAT,
    REAL,
    Element,
    Factor,
    Float,
    FreePosition,
    Ints,
    Kind,
    Number,
    Param,
    Payload,
    Position,
    Real,
    Scalar,
    Strings,
    Tensor,
    attribute_matches,
)  # fmt: skip
from .promotion import ScalarKind, can_cast

__all__ = [
    "DEFAULT_DTYPE", "FLOAT", "TABLE", "Derivative", "Element", "Expanded", "Factor", "Float", "FreePosition",
    "Ints", "Kind", "Number", "Op", "Out", "Param", "Payload", "Position", "Real", "Scalar", "Strings", "Tensor",
    "attribute_matches", "check_range", "check_write", "gradients", "lookup", "op",
]  # fmt: skip


class Expanded(Enum):
    """What an in-place op does with an expanded tensor, whose elements share memory locations."""

    REFUSED = "refuses it"
    WARNED = "writes to it, and warns"
    NUMBERS = "writes to it, unless there is another tensor among its operands"
    ITSELF = "refuses it, unless its other operand is the same view, so that nothing changes"


@dataclass(kw_only=True, eq=False, repr=False)
class Facts:
    """What is declared about an op.

    Attributes:
        results: how many tensors it returns; ``None`` if that depends on the arguments.
        differentiable: the names of the tensor parameters that gradients flow to.
        underived: the names of tensor parameters that the result depends on without a derivative. If one requires grad
            while history is recorded, the op is refused.
        constant: the indices of results that no gradient flows back from, although their dtype could carry one.
        mutates: for an in-place form, the position of the written tensor (always 0).
        apart: for an in-place form, whether operands must share no memory with the written tensor; otherwise they may
            be the same view.
        copied: for an in-place form, the operands that may share any memory with it, because PyTorch does not check.
        view: its results are views of its first tensor, or may be.
        untracked: for an op that returns views, whether autograd treats them as independent tensors, with their own
            versions and no base.
        expanded: for an in-place form, whether it may write to an expanded tensor.
        keyword_only: the names of the keyword-only parameters, as in PyTorch; the last ones.
        casts: it casts values of any dtype to a given one: complex numbers may lose their imaginary part, and integer
            results have no history.
        control: it acts on the session (graph, names, random state) instead of computing a value.
        collective: a control op that exchanges data with other sessions, the ranks of a group that is open.
        after_backward: it uses gradients at once and goes into the frame of the backward before it. A step always does.
        duplicates: its result is a copy, recorded even of a tensor that was made in inference mode.
        random: it draws from the session's generator.
        dynamic: the shape of its result depends on data.
        internal: a primitive of derivatives, called only by the engine. Its rule trusts its arguments, and a frame that
            names it is refused.
        underivable: why backward cannot pass it, although its result requires grad. If that depends on the arguments,
            the rule decides (:meth:`~gradwire_protocol.meta.Inference.without_derivative`).
        elementwise: element i of its results depends on element i of its operands only, once these are broadcast; a
            random one draws numbers for each element alone.
        along: it works along the dimension or dimensions of its parameter ``dim``, independently for each index of the
            others; all its tensors have the same number of dimensions. Without ``dim`` it works along all dimensions if
            ``dim`` may name several, else along the flattened tensor.
        batched: each of its tensors may have an extra leading batch dimension of the same extent; it treats each member
            independently.
        total: no values of floating point operands make it fail. Without, it is true for an op that is
            ``elementwise``, ``along``, ``linear`` or ``multilinear`` and not ``random``.
        cost: the steps of work of a call (:mod:`.costs`); ``None`` for one per element.
        linear: it is linear in all its differentiable operands together.
        multilinear: it is linear in each of its differentiable operands while the others are held fixed.
        wrapped: the names of parameters whose numbers PyTorch makes tensors of: its node has an edge for them, and what
            it keeps of them it keeps as tensors, so that a graph with one cannot be gone through twice.
        exposed: where clients offer it: "function", "method", "nn.functional", the namespaces "linalg", "fft" and
            "special" (without its name's prefix), or nowhere.
        out: how its function treats ``out=``, where that needs to be told (:mod:`.out`).
        autocast: what autocast casts its operands to (:mod:`.autocast`); an in-place form takes them as they are.
        variadic: the parameter that also accepts its ints unpacked (``x.permute(0, 2, 1)``).
    """

    grad_fn: str | None = None
    differentiable: Sequence[str] | None = None
    underived: Sequence[str] = ()
    results: int | None = 1
    constant: Sequence[int] = ()
    inplace: bool | str = False
    inplace_function: bool = False
    control: bool = False
    collective: bool = False
    after_backward: bool = False
    duplicates: bool = False
    random: bool = False
    dynamic: bool = False
    internal: bool = False
    underivable: str | None = None
    exposed: Sequence[str] = ("function", "method")
    out: Out = Out.PLAIN
    autocast: Autocast = AS_GIVEN
    variadic: str | None = None
    mutates: int | None = None
    apart: bool = False
    copied: Sequence[str] = ()
    expanded: Expanded = Expanded.REFUSED
    view: bool = False
    untracked: bool = False
    casts: bool = False
    elementwise: bool = False
    along: bool = False
    batched: bool = False
    total: bool | None = None
    cost: Cost | None = None
    wrapped: Sequence[str] = ()
    linear: bool = False
    multilinear: bool = False
    keyword_only: Sequence[str] = ()


class Op(Facts):
    """A row of the table.

    Attributes:
        derivative: what its gradients are made of, as :func:`gradients` declares it; ``None`` without a derivative.
        base: for an in-place form, the op it is derived from.
        step: it is an optimizer's step: a control op whose name ends in ``_step``.
    """

    def __init__(self, name: str, rule: Callable[..., Inference], declared: Facts, **own: Any) -> None:
        facts = vars(declared) | own
        self._differentiable: Sequence[str] | None = facts.pop("differentiable")
        self.derivative: Derivative | None = None
        self.base: Op | None = None
        vars(self).update(facts)
        self.name: str = name
        self.rule = rule
        self.family: str = rule.__module__.rsplit(".", 1)[-1]
        self.control |= self.collective
        self.step: bool = self.control and name.endswith("_step")
        self.after_backward |= self.step
        if self.total is None:
            regular = self.elementwise or self.along or self.linear or self.multilinear
            self.total = regular and not self.random
        if self.internal:
            self.exposed = ()

    def may_write_expanded(self, tensors: int, itself: bool) -> bool:
        """Whether it may write to an expanded tensor.

        Args:
            tensors: the number of tensor operands, the written one included.
            itself: whether the other operand is the same view of the same memory.
        """
        if self.expanded is Expanded.NUMBERS:
            return tensors == 1
        return itself if self.expanded is Expanded.ITSELF else self.expanded is Expanded.WARNED

    # Lazy, because reading a signature is the most expensive part of a declaration, and a program uses few ops.

    @cached_property
    def doc(self) -> str:
        return inspect.getdoc(self.rule) or ""

    @cached_property
    def params(self) -> tuple[Param, ...]:
        declared = self.rule if self.base is None else self.base.rule
        hints = get_type_hints(declared, include_extras=True)
        return tuple(Param(p.name, hints[p.name], p.default) for p in inspect.signature(declared).parameters.values())

    @cached_property
    def defaults(self) -> tuple[Any, ...]:
        return tuple([p.default for p in self.params])

    @cached_property
    def required(self) -> int:
        """The minimum number of arguments of a call."""
        return max([i + 1 for i, p in enumerate(self.params) if p.required], default=0)

    @cached_property
    def leading_tensors(self) -> int:
        """How many of its parameters come before the first that takes no single tensor."""
        others = [i for i, p in enumerate(self.params) if p.kind not in (Kind.TENSOR, Kind.OPERAND)]
        return others[0] if others else len(self.params)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {p.name: i for i, p in enumerate(self.params)}

    @cached_property
    def underived_at(self) -> tuple[int, ...]:
        """The positions of ``underived``."""
        return tuple(i for i, p in enumerate(self.params) if p.name in self.underived)

    def without_derivative(self, at: int, operand: Meta) -> GraphError:
        """The error to raise when the operand at this position, one of ``underived``, requires grad."""
        return GraphError(
            f"{self.name} has no derivative for {self.params[at].name!r}, a {operand!r} tensor that requires grad; "
            "detach() it"
        )

    @cached_property
    def differentiable(self) -> frozenset[str]:  # type: ignore[override]
        tensors = (Kind.TENSOR, Kind.TENSORS, Kind.OPTIONAL_TENSORS, Kind.OPERAND)
        named = self._differentiable
        takers = [p.name for p in self.params if p.kind in tensors] if named is None else named
        return frozenset(takers if self.grad_fn else ())

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def signature(self) -> str:
        shown = [p.describe() for p in self.params]
        if self.keyword_only:
            shown.insert(self.by_position, "*")
        return f"{self.name}({', '.join(shown)})"

    @cached_property
    def by_position(self) -> int:
        """The maximum number of positional arguments."""
        return len(self.params) - len(self.keyword_only)

    def bind_written(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """:meth:`bind` for a program's call, which must pass keyword-only arguments by name.

        Raises:
            ArgumentTypeError: as :meth:`bind`, and for too many positional arguments.
        """
        if not kwargs and self.variadic is None and self.required <= len(args) <= self.by_position:
            return [*args, *self.defaults[len(args) :]]
        if len(args) > self.by_position and self.variadic is None:
            raise ArgumentTypeError(
                f"{self.signature} got {len(args)} positional arguments; it takes {self.by_position}"
            )
        return self.bind(args, kwargs)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Arrange call arguments by parameter and fill in defaults, without checking values.

        Raises:
            ArgumentTypeError: naming the surplus, duplicate or missing argument.
        """
        params = self.params
        if not kwargs and self.variadic is None and self.required <= len(args) <= len(params):
            return [*args, *self.defaults[len(args) :]]
        if len(args) > len(params):
            if self.variadic is not None:
                at = self.positions[self.variadic]
                args = [*args[:at], tuple(args[at:])]
            else:
                raise ArgumentTypeError(f"{self.signature} got {len(args)} arguments; it takes {len(params)}")
        elif self.variadic is not None:
            at = self.positions[self.variadic]
            if len(args) > at and isinstance(args[at], int):
                args = [*args[:at], tuple(args[at:])]
        bound = list(args)
        if kwargs:
            unused = set(kwargs)
            for param in params[len(bound) :]:
                if param.name in kwargs:
                    bound.append(kwargs[param.name])
                    unused.discard(param.name)
                elif param.required:
                    raise ArgumentTypeError(f"{self.signature} is missing the argument {param.name!r}")
                else:
                    bound.append(param.default)
            if unused:
                raise ArgumentTypeError(f"{self.signature} got an unexpected or duplicate {sorted(unused)[0]!r}")
            return bound
        for param in params[len(bound) :]:
            if param.required:
                raise ArgumentTypeError(f"{self.signature} is missing the argument {param.name!r}")
            bound.append(param.default)
        return bound

    @cached_property
    def _real(self) -> tuple[int, ...]:
        """Positions of the parameters that do not accept every complex number."""
        return tuple([i for i, p in enumerate(self.params) if p.numbers not in (None, ELEMENT)])

    @cached_property
    def _converted(self) -> tuple[int, ...]:
        """Positions of the numbers that are converted to the dtype of the result."""
        return tuple([i for i, p in enumerate(self.params) if p.numbers in (REAL, COMMON, ELEMENT)])

    def infer(self, values: Sequence[Any]) -> Inference:
        """Apply the rule to bound values: tensors as metas, data numbers as kinds.

        Raises:
            ArgumentTypeError, ArgumentError: for a complex number in place of a real one.
            Any error of the rule.
        """
        for i in self._real:
            if values[i] is ScalarKind.COMPLEX:
                self._refuse_complex(self.params[i], values)
        inferred = self.rule(*values)
        for dtype in self.computed_in(inferred, values):
            if dtype.for_storage:
                self._check_taken(dtype, inferred)
        return inferred if not self._converted else self._checking_range(inferred, values)

    def computed_in(self, inferred: Inference, values: Sequence[Any]) -> set[DType]:
        """The dtypes that a call is computed in: the one that its operands are cast to or, where they are taken as they
        are, theirs and those of the results."""
        if inferred.compute is not None:
            return {inferred.compute}
        found = {out.dtype for out in inferred.outs}
        for value in values:
            if type(value) is Meta:
                found.add(value.dtype)
            elif type(value) in (list, tuple):
                found.update([each.dtype for each in value if type(each) is Meta])
        return found

    def _check_taken(self, dtype: DType, inferred: Inference) -> None:
        """Check that the op takes a dtype for storage, on the device where its results are.

        Raises:
            Unsupported: naming both.
        """
        from .storage_dtypes import TAKEN

        check_exists(self.name, dtype)
        if dtype.is_floating_point and any(out.dtype is dtype and "cuda" in out.device for out in inferred.outs):
            raise Unsupported(f"{self.name}: {dtype.name} tensors are on the CPU only, a GPU has none")
        if self.control or self.internal:
            return
        if (self.name if self.base is None else self.base.name) not in TAKEN[dtype]:
            raise Unsupported(
                f"{self.name} is not defined for {dtype.name} tensors, a dtype for storage: convert them first"
            )

    def _checking_range(self, inferred: Inference, values: Sequence[Any]) -> Inference:
        """A copy that checks that the result's integer dtype holds the numbers of a call."""
        described = inferred.outs[0] if inferred.outs else values[0]
        dtype = described.dtype
        if dtype.category != dtypes.INTEGRAL:
            return inferred
        every = dtype is dtypes.int64  # holds nearly all integers; the kernel finds the others
        places = [
            i for i in self._converted if values[i] is ScalarKind.FLOAT or (values[i] is ScalarKind.INT and not every)
        ]
        if not places:
            return inferred
        also = inferred.check

        def check(*given: Any) -> None:
            if also is not None:
                also(*given)
            for i in places:
                check_range(self.name, self.params[i].name, given[i], dtype)

        return inferred.checking(check)

    def _refuse_complex(self, param: Param, values: Sequence[Any]) -> None:
        text = f"{self.name}: {param.name} must be real, not complex"
        if param.numbers == FLOAT:
            raise ArgumentTypeError(text)
        if param.numbers == REAL:
            raise ArgumentError(text)
        metas = [m for value in values for m in (value if type(value) is tuple else (value,)) if isinstance(m, Meta)]
        if not any(m.dtype.category == dtypes.COMPLEX for m in metas):
            found = metas[0].dtype.name if metas else "real"
            raise ArgumentError(f"{text}, with {found} tensors")


class Derivative(NamedTuple):
    """The declared derivative of an op.

    Attributes:
        gradients: an expression for each differentiable operand (:mod:`~gradwire_protocol.derivative_expressions`), or
            one for all of them.
        saves: the names of the operands and results that are always saved, or by operand of those that its gradient
            needs. ``None``: what the expressions mention. A result number that the op does not have stands for
            intermediate results of an op that the engine computes with other ops.
        broadcasts: the operands that are broadcast to the result: their gradient is computed in its shape and then
            summed to their own. ``True`` for all, which is the default for an elementwise op of several operands.
    """

    gradients: Mapping[str, str] | str
    saves: Mapping[str, str] | str | None
    broadcasts: Sequence[str] | bool


_DERIVATIVES: Final[dict[Callable[..., Inference], Derivative]] = {}
"""What ``@gradients`` declared, until ``@op`` takes it."""

TABLE: Final[dict[str, Op]] = {}


def lookup(name: str) -> Op:
    """The op with this name.

    Raises:
        UnknownOp: with the closest existing names.
    """
    found = TABLE.get(name)
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(name, TABLE, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise UnknownOp(f"unknown op {name!r}{hint}", op=name)
    return found


def gradients(
    each: str = "",
    /,
    *,
    saves: Mapping[str, str] | str | None = None,
    broadcasts: Sequence[str] | bool = False,
    **by: str,
) -> Callable[[Callable[..., Inference]], Callable[..., Inference]]:
    """Declare how the gradients of an op are made, by operand or for ``each`` one; it stands below ``@op``::

        @op(grad_fn="MulBackward0")
        @gradients(self="grad * conj(other)", other="grad * conj(self)")
        def mul(self: Tensor, other: Tensor) -> Inference:

    See :class:`Derivative` for the arguments.
    """

    def declare(rule: Callable[..., Inference]) -> Callable[..., Inference]:
        declared = TABLE.get(rule.__name__)
        if declared is not None and declared.rule is rule:
            raise ValueError(f"@gradients of {rule.__name__!r} must stand below @op")
        _DERIVATIVES[rule] = Derivative(by or each, saves, broadcasts)
        return rule

    return declare


@dataclass(kw_only=True, eq=False, repr=False)
class op(Facts):
    """Declare an op; see the module's docstring and :class:`Facts`.

    ``inplace=True`` also declares the form whose name ends in an underscore and which writes to ``self``; a string does
    so too and is that form's node name. ``inplace_function=True`` offers the form as a function where the op is one.
    ``mutates`` declares an op that only exists in place (``copy_``). ``name`` is needed where the rule's is another.
    """

    name: str | None = None

    def __call__(self, rule: Callable[..., Inference]) -> Callable[..., Inference]:
        label = self.name or rule.__name__
        if self.elementwise and not self.inplace:
            self.out |= Out.WHOLE
        base = _add(Op(label, rule, self, derivative=_DERIVATIVES.pop(rule, None)))
        if self.inplace:
            named = self.inplace if isinstance(self.inplace, str) else self.grad_fn
            form = Op(
                label + "_", rule, self, derivative=base.derivative, base=base, mutates=0, results=0, grad_fn=named,
                autocast=AS_GIVEN,
            )  # fmt: skip
            form.rule = _inplace_rule(form, rule)
            form.rule.__doc__ = f"In-place form of :func:`{label}`: writes the result into ``self``."
            form.exposed = tuple(e for e in base.exposed if e != "function" or self.inplace_function) or ("method",)
            _add(form)
        return rule


def _add(entry: Op) -> Op:
    if entry.name in TABLE:
        raise ValueError(f"op {entry.name!r} is declared twice")
    if not entry.rule.__doc__:
        raise ValueError(f"op {entry.name!r} has no docstring")
    TABLE[entry.name] = entry
    return entry


def _inplace_rule(form: Op, rule: Callable[..., Inference]) -> Callable[..., Inference]:
    converts = next((i for i, param in enumerate(form.params) if param.name == "dtype"), None)

    def inplace(*values: Any) -> Inference:
        target: Meta = values[0]
        if not isinstance(target, Meta):
            raise ArgumentTypeError(f"{form.name}: self must be a tensor")
        if converts is not None:
            if values[converts] not in (None, target.dtype):
                raise DTypeError(
                    f"{form.name}: dtype is {values[converts].name}, but self has {target.dtype.name}; an in-place op "
                    "cannot change the dtype"
                )
            values = (*values[:converts], target.dtype, *values[converts + 1 :])
        inferred = rule(*values)
        out = inferred.outs[0]
        check_write(form.name, target, out)
        return Inference(
            (), inferred.compute, None, inferred.grad_fn, inferred.scratch, inferred.check, inferred.missing
        )

    return inplace


def check_write(name: str, target: Meta, value: Meta) -> None:
    """Check that a result may be written into ``target`` in place.

    Raises:
        ShapeError: if the target would have to grow.
        DTypeError: if the value's category is above the target's.
    """
    if value.shape != target.shape and UNKNOWN not in (*value.shape, *target.shape):
        raise ShapeError(
            f"{name}: the result has shape {list(value.shape)}, but the tensor has {list(target.shape)}; an in-place "
            "op cannot change the shape"
        )
    if not can_cast(value.dtype, target.dtype):
        raise DTypeError(f"{name}: a {value.dtype.name} result cannot be written to a {target.dtype.name} tensor")


def check_range(name: str, what: str, value: complex, dtype: DType) -> None:
    """Check that an integer dtype holds a number without its fraction. Unsigned dtypes wrap negative numbers.

    Raises:
        ArgumentError: naming the number.
    """
    if dtype.category != dtypes.INTEGRAL or isinstance(value, complex):
        return
    last = (1 << 8 * dtype.itemsize - dtype.is_signed) - 1
    if not (-last - 1 if dtype.is_signed else -last) <= value < last + 1:
        raise ArgumentError(f"{name}: {what} is {value}, which does not fit into {dtype.name}")


DEFAULT_DTYPE: Final = dtypes.float32
