"""Spectral normalization: a weight divided by its largest singular value.

Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018). The singular value is followed by
power iteration, a step each forward in training. This is the older form, which sets the weight before each forward;
:func:`gradwire.nn.utils.parametrizations.spectral_norm` is the newer one.
"""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..._core.context.modes import no_grad
from ..._core.dispatch.dispatch import call
from ..._core.modules.module import Module, SomeModule
from ..._core.modules.parameter import Parameter
from ..._core.surface.creation import randn
from ..._core.tensor.tensor import Tensor
from .. import functional as F
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix with a row for each index of ``dim``."""
    if dim != 0:
        weight = call("permute", weight, (dim, *(d for d in range(weight.ndim) if d != dim)))
    return call("reshape", weight, (weight.shape[0], -1))


def direction(size: int, like: Tensor, eps: float) -> Tensor:
    """A random unit vector of the dtype and on the device of a weight."""
    with no_grad():
        return F.normalize(randn(size, dtype=like.dtype, device=like.device), dim=0, eps=eps)


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Turn ``u`` and ``v``, in place, towards the singular vectors of the largest singular value."""
    with no_grad():
        for _ in range(steps):
            call("copy_", u, F.normalize(call("mv", matrix, v), dim=0, eps=eps))
            call("copy_", v, F.normalize(call("mv", call("t", matrix), u), dim=0, eps=eps))


class SpectralNorm:
    """A hook before forward that computes the weight."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ArgumentValueError(f"n_power_iterations must be positive, not {n_power_iterations}")
        self.name: str = name
        self.dim: int = dim
        self.n_power_iterations: int = n_power_iterations
        self.eps: float = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalized weight; with ``do_power_iteration`` the singular vectors make a step first."""
        weight, u, v = (getattr(module, self.name + part) for part in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    call("copy_", v, F.normalize(call("mv", call("t", matrix), u), dim=0, eps=self.eps))
                    call("copy_", u, F.normalize(call("mv", matrix, v), dim=0, eps=self.eps))
            # Two forwards before one backward change the vectors under the first's feet.
            u, v = call("clone", u), call("clone", v)
        return call("div", weight, call("dot", u, call("mv", matrix, v)))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def note_version(self, module: Any, state: Any, prefix: str, metadata: dict[str, Any]) -> None:
        """Tell in the state dict's metadata which names it has."""
        metadata.setdefault("spectral_norm", {})[f"{self.name}.version"] = self._version

    def upgrade(
        self, state: dict[str, Any], prefix: str, metadata: dict[str, Any], strict: bool, missing: list[str], *_: Any
    ) -> None:
        """Bring a state dict of before version 1 to today's names: it has the normalized weight in place of ``v``."""
        if (metadata.get("spectral_norm", {}).get(f"{self.name}.version") or 0) >= 1:
            return
        key = prefix + self.name
        if key not in state and all(key + part in state for part in ("_orig", "_u", "_v")):
            return  # today's names, without the metadata
        lacking = [key + part for part in ("_orig", "", "_u") if key + part not in state]
        if lacking:
            missing.extend(lacking if strict else ())
            return
        with no_grad():
            weight, u = state[key + "_orig"], state[key + "_u"]
            sigma = call("mean", call("div", weight, state.pop(key)))
            matrix = as_matrix(weight, self.dim)
            # The v with which u is a fixed point of the iteration, as long as makes sigma what it was.
            square = call("linalg_pinv", call("matmul", call("t", matrix), matrix))
            v = call("mv", square, call("mv", call("t", matrix), u))
            state[key + "_v"] = call("mul", v, call("div", sigma, call("dot", u, call("mv", matrix, v))))


def spectral_norm(
    module: SomeModule, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> SomeModule:
    """Divide a weight by its largest singular value before each forward; returns the module.

    ``{name}_orig`` is trained in its place; ``{name}_u`` and ``{name}_v`` are the singular vectors.

    Args:
        n_power_iterations: how many steps towards the singular vectors each forward makes in training.
        eps: for dividing by norms.
        dim: which dimension has the rows; by default 1 for transposed convolutions, else 0.

    Raises:
        ArgumentError: when the weight is normalized already.
        ArgumentValueError: when it is None.
    """
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    if hook_of(module, SpectralNorm, name) is not None:
        raise ArgumentError(f"{name!r} has spectral normalization already")
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ArgumentValueError(f"{name!r} is None, it cannot be normalized")
    rows, columns = as_matrix(weight.detach(), dim).shape
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", direction(rows, weight, eps))
    module.register_buffer(f"{name}_v", direction(columns, weight, eps))
    module.register_forward_pre_hook(hook)
    module.register_state_dict_post_hook(hook.note_version)
    module._register_load_state_dict_pre_hook(hook.upgrade)
    return module


def hook_of(module: Any, kind: type[Any], name: str) -> int | None:
    """The number of the hook of this kind that makes a weight before each call."""
    hooks: dict[int, Any] = module._forward_pre_hooks
    return next((i for i, hook in hooks.items() if isinstance(hook, kind) and hook.name == name), None)


def remove_spectral_norm(module: SomeModule, name: str = "weight") -> SomeModule:
    """Make the weight an ordinary parameter again, with its normalized value; returns the module.

    Raises:
        ArgumentValueError: when it is not normalized.
    """
    number = hook_of(module, SpectralNorm, name)
    if number is None:
        raise ArgumentValueError(f"{name!r} of {type(module).__name__} has no spectral normalization")
    hook = module._forward_pre_hooks.pop(number)
    with no_grad():
        weight = hook.compute_weight(module, False)
    for part in ("", "_u", "_v", "_orig"):
        delattr(module, name + part)
    module.register_parameter(name, Parameter(weight))
    for number, (noted, _) in list(module._state_dict_hooks.items()):
        if getattr(noted, "__self__", None) is hook:
            del module._state_dict_hooks[number]
    for number, added in list(module._load_state_dict_pre_hooks.items()):
        if getattr(added, "__self__", None) is hook:
            del module._load_state_dict_pre_hooks[number]
    return module


__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]
