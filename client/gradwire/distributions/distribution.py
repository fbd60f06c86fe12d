"""``Distribution``: what all distributions share, and how their arguments are checked.

Checks cost no round trip. Numbers are checked at once; values that only the server has are checked there, by the op
``check_all``, and a failure is raised at the next read, as that of any op.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError, ShapeError
from gradwire_protocol.shapes import broadcast

from ..tensor import Tensor
from . import constraints
from .library import call, gw
from .parameters import as_size, lazy_property, number_of


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

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
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
                value, constraint,
                f"{type(self).__name__}: the parameter {name} must satisfy {constraints.described(constraint)}",
            )  # fmt: skip

    # Shapes

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one event."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return as_size((*sample_shape, *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
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

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
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
    def support(self) -> Any:
        """The constraint of samples."""
        raise self._lacks("its support")

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {what}")

    @property
    def mean(self) -> Any:
        """The mean."""
        raise self._lacks("its mean")

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise self._lacks("its mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise self._lacks("its variance")

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples without gradients, of shape ``sample_shape + batch_shape + event_shape``."""
        with gw.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples through which gradients flow to the parameters."""
        raise self._lacks("rsample")

    def sample_n(self, n: int) -> Any:
        """``n`` samples; PyTorch's old name of ``sample((n,))``."""
        warnings.warn("sample_n(n) will be deprecated: use sample((n,))", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or probability, at ``value``."""
        raise self._lacks("log_prob")

    def cdf(self, value: Any) -> Any:
        """The probability of a sample up to ``value``."""
        raise self._lacks("cdf")

    def icdf(self, value: Any) -> Any:
        """The quantile of a probability."""
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a finite support, along a new first dimension."""
        raise self._lacks("enumerate_support")

    def entropy(self) -> Any:
        """The entropy, in nats."""
        raise self._lacks("entropy")

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return gw.exp(self.entropy())

    # Checks

    def _validate_sample(self, value: Any) -> None:
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
        )  # fmt: skip

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = []
        for name in names:
            value = self.__dict__[name]
            parts.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(parts)})"
