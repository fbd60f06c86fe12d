"""The op table: one declaration per operation, from which everything else about it is derived.

An operation is declared as a function. Its signature is the schema of a record on the wire, its docstring
the documentation, its body the rule: from the operands' metas to the results' metas::

    @op(grad_fn="TanhBackward0")
    def tanh(self: Tensor) -> Tensor:
        \"\"\"Hyperbolic tangent, elementwise.\"\"\"
        return elementwise(self, promotion=Promote.INT_TO_FLOAT)

A rule sees a :class:`~gradwire_protocol.meta.Meta` for each tensor, a ``ScalarKind`` for each Python number
that is data, and the value of everything else. It may be called on either side of the wire, so it depends
on nothing but its arguments (and the default float dtype).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, Union, get_args, get_origin, get_type_hints

from . import dtypes
from .dtypes import DType
from .errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, ShapeError, UnknownOp
from .meta import UNKNOWN, Inference, Meta
from .promotion import ScalarKind, can_cast, fits

Tensor = Meta
FLOAT, REAL, COMMON, ELEMENT = "float", "real", "common", "element"
if TYPE_CHECKING:
    Scalar = Any  # a rule sees the kind, a default is a number
    Float = Any
    Real = Any
    Factor = Any
    Element = Any
else:
    Scalar = ScalarKind
    Float = Annotated[ScalarKind, FLOAT]
    """A number that is never complex: a complex one is an argument of the wrong type (``TypeError``)."""
    Real = Annotated[ScalarKind, REAL]
    """A number that is never complex: a complex one is a value that cannot be converted (``RuntimeError``)."""
    Factor = Annotated[ScalarKind, COMMON]
    """A number that is complex only where some tensor operand is: else it cannot be converted (``RuntimeError``)."""
    Element = Annotated[ScalarKind, ELEMENT]
    """A number that becomes an element of the result; the rule says which complex ones do. Like ``Real`` and ``Factor``
    it is refused where the result's integers do not hold it."""
Position = Annotated[int, "data"]
"""An int whose value the rule needs, yet which is data: where in a tensor, not how (``x[i]``)."""
Number = bool | int | float | complex
"""A Python number that is part of the structure, since the result's shape depends on it (``arange``)."""
Ints = tuple[int, ...]
Strings = tuple[str, ...]


class Payload:
    """Marks the parameter that takes bytes from beside the frame."""


class Kind(Enum):
    """How an argument travels."""

    TENSOR = "tensor"
    TENSORS = "list of tensors"
    OPTIONAL_TENSORS = "list of tensors or null"
    OPERAND = "tensor or number"
    SCALAR = "number"
    POSITION = "position"
    ATTRIBUTE = "attribute"
    PAYLOAD = "payload"


class Param:
    """One parameter of an operation."""

    __slots__ = ("annotation", "check", "default", "kind", "name", "numbers", "optional", "required")

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        self.annotation = annotation
        self.required = default is inspect.Parameter.empty
        self.default = None if self.required else default
        self.numbers = _numbers(annotation)
        self.kind, self.optional, self.check = _classify(annotation)

    def describe(self) -> str:
        text = _describe(self.annotation)
        return f"{self.name}: {text}" + ("" if self.required else f" = {self.default!r}")


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (UnionType, Union):
        return tuple(m for part in get_args(annotation) for m in _members(part))
    return (annotation,)


def _numbers(annotation: Any) -> str | None:
    """Which numbers a parameter takes: ``FLOAT``, ``REAL``, ``COMMON`` or ``ELEMENT``; ``None`` for any."""
    for member in _members(annotation):
        if get_origin(member) is Annotated and get_args(member)[0] is ScalarKind:
            return str(get_args(member)[1])
    return None


def _unmarked(member: Any) -> Any:
    return ScalarKind if get_origin(member) is Annotated and get_args(member)[0] is ScalarKind else member


def _classify(annotation: Any) -> tuple[Kind, bool, tuple[Any, ...]]:
    members = tuple(_unmarked(member) for member in _members(annotation))
    optional = NoneType in members
    real = tuple(m for m in members if m is not NoneType)
    if Meta in real:
        return (Kind.OPERAND if ScalarKind in real else Kind.TENSOR), optional, real
    if real == (ScalarKind,):
        return Kind.SCALAR, optional, real
    if real == (Position,):
        return Kind.POSITION, optional, real
    if real == (Payload,):
        return Kind.PAYLOAD, optional, real
    if len(real) == 1 and get_origin(real[0]) is list:
        inner = _members(get_args(real[0])[0])
        return (Kind.OPTIONAL_TENSORS if NoneType in inner else Kind.TENSORS), optional, real
    return Kind.ATTRIBUTE, optional, real


_NUMBERS: Final = {FLOAT: "float", REAL: "Real", COMMON: "Scalar", ELEMENT: "Scalar"}


def _describe(annotation: Any) -> str:
    names = {Meta: "Tensor", ScalarKind: "Scalar", NoneType: "None", DType: "dtype"}
    parts = []
    for member in _members(annotation):
        if get_origin(member) in (list, tuple):
            inner = [a for a in get_args(member) if a is not Ellipsis]
            parts.append(f"{get_origin(member).__name__}[{', '.join(_describe(a) for a in inner)}]")
        elif get_origin(member) is Annotated:
            parts.append(
                {FLOAT: "float", REAL: "Real", COMMON: "Scalar", ELEMENT: "Scalar"}.get(get_args(member)[1], "int")
            )
        else:
            parts.append(names.get(member, getattr(member, "__name__", str(member))))
    return " | ".join(dict.fromkeys(parts))


class Expanded(Enum):
    """What an in-place op does with an expanded tensor, in which several elements are one place in memory."""

    REFUSED = "refuses it"
    WARNED = "writes to it, and warns"
    NUMBERS = "writes to it, unless there is another tensor among its operands"


class Op:
    """A row of the table.

    Attributes:
        results: how many tensors it returns; ``None`` where that depends on the arguments.
        differentiable: the names of the tensor parameters that gradients flow to.
        underived: the names of tensor parameters that the result depends on, and that it has no derivative by: one
            that requires grad is refused where history is recorded.
        constant: the numbers of results that no gradient flows back from, though their dtype could carry one.
        mutates: for an in-place form, the position of the tensor that is written to (always 0).
        apart: for an in-place form, whether operands must have no memory in common with the tensor that is written
            to; otherwise they may be the very same view.
        copied: for an in-place form, the operands that may share any memory with it, since PyTorch does not look.
        untracked: for an op that returns views, whether autograd takes them for tensors of their own, with a version
            each and no base.
        expanded: for an in-place form, whether it may write to an expanded tensor.
        keyword_only: the names of the parameters that a program gives by name only, as with PyTorch; the last ones.
        casts: it takes values of any dtype into one that is given: the imaginary part of complex numbers may be lost,
            and what becomes integers has no history.
        base: for an in-place form, the operation it is derived from.
        control: it acts on the session (graph, names, random state) rather than computing a value.
        random: it draws from the session's generator.
        dynamic: the shape of its result depends on data.
        internal: a primitive of derivatives, called by the engine alone. Its rule trusts its arguments, and a frame
            that names it is refused.
        underivable: why backward cannot go through it, although its result requires grad. Where that depends on the
            arguments, the rule says so (:meth:`~gradwire_protocol.meta.Inference.without_derivative`).
        exposed: where clients offer it: "function", "method", "nn.functional", in the namespaces "linalg", "fft" and
            "special" (without the prefix that its name has here), or nowhere.
        variadic: the parameter that also accepts its ints unpacked (``x.permute(0, 2, 1)``).
    """

    def __init__(self, name: str, rule: Callable[..., Inference], **facts: Any) -> None:
        self.name = name
        self.rule = rule
        self.family: str = rule.__module__.rsplit(".", 1)[-1]
        self.grad_fn: str | None = facts["grad_fn"]
        self.differentiable_: Sequence[str] | None = facts["differentiable"]
        self.results: int | None = facts["results"]
        self.underived: frozenset[str] = frozenset(facts["underived"])
        self.constant: tuple[int, ...] = facts["constant"]
        self.mutates: int | None = facts["mutates"]
        self.base: Op | None = facts["base"]
        self.apart: bool = facts["apart"]
        self.copied: frozenset[str] = frozenset(facts["copied"])
        self.expanded: Expanded = facts["expanded"]
        self.untracked: bool = facts["untracked"]
        self.casts: bool = facts["casts"]
        self.control: bool = facts["control"]
        self.random: bool = facts["random"]
        self.dynamic: bool = facts["dynamic"]
        self.internal: bool = facts["internal"]
        self.underivable: str | None = facts["underivable"]
        self.exposed: tuple[str, ...] = () if self.internal else facts["exposed"]
        self.variadic: str | None = facts["variadic"]
        self.keyword_only: frozenset[str] = frozenset(facts["keyword_only"])

    def may_write_expanded(self, tensors: int) -> bool:
        """Whether it may write to an expanded tensor, when so many operands are tensors, the written one included."""
        return self.expanded is Expanded.WARNED or (self.expanded is Expanded.NUMBERS and tensors == 1)

    # Reading a signature takes longer than everything else about a declaration, and a program uses few of the ops.

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
        return tuple(p.default for p in self.params)

    @cached_property
    def required(self) -> int:
        """How many arguments a call has at least, the first ones."""
        return max((i + 1 for i, p in enumerate(self.params) if p.required), default=0)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {p.name: i for i, p in enumerate(self.params)}

    @cached_property
    def underived_at(self) -> tuple[int, ...]:
        return tuple(i for i, p in enumerate(self.params) if p.name in self.underived)

    def refuse_derivative(self, at: int, operand: Meta) -> NoReturn:
        """Say that the operand at this position, one of ``underived``, requires grad.

        Raises:
            GraphError: always.
        """
        raise GraphError(
            f"{self.name} has no derivative by {self.params[at].name!r}, a {operand!r} tensor that requires grad: "
            "detach() it"
        )

    @cached_property
    def differentiable(self) -> frozenset[str]:
        tensors = (Kind.TENSOR, Kind.TENSORS, Kind.OPTIONAL_TENSORS, Kind.OPERAND)
        named = self.differentiable_
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
        """How many arguments a program may give by their position, the first ones."""
        return sum(p.name not in self.keyword_only for p in self.params)

    def bind_written(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """:meth:`bind` for a call as a program writes it: some arguments are given by name only.

        Raises:
            ArgumentTypeError: as :meth:`bind` does, and for too many arguments without a name.
        """
        if not kwargs and self.variadic is None and self.required <= len(args) <= self.by_position:
            return [*args, *self.defaults[len(args) :]]
        if len(args) > self.by_position and self.variadic is None:
            raise ArgumentTypeError(
                f"{self.signature} got {len(args)} arguments by position, it takes {self.by_position}"
            )
        return self.bind(args, kwargs)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Arrange call arguments by parameter and fill in defaults; values are not looked at.

        Raises:
            ArgumentTypeError: naming the superfluous, doubled or missing argument.
        """
        params = self.params
        if not kwargs and self.variadic is None and self.required <= len(args) <= len(params):
            return [*args, *self.defaults[len(args) :]]
        if len(args) > len(params):
            if self.variadic is not None:
                at = self.positions[self.variadic]
                args = [*args[:at], tuple(args[at:])]
            else:
                raise ArgumentTypeError(f"{self.signature} got {len(args)} arguments, it takes {len(params)}")
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
                    raise ArgumentTypeError(f"{self.signature} misses its argument {param.name!r}")
                else:
                    bound.append(param.default)
            if unused:
                raise ArgumentTypeError(f"{self.signature} got an unexpected or doubled {sorted(unused)[0]!r}")
            return bound
        for param in params[len(bound) :]:
            if param.required:
                raise ArgumentTypeError(f"{self.signature} misses its argument {param.name!r}")
            bound.append(param.default)
        return bound

    @cached_property
    def _real(self) -> tuple[int, ...]:
        """Positions of the parameters that do not take every complex number."""
        return tuple(i for i, p in enumerate(self.params) if p.numbers not in (None, ELEMENT))

    @cached_property
    def _converted(self) -> tuple[int, ...]:
        """Positions of the numbers that are converted to the dtype of the result."""
        return tuple(i for i, p in enumerate(self.params) if p.numbers in (REAL, COMMON, ELEMENT))

    def infer(self, values: Sequence[Any]) -> Inference:
        """Apply the rule to bound values, in which tensors are metas and data numbers are kinds.

        Raises:
            ArgumentTypeError, ArgumentError: for a complex number where a real one belongs.
            Whatever the rule raises.
        """
        for i in self._real:
            if values[i] is ScalarKind.COMPLEX:
                self._refuse_complex(self.params[i], values)
        inferred = self.rule(*values)
        return inferred if not self._converted else self._checking_range(inferred, values)

    def _checking_range(self, inferred: Inference, values: Sequence[Any]) -> Inference:
        """The same, with a check that the integers of the result hold the numbers of a call."""
        described = inferred.outs[0] if inferred.outs else values[0]
        dtype = described.dtype
        if dtype.category != dtypes.INTEGRAL:
            return inferred
        every = dtype is dtypes.int64  # holds nearly all integers, and what it does not is found by the kernel
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
        said = f"{self.name}: {param.name} is a complex number, it must be real"
        if param.numbers == FLOAT:
            raise ArgumentTypeError(said)
        if param.numbers == REAL:
            raise ArgumentError(said)
        metas = [m for value in values for m in (value if type(value) is tuple else (value,)) if isinstance(m, Meta)]
        if not any(m.dtype.category == dtypes.COMPLEX for m in metas):
            found = metas[0].dtype.name if metas else "real"
            raise ArgumentError(f"{said} among {found} tensors")


TABLE: Final[dict[str, Op]] = {}


def lookup(name: str) -> Op:
    """The op of this name.

    Raises:
        UnknownOp: with the closest names that exist.
    """
    found = TABLE.get(name)
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(name, TABLE, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise UnknownOp(f"there is no op named {name!r}{hint}", op=name)
    return found


def op(
    *,
    grad_fn: str | None = None,
    differentiable: Sequence[str] | None = None,
    underived: Sequence[str] = (),
    results: int | None = 1,
    constant: Sequence[int] = (),
    inplace: bool | str = False,
    control: bool = False,
    random: bool = False,
    dynamic: bool = False,
    internal: bool = False,
    underivable: str | None = None,
    exposed: Sequence[str] = ("function", "method"),
    variadic: str | None = None,
    name: str | None = None,
    mutates: int | None = None,
    apart: bool = False,
    copied: Sequence[str] = (),
    expanded: Expanded = Expanded.REFUSED,
    untracked: bool = False,
    casts: bool = False,
    keyword_only: Sequence[str] = (),
) -> Callable[[Callable[..., Inference]], Callable[..., Inference]]:
    """Declare an operation; see the module's docstring and :class:`Op` for the facts.

    ``inplace=True`` also declares the form whose name ends in an underscore and which writes to ``self``; a
    string does so, too, and is the node name of that form, where it has one of its own.
    ``mutates`` declares an op that only exists in place (``copy_``).
    """

    def declare(rule: Callable[..., Inference]) -> Callable[..., Inference]:
        label = name or rule.__name__
        facts = {
            "grad_fn": grad_fn, "differentiable": differentiable, "results": results, "mutates": mutates,
            "base": None, "control": control, "random": random, "dynamic": dynamic,
            "apart": apart, "copied": copied, "expanded": expanded, "untracked": untracked, "casts": casts,
            "exposed": tuple(exposed), "internal": internal, "variadic": variadic, "underivable": underivable,
            "underived": tuple(underived), "constant": tuple(constant), "keyword_only": tuple(keyword_only),
        }  # fmt: skip
        base = _add(Op(label, rule, **facts))
        if inplace:
            own = {"grad_fn": inplace if isinstance(inplace, str) else grad_fn}
            form = Op(label + "_", rule, **(facts | own | {"mutates": 0, "base": base, "results": 0}))
            form.rule = _inplace_rule(form, rule)
            form.rule.__doc__ = f"In-place form of :func:`{label}`: writes the result into ``self``."
            form.exposed = tuple(e for e in base.exposed if e != "function") or ("method",)
            _add(form)
        return rule

    return declare


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
            raise ArgumentTypeError(f"{form.name} writes into self, which must be a tensor")
        if converts is not None:
            if values[converts] not in (None, target.dtype):
                raise DTypeError(
                    f"{form.name}: dtype={values[converts].name} is not what self has, {target.dtype.name}, and an "
                    "in-place operation cannot change that"
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
        ShapeError: when the target would have to grow.
        DTypeError: when the value's category is above the target's.
    """
    if value.shape != target.shape and UNKNOWN not in (*value.shape, *target.shape):
        raise ShapeError(
            f"{name}: the result has shape {list(value.shape)}, but it must fit into {list(target.shape)}, "
            "since an in-place operation cannot change its tensor's shape"
        )
    if not can_cast(value.dtype, target.dtype):
        raise DTypeError(f"{name}: a {value.dtype.name} result cannot be written into a {target.dtype.name} tensor")


def check_range(name: str, what: str, value: complex, dtype: DType) -> None:
    """Check that an integer dtype holds a number, less its fraction. Unsigned ones wrap negative numbers.

    Raises:
        ArgumentError: naming the number.
    """
    if dtype.category != dtypes.INTEGRAL or isinstance(value, complex):
        return
    last = (1 << 8 * dtype.itemsize - dtype.is_signed) - 1
    if not (-last - 1 if dtype.is_signed else -last) <= value < last + 1:
        raise ArgumentError(f"{name}: {what} is {value}, which {dtype.name} does not hold")


def attribute_matches(value: Any, allowed: Sequence[Any]) -> bool:
    """Whether an attribute's value has one of the declared types. A bool is a float, as any number is, but not an int
    here."""
    for member in allowed:
        if get_origin(member) is tuple:
            inner = get_args(member)[0]
            if isinstance(value, tuple) and all(attribute_matches(v, _members(inner)) for v in value):
                return True
        elif member is DType:
            if type(value) is DType:
                return True
        elif member is float:
            if type(value) is float or type(value) is bool or (type(value) is int and fits(value)):
                return True
        elif type(value) is member:
            return member is not int or -(1 << 63) <= value < 1 << 63
    return False


DEFAULT_DTYPE: Final = dtypes.float32
