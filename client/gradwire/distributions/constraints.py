"""Constraints: regions that parameters and samples lie in.

``constraint.check(value)`` says for each event whether it lies inside. The checks of single numbers are written so that
they work on Python numbers, too: what a client knows is checked without the server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, overload

from .._core.tensor.tensor import Tensor
from .library import gw
from .parameters import precision

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of events.

    Attributes:
        is_discrete: whether it is made of isolated points.
        event_dim: how many dimensions one event has.
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _bounds: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """A mask: for each event, whether it lies in the region."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


def described(constraint: Any) -> str:
    """The constraint as text, with the shapes of bounds that are tensors: their values would cost a round trip."""
    if isinstance(constraint, _IndependentConstraint):
        return f"{described(constraint.base_constraint)} in {constraint.reinterpreted_batch_ndims} dimensions"
    bounds = [(name, getattr(constraint, name)) for name in getattr(constraint, "_bounds", ())]
    texts = [
        f"{name}=tensor of shape {list(v.shape)}" if isinstance(v, Tensor) else f"{name}={v}" for name, v in bounds
    ]
    return f"{type(constraint).__name__.removeprefix('_')}({', '.join(texts)})"


class _Dependent(Constraint):
    """A region that depends on parameters, and is known for an instance only."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(f"{type(self).__name__}.is_discrete depends on the instance")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(f"{type(self).__name__}.event_dim depends on the instance")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Said with what does not depend: ``constraints.dependent(event_dim=1)``."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("a constraint that depends on parameters cannot be checked without an instance")


def is_dependent(constraint: object) -> bool:
    """Whether a constraint is known for instances only."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives a constraint, and stands for a dependent one on the class."""

    def __init__(
        self, fn: Callable[[Any], Constraint] | None = None, *, is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:  # fmt: skip
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type, /) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None, /) -> Constraint: ...
        def __get__(self, instance: object, owner: type | None = None, /) -> Constraint | Self: ...

    def __call__(self, fn: Callable[[Any], Constraint]) -> _DependentProperty:  # type: ignore[override]
        """Decorate: ``@dependent_property(is_discrete=False, event_dim=0)``."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A region for each element of the last dimensions, which are one event."""

    _bounds = ("base_constraint", "reinterpreted_batch_ndims")

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint: Constraint = base_constraint
        self.reinterpreted_batch_ndims: int = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        inside = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if inside.ndim < n:
            raise ValueError(f"a value of {value.ndim} dimensions has no event of {self.event_dim}")
        return inside.reshape(*inside.shape[: inside.ndim - n], -1).all(-1) if n else inside

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture's components, for values that have no dimension of components."""

    _bounds = ("base_constraint",)

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint: Constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        # For each component whether it can give the value: all of them must.
        at = -1 - self.event_dim
        inside = self.base_constraint.check(value.unsqueeze(at))
        n = value.ndim - self.event_dim
        return inside.reshape(*inside.shape[:n], -1).all(-1)


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of one 1 and else 0."""

    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _BoundedBelow(Constraint):
    """What has a ``lower_bound``."""

    _bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound: Any = lower_bound


class _BoundedAbove(Constraint):
    """What has an ``upper_bound``."""

    _bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound: Any = upper_bound


class _Bounded(Constraint):
    """What has a ``lower_bound`` and an ``upper_bound``."""

    _bounds = ("lower_bound", "upper_bound")

    lower_bound: Any
    upper_bound: Any

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _IntegerInterval(_Bounded):
    """Integers from ``lower_bound`` to ``upper_bound``, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_BoundedBelow):
    """Integers from ``lower_bound`` on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """All numbers; not NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_BoundedBelow):
    """Numbers above ``lower_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_BoundedBelow):
    """Numbers from ``lower_bound`` on."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_BoundedAbove):
    """Numbers below ``upper_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers from ``lower_bound`` to ``upper_bound``, both included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """Numbers from ``lower_bound`` up to but without ``upper_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of numbers from 0 on whose sum is 1, to within 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_BoundedAbove):
    """Vectors of counts whose sum is at most ``upper_bound``."""

    is_discrete, event_dim = True, 1

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: rows of length 1."""

    def check(self, value: Tensor) -> Tensor:
        slack = precision(value.dtype)[0] * value.shape[-1] * 10
        length = (value * value).sum(-1).sqrt()
        return ((length - 1).abs() < slack).all(-1) & super().check(value)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        inside = value.shape[-2] == value.shape[-1]
        return gw.full(tuple(value.shape[:-2]), inside, dtype=gw.bool, device=value.device)


class _Symmetric(_Square):
    """Square matrices that equal their transposes, to within 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return gw.isclose(value, value.transpose(-2, -1), atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & (gw.linalg.eigvalsh(value.detach()) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are positive: those that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & (gw.linalg.cholesky_ex(value.detach())[1] == 0)


class _Joined(Constraint):
    """Constraints of the parts of a dimension."""

    cseq: list[Constraint]
    dim: int

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)


class _Cat(_Joined):
    """A constraint for each stretch of a dimension, ``lengths`` long."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths: list[int] = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(f"{len(self.cseq)} constraints need as many lengths, not {len(self.lengths)}")

    def check(self, value: Tensor) -> Tensor:
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return gw.cat(checks, self.dim)


class _Stack(_Joined):
    """A constraint for each position of a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def event_dim(self) -> int:
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        parts = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        return gw.stack([c.check(part) for part, c in zip(parts, self.cseq, strict=True)], self.dim)


dependent: _Dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: _Boolean = _Boolean()
one_hot: _OneHot = _OneHot()
nonnegative_integer: _IntegerGreaterThan = _IntegerGreaterThan(0)
positive_integer: _IntegerGreaterThan = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: _Real = _Real()
real_vector: _IndependentConstraint = independent(real, 1)
positive: _GreaterThan = _GreaterThan(0.0)
nonnegative: _GreaterThanEq = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval: _Interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: _Simplex = _Simplex()
lower_triangular: _LowerTriangular = _LowerTriangular()
lower_cholesky: _LowerCholesky = _LowerCholesky()
corr_cholesky: _CorrCholesky = _CorrCholesky()
square: _Square = _Square()
symmetric: _Symmetric = _Symmetric()
positive_semidefinite: _PositiveSemidefinite = _PositiveSemidefinite()
positive_definite: _PositiveDefinite = _PositiveDefinite()
cat = _Cat
stack = _Stack
