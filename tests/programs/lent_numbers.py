"""PyTorch that draws gradwire's random numbers, so that a program computes the same under both libraries.

A program is not changed for that, and neither is gradwire. In this process, PyTorch's functions that draw ask those of
gradwire with the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import gradwire

IN_PLACE = ("uniform_", "normal_", "bernoulli_", "exponential_")
"""Methods that fill a tensor."""

LIKE = ("rand_like", "randn_like")
"""Functions that make a tensor of another one's shape."""

MAKING = ("rand", "randn", "randint", "randperm")
"""Functions that make a tensor of a given shape."""

DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")
"""Functions that take out parts of a tensor by factors that do not depend on it."""


def gradwires(value: Any) -> Any:
    """A dtype or generator as gradwire's; anything else as it is."""
    if isinstance(value, torch.dtype):
        return getattr(gradwire, str(value).removeprefix("torch."))
    if isinstance(value, torch.Generator):
        return GENERATORS.setdefault(value, gradwire.Generator().manual_seed(value.initial_seed()))
    return value


GENERATORS: dict[torch.Generator, Any] = {}
"""The generator of gradwire for each of PyTorch's, which has its seed."""


def torchs(tensor: Any, like: torch.Tensor | None = None, device: Any = None) -> torch.Tensor:
    """A tensor of gradwire as PyTorch's."""
    found = torch.from_numpy(tensor.detach().numpy().copy())
    return found.to(device) if like is None else found.to(like.device, like.dtype)


def blank(like: torch.Tensor) -> Any:
    """gradwire's tensor with the shape and dtype of PyTorch's."""
    return gradwire.empty(tuple(like.shape), dtype=gradwires(like.dtype))


def filling(name: str) -> Callable[..., torch.Tensor]:
    def filled(self: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
        named = {key: gradwires(value) for key, value in named.items()}
        with torch.no_grad():
            return self.copy_(torchs(getattr(blank(self), name)(*args, **named)))

    return filled


def making(name: str) -> Callable[..., torch.Tensor]:
    def made(*args: Any, requires_grad: bool = False, **named: Any) -> torch.Tensor:
        passed = {key: gradwires(value) for key, value in named.items() if key not in ("device", "pin_memory")}
        drawn = getattr(gradwire, name)(*args, **passed)
        return torchs(drawn, device=named.get("device")).requires_grad_(requires_grad)

    return made


def alike(name: str) -> Callable[..., torch.Tensor]:
    def made(like: torch.Tensor, **named: Any) -> torch.Tensor:
        drawn = getattr(gradwire, name)(blank(like), **{k: gradwires(v) for k, v in named.items()})
        return torchs(drawn, device=like.device)

    return made


def chosen(input: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> torch.Tensor:
    weights = gradwire.from_numpy(input.detach().cpu().numpy())
    drawn = gradwire.multinomial(weights, num_samples, replacement, generator=gradwires(generator))
    return torchs(drawn, device=input.device)


def dropping(name: str) -> Callable[..., torch.Tensor]:
    def dropped(
        input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:  # fmt: skip
        if not training:
            return input
        factors = getattr(gradwire.nn.functional, name)(gradwire.ones(tuple(input.shape)), p, True)
        return input * torchs(factors, input)

    return dropped


def attending(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def attended(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    ) -> torch.Tensor:  # fmt: skip
        if not dropout_p:
            return original(query, key, value, attn_mask, 0.0, is_causal, scale=scale)
        # Equal weights of the rows of an identity come out as the weights, with those gone that dropout takes.
        length = key.shape[-2]
        equal = [gradwire.zeros(tuple(each.shape)) for each in (query, key)]
        identity = gradwire.eye(length).expand(*key.shape[:-2], length, length)
        attend = gradwire.nn.functional.scaled_dot_product_attention
        factors = torchs(attend(*equal, identity, dropout_p=dropout_p) * length, query)
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return (scores.softmax(-1) * factors) @ value

    return attended


def in_random_order(self: Any) -> Iterator[int]:
    sampler = gradwire.utils.data.RandomSampler(
        self.data_source, self.replacement, self._num_samples, gradwires(self.generator)
    )
    return iter(sampler)


def seeding(original: Callable[[int], Any]) -> Callable[[int], Any]:
    def seeded(seed: int) -> Any:
        gradwire.manual_seed(seed)
        return original(seed)

    return seeded


@contextmanager
def forking(*args: Any, **named: Any) -> Iterator[None]:
    with gradwire.random.fork_rng():
        yield


@contextmanager
def numbers_of_gradwire() -> Iterator[None]:
    """Within this context PyTorch draws gradwire's numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name in IN_PLACE:
            patch.setattr(torch.Tensor, name, filling(name))
        for name in MAKING:
            patch.setattr(torch, name, making(name))
        for name in LIKE:
            patch.setattr(torch, name, alike(name))
        for name in DROPOUTS:
            patch.setattr(torch.nn.functional, name, dropping(name))
        functional = torch.nn.functional
        attend = functional.scaled_dot_product_attention
        patch.setattr(functional, "scaled_dot_product_attention", attending(attend))
        patch.setattr(torch, "multinomial", chosen)
        patch.setattr(torch.utils.data.RandomSampler, "__iter__", in_random_order)
        patch.setattr(torch, "manual_seed", seeding(torch.manual_seed))
        patch.setattr(torch.random, "fork_rng", forking)
        yield
