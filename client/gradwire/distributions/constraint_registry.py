"""Transforms onto constrained regions: ``biject_to(constraint)`` one to one, ``transform_to(constraint)`` easy to
optimise over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Kind: TypeAlias = constraints.Constraint | type[constraints.Constraint]
Factory = TypeVar("Factory", bound=Callable[[Any], transforms.Transform])


class ConstraintRegistry:
    """Which transform leads from unconstrained numbers to each kind of constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], transforms.Transform]] = {}

    @overload
    def register(self, constraint: Kind, factory: None = None) -> Callable[[Factory], Factory]: ...
    @overload
    def register(self, constraint: Kind, factory: Factory) -> Factory: ...

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register ``factory(constraint)``, which makes a transform, for a class of constraints; or decorate it.

        Raises:
            TypeError: for what is neither a constraint nor a class of them.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"a constraint or a class of constraints can be registered, not {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """A transform of unconstrained numbers whose values satisfy the constraint.

        Raises:
            NotImplementedError: where none is registered.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform leads to constraints of the kind {type(constraint).__name__}")
        return factory(constraint)


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _above(constraint: Any) -> Any:
    if _is(constraint.lower_bound, 0):
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if _is(low, 0) and _is(high, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _is(bound: Any, number: int) -> bool:
    return isinstance(bound, (int, float)) and bound == number


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _bijection_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


def _onto_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


def _onto_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


def _onto_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


biject_to.register(constraints.simplex, _bijection_to_simplex)
transform_to.register(constraints.simplex, _onto_simplex)
transform_to.register(constraints.lower_cholesky, _onto_lower_cholesky)
transform_to.register(constraints.positive_definite, _onto_positive_definite)
transform_to.register(constraints.positive_semidefinite, _onto_positive_definite)


def _combined(registry: ConstraintRegistry) -> None:
    """Constraints made of others, by the same registry."""

    def independent(constraint: Any) -> Any:
        return transforms.IndependentTransform(
            registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        )

    def cat(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> Any:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, cat)
    registry.register(constraints.stack, stack)


_combined(biject_to)
_combined(transform_to)
