"""What binomial distributions with a tensor of numbers of trials share."""

from __future__ import annotations

from typing import Any

from .outcomes import Outcomes, one_of
from .parameters import broadcast_all


class Counts(Outcomes):
    """Numbers of trials ``total_count``, which broadcast with the probabilities."""

    total_count: Any

    def _count(self, total_count: Any, probs: Any, logits: Any) -> None:
        self._name = one_of(self, probs, logits)
        count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = count if count.dtype is given.dtype else count.to(given.dtype)
        setattr(self, self._name, given)
