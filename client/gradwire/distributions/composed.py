"""Distributions made of others: transformed, and mixtures of one family."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError, ShapeError
from gradwire_protocol.shapes import broadcast

from .._core.context.argument_types import Shape
from .._core.tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution, Independent
from .library import gw
from .outcomes import Categorical
from .parameters import moment, sum_rightmost
from .transforms import ComposeTransform, Transform

__all__ = ["MixtureSameFamily", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """``transforms[-1](... transforms[0](x))`` for x of a base distribution.

    Args:
        base_distribution: of x.
        transforms: a transform or a list of them, the first applied first.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("transforms",)

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms: list[Transform] = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms is a Transform or a list of them, not {transforms!r}")
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"the transforms take events of {whole.domain.event_dim} dimensions, the base distribution has the "
                f"shape {list(base_shape)}"
            )
        forward_shape = whole.forward_shape(base_shape)
        expanded = tuple(whole.inverse_shape(forward_shape))
        if expanded != base_shape:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        moved = whole.domain.event_dim - base_event_dim
        if moved > 0:
            base_distribution = Independent(base_distribution, moved)
        self.base_dist: Distribution = base_distribution
        growth = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, base_event_dim + growth)
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        extra = len(self._event_shape) - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples without gradients."""
        with gw.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples with gradients, where the base distribution has them."""
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """The density of the base distribution where the value came from, over the volume it was stretched to."""
        self._check_sample(value)
        event_dim = len(self._event_shape)
        result: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            stretched = transform.log_abs_det_jacobian(x, y)
            result = result - sum_rightmost(stretched, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return result + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """The other tail, where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """The base distribution's, where the value came from; of monotonic transforms."""
        self._check_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The transformed quantile of the base distribution; of monotonic transforms."""
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))


class MixtureSameFamily(Distribution):
    """One of several components, chosen by a categorical distribution.

    The components are the last batch dimension of ``component_distribution``, the other batch dimensions are those of
    ``mixture_distribution``.

    Raises:
        ValueError: for other classes than that, or shapes that do not fit.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = False
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("_num_component", "_event_ndims")

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentValueError("MixtureSameFamily: mixture_distribution must be a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ArgumentValueError("MixtureSameFamily: component_distribution must be a Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        chosen = tuple(mixture_distribution.batch_shape)
        batch = tuple(component_distribution.batch_shape)
        if not batch:
            raise ArgumentValueError("MixtureSameFamily: the components need a batch dimension")
        try:
            broadcast(chosen, batch[:-1])
        except ShapeError as error:
            raise ArgumentValueError(
                f"MixtureSameFamily: the batches {list(chosen)} and {list(batch)} do not fit"
            ) from error
        count = mixture_distribution.param_shape[-1]
        if batch[-1] != count:
            raise ArgumentValueError(f"MixtureSameFamily: {count} probabilities for {batch[-1]} components")
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch[:-1], event_shape, validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Shape) -> None:
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The distributions chosen from."""
        return self._component_distribution

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _weights(self) -> Tensor:
        """The probabilities, with ones for the event's dimensions."""
        probs = self._mixture_distribution.probs
        return probs.reshape(*tuple(probs.shape), *(1,) * self._event_ndims)

    def _averaged(self, values: Any) -> Tensor:
        return (self._weights() * values).sum(-1 - self._event_ndims)

    mean: moment = moment(lambda self: self._averaged(self._component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        within = self._averaged(self._component_distribution.variance)
        between = self._averaged((self._component_distribution.mean - self._pad(self.mean)).pow(2))
        return within + between

    def cdf(self, x: Tensor) -> Tensor:
        """The average of the components'."""
        inner = self._component_distribution.cdf(self._pad(x))
        return (inner * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """The logarithm of the average of the densities."""
        self._check_sample(x)
        inner = self._component_distribution.log_prob(self._pad(x))
        return (inner + gw.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Samples of all components, of which one is chosen each."""
        with gw.no_grad():
            lead = len(tuple(sample_shape)) + len(self._batch_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            shape = tuple(drawn.shape)
            index = chosen.reshape(*tuple(chosen.shape), *(1,) * (1 + self._event_ndims))
            index = index.expand((*shape[:lead], 1, *shape[lead + 1 :]))
            return drawn.gather(lead, index).squeeze(lead)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
