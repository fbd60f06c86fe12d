"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any, ClassVar

from gradwire_protocol.errors import ArgumentValueError, ShapeError
from gradwire_protocol.shapes import broadcast

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .library import gw

__all__ = ["MixtureSameFamily"]


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
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
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

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution that chooses."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The distributions chosen from."""
        return self._component_distribution

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def _weights(self) -> Any:
        """The probabilities, with ones for the event's dimensions."""
        probs = self._mixture_distribution.probs
        return probs.reshape(*tuple(probs.shape), *(1,) * self._event_ndims)

    def _averaged(self, values: Any) -> Any:
        return (self._weights() * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        within = self._averaged(self._component_distribution.variance)
        between = self._averaged((self._component_distribution.mean - self._pad(self.mean)).pow(2))
        return within + between

    def cdf(self, x: Any) -> Any:
        """The average of the components'."""
        inner = self._component_distribution.cdf(self._pad(x))
        return (inner * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Any) -> Any:
        """The logarithm of the average of the densities."""
        if self._validate_args:
            self._validate_sample(x)
        inner = self._component_distribution.log_prob(self._pad(x))
        return (inner + gw.log_softmax(self._mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
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
