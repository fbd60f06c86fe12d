"""What distributions of vectors share that have one element for each outcome of a categorical distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class OutcomeVectors(Distribution):
    """Vectors over the outcomes of ``categorical``, which keeps, normalises and checks the parameters."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, categorical: Categorical, validate_args: bool | None) -> None:
        self._categorical = categorical
        shape = tuple(categorical.param_shape)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _validate_parameters(self) -> None:
        Distribution._validate_parameters(self._categorical)

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._categorical.param_shape
