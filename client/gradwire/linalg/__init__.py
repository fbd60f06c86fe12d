"""``gradwire.linalg``: linear algebra under PyTorch's names. Matrices are the last two dimensions, the others are
batches.

Several results are named tuples. Errors that depend on values, such as the inverse of a singular matrix, raise
:class:`LinAlgError` when the result is read.
"""

from __future__ import annotations

from gradwire_protocol.errors import LinAlgError
from gradwire_protocol.out import Out as _Out

from .._core.composed.matrices import (
    cond,
    cross,
    diagonal,
    matmul,
    matrix_norm,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    vander,
    vecdot,
    vector_norm,
)
from .._core.dispatch.out_argument import accepts_out as _accepts_out
from .._core.surface.methods import name_after as _name_after
from .._core.surface.unsupported import explaining as _explaining
from .factorization import (
    cholesky,
    cholesky_ex,
    householder_product,
    ldl_factor,
    ldl_factor_ex,
    ldl_solve,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
)
from .solving import inv, inv_ex, lstsq, pinv, solve, solve_ex, solve_triangular, tensorinv, tensorsolve
from .spectral import det, eig, eigh, eigvals, eigvalsh, matrix_exp, slogdet, svd, svdvals

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot",
    "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv",
    "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

_OUTS = dict.fromkeys(
    ("det", "inv", "ldl_factor", "lu_factor", "matrix_norm", "multi_dot", "norm", "slogdet", "vecdot", "vector_norm"),
    _Out.EXACT,
)
_OUTS["cross"] = _Out.EXACT | _Out.APART
for _name in __all__[1:]:
    if _name != "diagonal":  # a view
        globals()[_name] = _accepts_out(globals()[_name], f"linalg.{_name}", _OUTS.get(_name, _Out.PLAIN))
_name_after(__name__, globals())

__getattr__ = _explaining(__name__)
