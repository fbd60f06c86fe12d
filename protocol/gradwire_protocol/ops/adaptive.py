"""Steps of the optimizers beyond the common four; :mod:`.optimizer` has those, and says what all have in common."""

from __future__ import annotations

from ..costs import Cost, OpCall, numel
from ..errors import ArgumentError, DTypeError, ShapeError
from ..meta import Inference, Meta, nothing
from ..table import Float, Tensor, op
from .optimizer import check_states


@op(control=True, results=0, exposed=())
def adamax_step(
    params: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    lr: Float,
    beta1: Float = 0.9,
    beta2: Float = 0.999,
    eps: Float = 1e-8,
    weight_decay: Float = 0.0,
    step: Float = 1,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of Adamax: Adam with the largest gradient, decaying, in place of the second moment (Kingma and Ba 2015).
    ``step`` counts from 1."""
    check_states("adamax_step", params, exp_avgs, exp_infs)
    return nothing()


@op(control=True, results=0, exposed=())
def nadam_step(
    params: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    lr: Float,
    beta1: Float = 0.9,
    beta2: Float = 0.999,
    eps: Float = 1e-8,
    weight_decay: Float = 0.0,
    step: Float = 1,
    mu: Float = 0.0,
    mu_next: Float = 0.0,
    mu_product: Float = 0.0,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of NAdam: Adam with Nesterov's momentum (Dozat 2016).

    ``mu`` is the momentum of this step, ``mu_next`` that of the next, ``mu_product`` that of all so far, multiplied.
    """
    check_states("nadam_step", params, exp_avgs, exp_avg_sqs)
    return nothing()


@op(control=True, results=0, exposed=())
def radam_step(
    params: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    lr: Float,
    beta1: Float = 0.9,
    beta2: Float = 0.999,
    eps: Float = 1e-8,
    weight_decay: Float = 0.0,
    step: Float = 1,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of RAdam: Adam whose first steps, of which the second moment is not known well, are plain momentum
    (Liu et al. 2020). ``step`` counts from 1."""
    check_states("radam_step", params, exp_avgs, exp_avg_sqs)
    return nothing()


@op(control=True, results=0, exposed=())
def adadelta_step(
    params: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    lr: Float = 1.0,
    rho: Float = 0.9,
    eps: Float = 1e-6,
    weight_decay: Float = 0.0,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of Adadelta (Zeiler 2012)."""
    check_states("adadelta_step", params, square_avgs, acc_deltas)
    return nothing()


@op(control=True, results=0, exposed=())
def rprop_step(
    params: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    eta_minus: Float = 0.5,
    eta_plus: Float = 1.2,
    smallest: Float = 1e-6,
    largest: Float = 50,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of resilient backpropagation (Riedmiller and Braun 1993): a step size per element, which shrinks where
    the gradient's sign changes and grows elsewhere, between ``smallest`` and ``largest``."""
    check_states("rprop_step", params, prevs, step_sizes)
    return nothing()


@op(control=True, results=0, exposed=())
def asgd_step(
    params: list[Tensor],
    axs: list[Tensor],
    eta: Float,
    mu: Float = 1.0,
    lambd: Float = 1e-4,
    weight_decay: Float = 0.0,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of averaged stochastic gradient descent (Polyak and Juditsky 1992): of length ``eta``; the averages
    ``axs`` move towards the parameters by the share ``mu``."""
    check_states("asgd_step", params, axs)
    return nothing()


@op(control=True, results=0, exposed=())
def adafactor_step(
    params: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    lr: Float,
    beta2_decay: Float = -0.8,
    eps1: Float | None = None,
    eps2: Float = 1e-3,
    d: Float = 1.0,
    weight_decay: Float = 0.0,
    step: Float = 1,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of Adafactor (Shazeer and Stern 2018). A matrix keeps the second moments of its rows and columns
    (its last two dimensions), a vector those of its elements in ``variances``.

    ``eps1`` is by default the dtype's. ``step`` counts from 1.
    """
    if not len(params) == len(row_vars) == len(col_vars) == len(variances):
        raise ArgumentError(
            f"adafactor_step: {len(params)} parameters come with states of {len(row_vars)}, {len(col_vars)} and "
            f"{len(variances)} tensors"
        )
    for i, param in enumerate(params):
        if not param.dtype.is_floating_point:
            raise DTypeError(f"adafactor_step: a parameter of dtype {param.dtype.name} cannot be optimized")
        shape = param.shape
        if param.ndim > 1:
            _fits(param, row_vars[i], (*shape[:-1], 1))
            _fits(param, col_vars[i], (*shape[:-2], 1, shape[-1]))
        else:
            _fits(param, variances[i], shape)
    return nothing()


def _fits(param: Meta, state: Meta | None, shape: tuple[int, ...]) -> None:
    if state is None or state.shape != shape or state.dtype is not param.dtype:
        raise ArgumentError(
            f"adafactor_step: a {param.dtype.name} state of shape {list(shape)} is needed, not {state!r}"
        )


def _newton_schulz(c: OpCall) -> int:
    return sum(3 * c.ns_steps * numel(m) * min(m.shape) for m in c.params if m.ndim == 2)


@op(control=True, results=0, exposed=(), cost=Cost(_newton_schulz))
def muon_step(
    params: list[Tensor],
    momentum_buffers: list[Tensor],
    lr: Float,
    weight_decay: Float = 0.1,
    momentum: Float = 0.95,
    a: Float = 3.4445,
    b: Float = -4.775,
    c: Float = 2.0315,
    eps: Float = 1e-7,
    ns_steps: int = 5,
    nesterov: bool = True,
    adjust: str = "original",
    skip: Tensor | None = None,
) -> Inference:
    """One step of Muon (Jordan et al. 2024): the momentum of a matrix, brought close to an orthogonal matrix by
    ``ns_steps`` iterations after Newton and Schulz with the coefficients ``a``, ``b`` and ``c``, in bfloat16.

    ``adjust`` tells how the learning rate follows the matrix's shape: ``"original"`` or ``"match_rms_adamw"``.
    """
    check_states("muon_step", params, momentum_buffers)
    for param in params:
        if not param.dtype.is_floating_point:
            raise DTypeError(f"muon_step: a parameter of dtype {param.dtype.name} cannot be optimized")
        if param.ndim != 2:
            raise ShapeError(f"muon_step: a parameter is a matrix, this one has shape {list(param.shape)}")
    if adjust not in ("original", "match_rms_adamw"):
        raise ArgumentError(f"muon_step: adjust must be 'original' or 'match_rms_adamw', not {adjust!r}")
    if not 0 <= ns_steps < 100:
        raise ArgumentError(f"muon_step: ns_steps must be from 0 to 99, not {ns_steps}")
    return nothing()
