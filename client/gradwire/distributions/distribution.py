"""Distributions: what all of them have, exponential families, and several that count as one."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

from gradwire_protocol.errors import ArgumentValueError, ShapeError
from gradwire_protocol.shapes import broadcast

from .._core.context.argument_types import Shape
from .._core.context.size import Size
from .._core.tensor.tensor import Tensor
from . import constraints
from .library import call, gw
from .parameters import as_size, lazy_property, number_of, sum_rightmost

__all__ = ["ExponentialFamily", "Independent"]


def require(value: Any, constraint: Any, message: str) -> None:
    """Demand that a value lie in a constraint's region: now where it is known, else on the server.

    Raises:
        ArgumentValueError: (a ValueError) saying ``message`` and the value.
    """
    number = number_of(value)
    if number is not None:
        inside = constraint.check(number)
        if isinstance(inside, bool):
            if not inside:
                raise ArgumentValueError(f"{message}, not {number}")
            return
    with gw.no_grad():
        mask = constraint.check(value.detach())
        whole = tuple(value.shape[: mask.ndim]) == tuple(mask.shape)
        call("check_all", mask, message, value.detach() if whole else None)


class Distribution:
    """A probability distribution, or a batch of independent ones.

    Attributes:
        arg_constraints: the constraint of each parameter, by name.
        support: the constraint of samples.
        has_rsample: whether samples carry gradients to the parameters.
        has_enumerate_support: whether the support is finite and can be listed.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    _batched: ClassVar[dict[str, int]] = {}
    """The parameters that expand with the batch, with the number of dimensions behind it that each has. A class with
    a constructor of its own says them, if there are none, too: that is how ``expand`` knows that it may leave the
    constructor out."""
    _carried: ClassVar[tuple[str, ...]] = ()
    """Attributes that an expanded distribution takes over as they are."""

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Check arguments of new distributions, or not, unless they say otherwise."""
        if value not in (True, False):
            raise ValueError(f"validate_args is True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = as_size(batch_shape), as_size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{type(self).__name__} does not define arg_constraints: say arg_constraints = {{}} or "
                "validate_args=False",
                stacklevel=4,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # computed from one that was given
            value = getattr(self, name)
            require(
                value,
                constraint,
                f"{type(self).__name__}: the parameter {name} must satisfy {constraints.described(constraint)}",
            )

    # Shapes

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return as_size((*sample_shape, *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """The same distribution with its batch expanded, without copying parameters.

        Raises:
            NotImplementedError: for a subclass with arguments of its own that does not define it.
        """
        owner = next((c for c in type(self).__mro__ if "_batched" in vars(c)), Distribution)
        if owner is Distribution:
            raise self._lacks("expand")
        new = self._get_checked_instance(owner, _instance)
        batch_shape = as_size(batch_shape)
        for name, trailing in self._batched.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                kept = tuple(value.shape)[value.ndim - trailing :]
                setattr(new, name, value.expand((*batch_shape, *kept)))
        for name in self._carried:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name])
        self._expand_inner(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        """Expand what a distribution keeps beside its parameters."""

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__} has an __init__ of its own, so it must define expand as well"
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    # What distributions define

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter."""
        raise self._lacks("arg_constraints")

    @property
    def support(self) -> constraints.Constraint:
        """The constraint of samples."""
        raise self._lacks("its support")

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {what}")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._lacks("its mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise self._lacks("its mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacks("its variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples without gradients, of shape ``sample_shape + batch_shape + event_shape``."""
        with gw.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples through which gradients flow to the parameters."""
        raise self._lacks("rsample")

    def sample_n(self, n: int) -> Tensor:
        """``n`` samples; PyTorch's old name of ``sample((n,))``."""
        warnings.warn("sample_n(n) will be deprecated: use sample((n,))", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or probability, at ``value``."""
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample up to ``value``."""
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile of a probability."""
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a finite support, along a new first dimension."""
        raise self._lacks("enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return gw.exp(self.entropy())

    # Checks

    def _check_sample(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Check a value that a method was given: its shape now, its values on the server.

        Raises:
            ArgumentValueError: for what is no tensor, or does not broadcast with the distribution's shape.
        """
        if not isinstance(value, Tensor):
            raise ArgumentValueError(f"{type(self).__name__}: the value must be a tensor, not {value!r:.60}")
        if len(self._event_shape) > value.ndim:
            raise ArgumentValueError(
                f"{type(self).__name__}: an event has the shape {list(self._event_shape)}, the value "
                f"{list(value.shape)} has too few dimensions"
            )
        wanted = (*self._batch_shape, *self._event_shape)
        try:
            broadcast(tuple(value.shape), wanted)
        except ShapeError as error:
            raise ArgumentValueError(
                f"{type(self).__name__}: a value of shape {list(value.shape)} does not broadcast with "
                f"batch_shape + event_shape {list(wanted)}"
            ) from error
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self).__name__} does not define its support: define it, or say validate_args=False",
                stacklevel=3,
            )
            return
        require(
            value, support, f"{type(self).__name__}: the value must lie in the support {constraints.described(support)}"
        )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = []
        for name in names:
            value = self.__dict__[name]
            parts.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(parts)})"


class ExponentialFamily(Distribution):
    """Densities ``exp(<t(x), theta> - F(theta) + k(x))``, of natural parameters theta and log normaliser F."""

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise self._lacks("_natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise self._lacks("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("_mean_carrier_measure")

    def _tangent(self) -> tuple[Any, Any, Any]:
        """Natural parameters, the log normaliser there, and its derivatives; all detached from what they came from."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with gw.enable_grad():
            normalizer = self._log_normalizer(*params)
            slopes = gw.autograd.grad(normalizer.sum(), params, create_graph=True)
        return params, normalizer, slopes

    def entropy(self) -> Tensor:
        """``F(theta) - <theta, F'(theta)> - E k(x)``."""
        carried = self._mean_carrier_measure
        params, normalizer, slopes = self._tangent()
        result = normalizer - carried
        for param, slope in zip(params, slopes, strict=True):
            along = (param * slope).reshape(*self._batch_shape, -1).sum(-1)
            result = result - along
        return result


class Independent(Distribution):
    """The last ``reinterpreted_batch_ndims`` batch dimensions of ``base_distribution`` as one event.

    Raises:
        ValueError: where it has fewer.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("reinterpreted_batch_ndims",)

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        have = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > have:
            raise ValueError(f"{reinterpreted_batch_ndims} batch dimensions are to be an event's, there are {have}")
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = have - reinterpreted_batch_ndims
        self.base_dist: Distribution = base_distribution
        self.reinterpreted_batch_ndims: int = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *inner))

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        return False if self.reinterpreted_batch_ndims > 0 else self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        found = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(found, n) if n else found

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples of the base distribution."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples of the base distribution, with gradients."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum over the event of the base distribution's."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The sum over the event of the base distribution's."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The base distribution's, where no dimension was taken over.

        Raises:
            NotImplementedError: where one was: the product of supports is too large to list.
        """
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent does not list the product of the supports of its dimensions")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
