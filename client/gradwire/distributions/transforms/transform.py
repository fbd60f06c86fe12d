"""``Transform``, its inverse, and transforms made of others."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any
from weakref import ref

from ..._core.context.argument_types import Shape
from ..._core.context.size import Size
from ..._core.tensor.tensor import Tensor
from .. import constraints
from ..parameters import as_size, lazy_property, sum_rightmost


class Transform:
    """A map of events, as a rule invertible.

    With ``cache_size=1`` it remembers its last value, so that the inverse of what it just gave costs nothing and is
    exact.

    Attributes:
        domain, codomain: the constraints of what goes in and what comes out.
        bijective: whether ``t.inv(t(x)) == x`` and the other way round.
        sign: 1 or -1 for an increasing or decreasing function of one number.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"a transform remembers one value (cache_size=1) or none (0), not {cache_size}")
        self._cache_size = cache_size
        self._remembered: tuple[Any, Any] = (None, None)
        self._inv: Any = None  # a weak reference; the transform itself in an inverse
        super().__init__()

    @property
    def event_dim(self) -> int:
        """How many dimensions one event has, where that is the same on both sides."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError(f"{type(self).__name__} has different event dimensions: use domain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        found = self._inv() if self._inv is not None else None
        if found is None:
            found = _InverseTransform(self)
            self._inv = ref(found)
        return found

    @property
    def sign(self) -> Tensor | int:
        """1 where it increases, -1 where it decreases."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self).__name__} does not define with_cache")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._remembered[0]:
            return self._remembered[1]
        y = self._call(x)
        if self._cache_size:
            self._remembered = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._remembered[1]:
            return self._remembered[0]
        x = self._inverse(y)
        if self._cache_size:
            self._remembered = (x, y)
        return x

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_inv"] = None
        return state

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define its value")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """``log |dy/dx|`` of events ``x`` with values ``y``."""
        raise NotImplementedError(f"{type(self).__name__} has no determinant of a Jacobian")

    def forward_shape(self, shape: Shape) -> Shape:
        """The shape that a value of this shape is given."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """The shape of what gives a value of this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ParameterFree(Transform):
    """A transform without parameters, which equals any other of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParameterFree) and (isinstance(other, type(self)) or isinstance(self, type(other)))


class _InverseTransform(Transform):
    """The inverse of a transform; it shares its cache."""

    def __init__(self, transform: Any) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self) -> Tensor | int:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """One transform after another, the first of the list first."""

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        self.parts: list[Any] = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        self._forward: Any = None  # of an inverse: kept, or the inverse of the inverse would be another
        super().__init__(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _widened(self, ends: Sequence[tuple[Any, Any]]) -> Any:
        """The constraint of the first of these (its own, its part's other one) with as many event dimensions as the
        whole chain needs there."""
        constraint = ends[0][0]
        needed = ends[-1][1].event_dim
        for near, far in reversed(ends):
            needed = max(needed + near.event_dim - far.event_dim, near.event_dim)
        extra = needed - constraint.event_dim
        return constraints.independent(constraint, extra) if extra else constraint

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return self._widened([(p.domain, p.codomain) for p in self.parts]) if self.parts else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        ends = [(p.codomain, p.domain) for p in reversed(self.parts)]
        return self._widened(ends) if self.parts else constraints.real

    @lazy_property
    def bijective(self) -> bool:
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Tensor | int:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        found = self._inv() if self._inv is not None else None
        if found is None:
            found = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = ref(found)
            found._inv = ref(self)
            found._forward = self
        return found

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return x * 0
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        depth = self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            part_total = part.log_abs_det_jacobian(before, after)
            total = sum_rightmost(part_total, depth - part.domain.event_dim) + total
            depth += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inner = ",\n    ".join(repr(p) for p in self.parts)
        return f"ComposeTransform(\n    {inner}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform of which the last batch dimensions are part of the event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform: Any = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims: int = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Tensor | int:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        self._check(x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y, self.codomain)
        return self.base_transform.inv(y)

    def _check(self, value: Tensor, constraint: Any) -> None:
        if value.ndim < constraint.event_dim:
            raise ValueError(f"{self!r}: an event has {constraint.event_dim} dimensions, this value {value.ndim}")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of one shape as events of another with as many elements."""

    in_shape: Size
    out_shape: Size

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = as_size(in_shape), as_size(out_shape)
        if prod(self.in_shape) != prod(self.out_shape):
            raise ValueError(f"events of shape {list(self.in_shape)} have other elements than {list(self.out_shape)}")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(tuple(x.shape)[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Shape) -> Shape:
        return _swapped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _swapped(shape, self.out_shape, self.in_shape)


def _swapped(shape: Shape, old: Any, new: Any) -> Any:
    """A shape whose last extents are ``old`` with ``new`` instead."""
    cut = len(shape) - len(old)
    if cut < 0:
        raise ValueError(f"a shape {list(shape)} has fewer dimensions than the event {list(old)}")
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"an event has the shape {list(old)}, not {list(shape[cut:])}")
    return as_size((*shape[:cut], *new))
