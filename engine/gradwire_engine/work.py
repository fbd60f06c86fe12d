"""How much work an op is, from what is known before it runs; what is too much is refused.

Work is counted in steps: one multiply-add, or as much time as one takes, so that a machine of 20 billion steps a second
needs five seconds for 100 billion. The table below has the ops that take more than a step for each element of their
operands and results; all others take one. It is a bound on what one record can cost, not a forecast.

Memory bounds how many elements an ordinary operand has. It does not bound those of an operand whose elements share
memory (``expand``, overlapping ``as_strided``): :data:`SHARED` is what each of these costs. Products that BLAS does not
compute take :data:`SLOW` times their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from gradwire_protocol.dtypes import FLOATING
from gradwire_protocol.errors import TimeExceeded
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.ops.contraction import effective, label_sizes, parse, plan, tensordot_labels
from gradwire_protocol.ops.likelihoods import alignment_states
from gradwire_protocol.table import Op

from .memory import MemoryAccount


class Call:
    """One call of an op, as its rule saw it: parameters by name, metas for tensors, and the metas of the results."""

    def __init__(self, op: Op, values: list[Any], inferred: Inference) -> None:
        self._at = op.positions
        self._values = values
        self.outs = inferred.outs or tuple(values[:1])  # an in-place form has its first operand for a result

    def __getattr__(self, name: str) -> Any:
        return self._values[self._at[name]]

    @property
    def metas(self) -> list[Meta]:
        """All operands."""
        flat = [v for value in self._values for v in (value if type(value) in (list, tuple) else (value,))]
        return [v for v in flat if isinstance(v, Meta)]

    @property
    def made(self) -> int:
        """Elements of the first result."""
        return _count(self.outs[0])

    @property
    def elements(self) -> int:
        """Elements of all operands and results."""
        return sum(_count(m) for m in (*self.metas, *self.outs) if isinstance(m, Meta))


Cost = Callable[[Call], int]

SHARED: Final = 200
"""Steps for an element that has no memory of its own. An array library passes over a nanosecond's worth of elements
one by one, so the default limit allows about a minute of them."""

SLOW: Final = 20
"""How many times the steps of BLAS the loops take that array libraries have for integers, and for matrices whose
elements share memory."""


def _count(tensor: Meta) -> int:
    return max(tensor.numel, 0)


def _held(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Places in memory that elements of this layout can occupy, at most as many as there are elements."""
    reach = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, stride, strict=True))
    return min(prod(shape), reach)


def shared(tensor: Meta) -> int:
    """Elements of a tensor beyond the places in memory that it occupies."""
    return _count(tensor) - _held(tensor.shape, tensor.stride) if tensor.numel > 0 else 0


def _blas_computes(matrix: Meta) -> bool:
    rows = matrix.shape[-2:], matrix.stride[-2:]
    return matrix.dtype.category >= FLOATING and (matrix.numel <= 0 or _held(*rows) == prod(rows[0]))


def _last(tensor: Meta) -> int:
    return tensor.shape[-1] if tensor.shape else 1


def _product(left: str) -> Cost:
    """A matrix product: each element of the result sums over the last dimension of its left operand."""
    return lambda c: c.made * _last(getattr(c, left))


def _contraction(operands: list[Meta], labels: Any, output: Any) -> int:
    sizes = label_sizes(labels, [o.shape for o in operands])
    varying = [effective(own, o.shape, sizes) for own, o in zip(labels, operands, strict=True)]
    if len(operands) < 2:
        return 0
    return sum(step.size * prod(sizes[label] for label in step.summed) for step in plan(varying, output, sizes))


def _einsum(c: Call) -> int:
    return _contraction(c.operands, *parse(c.equation, [o.ndim for o in c.operands]))


def _tensordot(c: Call) -> int:
    return _contraction([c.self, c.other], *tensordot_labels(c.self, c.other, c.dims))


def _windows(made: int, weight: Meta) -> int:
    """Windows of a convolution: each element on the side of ``weight``'s first dimension meets all but that one."""
    return made * prod(weight.shape[1:])


def _weight_windows(c: Call) -> int:
    return _count(c.grad) * (c.self.shape[1] // max(c.groups, 1)) * prod(c.extents)


def _matrices(times: int, *names: str) -> Cost:
    """A decomposition: ``times`` the elements of its matrices (or of those named) times their smaller extent."""

    def cost(c: Call) -> int:
        chosen = [getattr(c, name) for name in names] or c.metas[:1]
        return times * sum(_count(m) * min(m.shape[-2:]) for m in chosen if m.ndim >= 2)

    return cost


def _solution(matrix: str, right: str) -> Cost:
    """A system of equations: the matrix is decomposed, and each column of the right-hand side takes its elements."""

    def cost(c: Call) -> int:
        a, b = getattr(c, matrix), getattr(c, right)
        return (_count(a) + max(_count(b), c.made)) * max(a.shape[-2:], default=1)

    return cost


def _attention(c: Call) -> int:
    pairs = _count(c.query) // max(_last(c.query), 1) * (c.key.shape[-2] if c.key.ndim > 1 else 1)
    return pairs * (_last(c.query) + _last(c.value))


def _steps_of_cells(c: Call) -> int:
    """A recurrent layer: at each step of the sequence all of its weights, for each member of the batch."""
    rows = _count(c.self) // max(_last(c.self), 1)
    return rows * (_count(c.w_ih) + _count(c.w_hh))


def _sorted(c: Call) -> int:
    given = max((_count(m) for m in c.metas), default=0)
    return c.elements + given * max(given, 1).bit_length()


def _pooled(dims: int) -> Cost:
    """A pooling: the elements of each window, of which there are as many as elements of the result."""

    def cost(c: Call) -> int:
        size = c.kernel_size
        window = size**dims if isinstance(size, int) else prod(size) ** (dims if len(size) == 1 else 1)
        return c.elements + c.made * window

    return cost


def _each(times: int) -> Cost:
    """Functions that take many steps for an element: series, continued fractions, iterations."""
    return lambda c: times * c.elements


def _newton_schulz(c: Call) -> int:
    return sum(3 * c.ns_steps * _count(m) * min(m.shape) for m in c.params if m.ndim == 2)


_LAYERS: Final = ("rnn_layer", "lstm_layer", "gru_layer")
_SORTS: Final = (
    "sort", "argsort", "msort", "topk", "unique", "unique_consecutive", "median", "nanmedian", "median_dim",
    "nanmedian_dim", "mode", "kthvalue", "quantile", "nanquantile", "randperm", "multinomial", "searchsorted",
    "bucketize", "fft_c2c", "fft_r2c", "fft_c2r", "histogramdd", "histogramdd_edges", "fractional_max_pool",
)  # fmt: skip

COSTS: Final[dict[str, Cost]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "linear"), _product("self")),
    "addmm": _product("mat1"),
    "addmv": _product("mat"),
    "baddbmm": _product("batch1"),
    "addbmm": lambda c: c.made * _count(c.batch1) // max(c.batch1.shape[-2], 1),
    "bilinear": lambda c: c.made * prod(c.weight.shape[1:]),
    "einsum": _einsum,
    "contract": lambda c: _contraction(c.operands, c.labels, c.output),
    "tensordot": _tensordot,
    **{f"conv{n}d": lambda c: _windows(c.made, c.weight) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": lambda c: _windows(_count(c.self), c.weight) for n in (1, 2, 3)},
    "convolution": lambda c: _windows(c.made, c.weight),
    "convolution_input": lambda c: _windows(_count(c.grad), c.weight),
    "convolution_weight": _weight_windows,
    "scaled_dot_product_attention": _attention,
    "attention": _attention,
    "attention_backward": lambda c: 3 * _attention(c),
    **{f"{kind}_pool{n}d": _pooled(n) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _pooled(n) for n in (1, 2, 3)},
    "cdist": lambda c: c.made * _last(c.x1),
    "pdist": lambda c: c.made * _last(c.self),
    **dict.fromkeys(_LAYERS, _steps_of_cells),
    **dict.fromkeys([f"{name}_backward" for name in _LAYERS], lambda c: 3 * _steps_of_cells(c)),
    "ctc_loss": lambda c: 4 * _count(c.self) // max(_last(c.self), 1) * alignment_states(
        c.self.shape[0], _last(c.targets)
    ),
    **dict.fromkeys(
        ("det", "slogdet", "inverse", "linalg_cholesky", "linalg_cholesky_ex", "linalg_qr", "geqrf", "linalg_lu",
         "linalg_lu_factor_ex", "lu_unpack", "linalg_ldl_factor_ex", "linalg_inv_ex", "cholesky_inverse"),
        _matrices(1),
    ),
    "linalg_householder_product": _matrices(2),
    **dict.fromkeys(("linalg_eigvalsh", "linalg_svdvals"), _matrices(4)),
    **dict.fromkeys(("linalg_eigh", "linalg_svd", "linalg_eigvals", "linalg_pinv", "cofactor"), _matrices(10)),
    **dict.fromkeys(("linalg_eig", "matrix_exp"), _matrices(25)),
    **dict.fromkeys(("linalg_solve", "linalg_solve_ex", "linalg_lu_solve", "linalg_solve_triangular"),
                    _solution("self", "other")),
    "linalg_ldl_solve": _solution("self", "other"),
    "ormqr": _solution("self", "other"),
    "triangular_solve": _solution("A", "self"),
    "cholesky_solve": _solution("input2", "self"),
    "linalg_lstsq": lambda c: 4 * _solution("self", "other")(c),
    "muon_step": _newton_schulz,
    **dict.fromkeys(_SORTS, _sorted),
    "multilabel_margin_loss": lambda c: _count(c.self) * _last(c.self),
    "multilabel_margin_slopes": lambda c: _count(c.self) * _last(c.self),
    **dict.fromkeys(("igamma", "igammac", "special_zeta", "polygamma"), _each(100)),
    **dict.fromkeys(("gcd", "lcm", "sample_von_mises", "standard_gamma", "sample_dirichlet", "poisson", "binomial"),
                    _each(60)),
}  # fmt: skip
"""Steps by the name of the op; an in-place form is found by the name of its base."""


PRODUCTS: Final = frozenset({
    "matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "linear", "addmm", "addmv", "baddbmm", "addbmm", "bilinear",
    "einsum", "contract", "tensordot",
})  # fmt: skip
"""Ops of the table that BLAS computes where it can."""


def steps(op: Op, values: list[Any], inferred: Inference) -> int:
    """How many steps an op takes; ``values`` are those that its rule saw."""
    call = Call(op, values, inferred)
    name = op.name if op.base is None else op.base.name
    cost = COSTS.get(name)
    count = call.elements if cost is None else max(cost(call), 0)
    metas = call.metas
    if name in PRODUCTS and not all(map(_blas_computes, metas)):
        count *= SLOW
    return count + SHARED * sum(map(shared, metas))


def check(op: Op, values: list[Any], inferred: Inference, account: MemoryAccount) -> None:
    """Check that an op is no more work than it may be.

    Raises:
        LimitExceeded: when already its results are too large.
        TimeExceeded: naming the work, the limit and its setting.
    """
    most = account.limits.max_op_work
    if not most or inferred.offsets is not None:
        return
    count = steps(op, values, inferred)
    if count > most:
        account.check_op(op.name, inferred.outs, inferred.scratch)
        check_steps(op.name, count, most)


def check_steps(name: str, count: int, most: int) -> None:
    """Check a count that is known.

    Raises:
        TimeExceeded: naming the work, the limit and its setting.
    """
    if most and count > most:
        raise TimeExceeded(
            f"{name} would take {count:,} steps of work, one op may take {most:,} (GRADWIRE_MAX_OP_WORK)",
            setting="GRADWIRE_MAX_OP_WORK", limit=most, value=count,
        )  # fmt: skip
