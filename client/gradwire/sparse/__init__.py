"""``torch.sparse``: what of it takes strided tensors. There are no sparse ones, so the rest is refused at the call."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.dispatch.dispatch import call
from .._core.surface.layout_names import need_sparse, refusing
from .._core.surface.unsupported import explaining as _explaining
from .._core.tensor.tensor import Tensor

_WHY = "there are no sparse tensors"


def mm(sparse: Tensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices, both strided here.

    Raises:
        Unsupported: for another reduction than ``"sum"``, which is for sparse matrices.
    """
    if reduce != "sum":
        need_sparse("sparse.mm with reduce")
    return call("mm", sparse, dense)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)``, all strided here."""
    return call("addmm", mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> NoReturn:
    """Refused: it is for sparse tensors.

    Raises:
        ArgumentError: always, as PyTorch does for strided tensors.
    """
    need_sparse("sparse.sum")


class check_sparse_tensor_invariants:
    """Whether new sparse tensors are checked. There are none, so it is remembered and has no effect."""

    state = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """What was set last."""
        return check_sparse_tensor_invariants.state

    @staticmethod
    def enable() -> None:
        """Remember that checks are wanted."""
        check_sparse_tensor_invariants.state = True

    @staticmethod
    def disable() -> None:
        """Remember that no checks are wanted."""
        check_sparse_tensor_invariants.state = False

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        check_sparse_tensor_invariants.state = self._wanted

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants.state = self._before.pop()


softmax, log_softmax, sampled_addmm, spdiags, spsolve, as_sparse_gradcheck, to_sparse_semi_structured = (
    refusing(f"torch.sparse.{name}", _WHY)
    for name in (
        "softmax", "log_softmax", "sampled_addmm", "spdiags", "spsolve", "as_sparse_gradcheck",
        "to_sparse_semi_structured",
    )
)  # fmt: skip

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "spdiags", "spsolve", "sum", "to_sparse_semi_structured",
]  # fmt: skip
__getattr__ = _explaining(__name__)
