"""``torch.nn.utils.parametrizations``: weights that are orthogonal, of norm 1, or a length and a direction."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentValueError, IndexOutOfRange, Unsupported

from ..._core.composed.decompositions import geqrf
from ..._core.context.modes import no_grad
from ..._core.dispatch.dispatch import call
from ..._core.modules.module import Module, SomeModule
from ..._core.surface.creation import eye, randn, zeros
from ..._core.surface.creation_like import zeros_like
from ..._core.tensor.tensor import Tensor
from .. import functional as F
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .parametrize import register_parametrization
from .spectral_normalization import as_matrix, direction, power_iteration
from .weight_normalization import norm_except_dim, normed

_MAPS = ("matrix_exp", "cayley", "householder")


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight of length ``weight_g`` in the direction of ``weight_v``."""
        return normed(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Any, Any]:
        """(length, the weight itself as its direction)."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: SomeModule, name: str = "weight", dim: int | None = 0) -> SomeModule:
    """Train a weight as its length, ``original0``, and its direction, ``original1``; returns the module.

    Salimans and Kingma, "Weight Normalization" (2016). State dicts of :func:`gradwire.nn.utils.weight_norm` fit.

    Args:
        dim: which dimension has lengths of its own; None has one length for all.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def older_names(state: dict[str, Any], prefix: str, *_: Any) -> None:
        parts = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(part in state for part in parts):
            for i, part in enumerate(parts):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(part)

    module._register_load_state_dict_pre_hook(older_names)
    return module


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexOutOfRange(f"there is no dimension {dim} in a weight of shape {list(weight.shape)}")
        if n_power_iterations <= 0:
            raise ArgumentValueError(f"n_power_iterations must be positive, not {n_power_iterations}")
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            self.register_buffer("_u", direction(matrix.shape[0], weight, eps))
            self.register_buffer("_v", direction(matrix.shape[1], weight, eps))
            power_iteration(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight divided by its largest singular value."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # Two forwards before one backward change the vectors under the first's feet.
        u, v = call("clone", self._u), call("clone", self._v)
        return call("div", weight, call("vdot", u, call("mv", matrix, v)))

    def right_inverse(self, value: Tensor) -> Any:
        """The value itself."""
        return value


def spectral_norm(
    module: SomeModule, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> SomeModule:
    """Divide a weight by its largest singular value, which power iteration follows; returns the module.

    Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018).

    Args:
        n_power_iterations: how many steps towards the singular vectors each use of the weight makes in training.
        eps: for dividing by norms.
        dim: which dimension has the rows; by default 1 for transposed convolutions, else 0.

    Raises:
        ArgumentValueError: when there is no such tensor.
    """
    weight = _weight_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _weight_of(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentValueError(f"{type(module).__name__} has no parameter or buffer named {name!r}")
    return weight


class _Orthogonal(Module):
    """Maps matrices to orthogonal ones, tall or wide. With a base, relative to it: Lezcano-Casado, "Trivializations
    for gradient-based optimization on manifolds" (2019)."""

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ArgumentValueError("reflectors of complex numbers do not determine a matrix: use another map")
        self.shape = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """The orthogonal matrix that belongs to any matrix."""
        wide = X.shape[-2] < X.shape[-1]
        if wide:
            X = call("transpose", X, -2, -1)
        found = self._reflected(X) if self.orthogonal_map == "householder" else self._rotated(X)
        if hasattr(self, "base"):
            found = call("matmul", self.base, found)
        return call("transpose", found, -2, -1) if wide else found

    def _rotated(self, X: Any) -> Any:
        """By a skew-symmetric matrix, made of what is below the diagonal."""
        n, k = X.shape[-2:]
        X = call("tril", X)
        if n != k:
            X = call("cat", [X, zeros(*X.shape[:-2], n, n - k, dtype=X.dtype, device=X.device)], -1)
        skew = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            found = call("matrix_exp", skew)
        else:
            identity = eye(n, dtype=X.dtype, device=X.device)
            found = call("linalg_solve", identity - skew / 2, identity + skew / 2)
        return found[..., :k]

    def _reflected(self, X: Any) -> Any:
        """By reflections along the columns below the diagonal; the diagonal has signs, which are not trained."""
        reflectors = call("tril", X, -1)
        tau = 2.0 / (1.0 + (reflectors * reflectors).sum(-2))
        found = call("linalg_householder_product", reflectors, tau)
        return found * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Any:
        """What gives this matrix, made orthogonal where it is not."""
        if tuple(Q.shape) != self.shape:
            raise ArgumentValueError(f"the weight has shape {list(self.shape)}, not {list(Q.shape)}")
        with no_grad():
            return self._based(Q) if hasattr(self, "base") else self._unreflected(Q)

    def _unreflected(self, Q: Any) -> Any:
        if self.orthogonal_map != "householder":
            raise Unsupported(f"without use_trivialization a map by {self.orthogonal_map} has no inverse")
        wide = Q.shape[-2] < Q.shape[-1]
        packed, tau = _packed_qr(call("transpose", Q, -2, -1) if wide else Q)
        diagonal = packed.diagonal(dim1=-2, dim2=-1)
        signs = diagonal.sign()
        diagonal.copy_(call("where", tau == 0, -signs, signs))
        return call("transpose", packed, -2, -1) if wide else packed

    def _based(self, Q: Any) -> Any:
        """Take a matrix as the base; what stands for it is then minus the identity."""
        wide = Q.shape[-2] < Q.shape[-1]
        tall = call("transpose", Q, -2, -1) if wide else Q
        n, k = tall.shape[-2:]
        if n != k:
            filling = randn(*tall.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            tall = call("cat", [tall, filling], -1)
        self.base = _orthonormal(tall)
        found = zeros_like(Q)
        found.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return found


def _packed_qr(A: Any) -> Any:
    return geqrf(A)


def _orthonormal(A: Any) -> Any:
    """The factor Q of A, R having a positive diagonal: of an orthogonal matrix, itself."""
    q, r = call("linalg_qr", A)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: SomeModule, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> SomeModule:
    """Keep a weight orthogonal, its rows or columns orthonormal whichever are fewer; returns the module.

    Args:
        orthogonal_map: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``: how any matrix becomes an orthogonal one.
            By default the first for square or complex weights, the last for others.
        use_trivialization: relative to the weight as it is now, at the cost of memory for it.

    Raises:
        ArgumentValueError: when there is no such tensor, or it is no matrix or batch of them.
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ArgumentValueError(f"only matrices can be orthogonal, the weight has shape {list(weight.shape)}")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ArgumentValueError(f"orthogonal_map is one of {', '.join(_MAPS)}, not {orthogonal_map!r}")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
