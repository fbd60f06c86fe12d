"""Covariances and correlations."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import BOOLEAN, INTEGRAL
from gradwire_protocol.errors import ArgumentError, DTypeError

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor


def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Any:
    """The covariances of variables (rows) over observations (columns).

    ``fweights`` says how often each observation was made, ``aweights`` how much it counts.

    Raises:
        ArgumentError: for weights that do not fit the observations.
        DTypeError: for frequencies that are no integers, weights that are not floating point.
    """
    if input.ndim > 2:
        raise ArgumentError(f"cov takes a matrix or a vector, got shape {list(input.shape)}")
    if input.dtype.category == BOOLEAN:
        raise DTypeError("cov takes numbers, not bools")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    count = x.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        if weights.ndim > 1 or weights.numel() != count:
            raise ArgumentError(
                f"cov: {name} has one element for each of {count} observations, its shape is {list(weights.shape)}"
            )
        if (weights.dtype.category == INTEGRAL) != (name == "fweights") or weights.is_complex():
            raise DTypeError(f"cov: {name} cannot be {weights.dtype.name}")
    fweights, aweights = (None if w is None else call("nonnegative", w) for w in (fweights, aweights))
    weights = fweights
    if aweights is not None:
        weights = aweights if fweights is None else fweights * aweights
    if weights is None:
        mean, total = x.sum(1, keepdim=True) / count, count
        freedom: Any = max(count - correction, 0)
    else:
        total = weights.sum()
        mean = (x * weights).sum(1, keepdim=True) / total
        if aweights is None:
            freedom = total - correction
        else:
            freedom = total - correction * (weights * aweights).sum() / total
        freedom = freedom.clamp(min=0)
    centred = x - mean
    right = centred if weights is None else centred * weights
    right = right.mT.conj() if right.is_complex() else right.mT
    found = (centred @ right.to(centred.dtype)) / freedom
    return found.squeeze()


def corrcoef(input: Tensor) -> Any:
    """The correlation coefficients of variables (rows) over observations (columns)."""
    if input.ndim > 2:
        raise ArgumentError(f"corrcoef takes a matrix or a vector, got shape {list(input.shape)}")
    found = cov(input)
    if found.ndim == 0:
        return found / found
    deviations = (found.real if found.is_complex() else found).diagonal().sqrt()
    found = found / deviations.unsqueeze(-1) / deviations.unsqueeze(0)
    if found.is_complex():
        return call("complex", found.real.clamp(-1, 1), found.imag.clamp(-1, 1))
    return found.clamp(-1, 1)


offer(cov)
offer(corrcoef)
