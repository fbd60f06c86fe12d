"""The optimizers: for each its options, what it keeps of a parameter, and the op that takes its step.

``foreach``, ``fused`` and ``capturable`` are accepted, and PyTorch's errors about them raised: a step is one record per
parameter group whatever they say.
"""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported

from .._core.optimizers.one_record import OneRecordOptimizer
from .._core.optimizers.optimizer import Params, Rate
from .._core.optimizers.options import INFINITY, check_ranges, number, single
from .._core.surface.creation import zeros
from .._core.surface.creation_like import empty_like, full_like
from .._core.tensor.tensor import Tensor


def _filled(param: Any, value: float) -> Any:
    """A tensor like a parameter. A complex number is two numbers to an optimizer, each with a value of its own."""
    return full_like(param, complex(value, value) if param.is_complex() else value)


class SGD(OneRecordOptimizer):
    """Against the gradient by ``lr`` times its length, with momentum if asked for.

    Args:
        lr: the learning rate.
        momentum: how much of the last step's direction is kept.
        dampening: how much of the gradient does not enter that direction.
        weight_decay: times the parameter itself is added to its gradient.
        nesterov: look ahead along the momentum.
        maximize: go along the gradient, not against it.
        foreach, fused: accepted; a step is one record either way.
    """

    op, kept, counts = "sgd_step", {"momentum_buffer": "momentum"}, {}
    not_negative = ("momentum", "weight_decay")

    def __init__(
        self, params: Params, lr: Rate = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _check(self, options: dict[str, Any]) -> None:
        momentum, dampening = options["momentum"], options["dampening"]
        if options["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ArgumentValueError(
                f"nesterov needs momentum above 0 and no dampening, not {momentum} and {dampening}"
            )

    def _derived(self, group: dict[str, Any], params: list[Any], counts: dict[str, Any]) -> dict[str, Any]:
        if not group["momentum"]:
            return {"first": ()}
        first = tuple(self.state[p].get("momentum_buffer") is None for p in params)
        for param in (p for p, is_first in zip(params, first, strict=True) if is_first):
            self.state[param]["momentum_buffer"] = empty_like(param)
        return {"first": first if any(first) else ()}


class Adam(OneRecordOptimizer):
    """Steps of about ``lr`` per element, from running means of the gradient and of its square.

    Args:
        lr: the learning rate.
        betas: the decay rates of the two means.
        eps: added to the root of the second mean.
        weight_decay: times the parameter itself is added to its gradient.
        amsgrad: divide by the largest second mean so far.
        maximize: go along the gradient, not against it.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead, as AdamW does.
        foreach, fused, capturable: accepted; a step is one record either way.
    """

    op, kept = "adam_step", {"exp_avg": "", "exp_avg_sq": "", "max_exp_avg_sq": "amsgrad"}

    def __init__(
        self, params: Params, lr: Rate = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _check(self, options: dict[str, Any]) -> None:
        tensors = [isinstance(given, Tensor) for given in (options["lr"], *options["betas"])]
        if any(tensors) and options["foreach"] and not options["capturable"]:
            raise ArgumentValueError("lr as a tensor needs capturable=True where foreach=True")
        if len(tensors) == 3 and tensors[1] != tensors[2]:
            raise ArgumentValueError("betas are two numbers or two tensors, not one of each")


class AdamW(Adam):
    """:class:`Adam` whose weight decay is decoupled: parameters shrink by ``lr * weight_decay`` each step."""

    def __init__(
        self, params: Params, lr: Rate = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        self._configure(locals() | {"decoupled_weight_decay": True})


class Adamax(OneRecordOptimizer):
    """Adam with the largest gradient so far, decaying, in place of the root of the mean square.

    Args:
        lr: the learning rate.
        betas: the decay rates of the mean and of the largest gradient.
        eps: added to the size of each gradient.
        weight_decay: times the parameter itself is added to its gradient.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept = "adamax_step", {"exp_avg": "", "exp_inf": ""}

    def __init__(
        self, params: Params, lr: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())


class NAdam(OneRecordOptimizer):
    """Adam with Nesterov's momentum, which grows from step to step.

    Args:
        lr: the learning rate.
        betas: the decay rates of the means of the gradient and of its square.
        eps: added to the root of the second mean.
        weight_decay: times the parameter itself is added to its gradient.
        momentum_decay: how fast the momentum approaches the first beta.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept = "nadam_step", {"exp_avg": "", "exp_avg_sq": ""}
    counts = {"step": int, "mu_product": float}
    told_apart = ("mu_product",)
    not_negative = ("eps", "weight_decay", "momentum_decay")

    def __init__(
        self, params: Params, lr: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _prepare(self, group: dict[str, Any], params: list[Any]) -> None:
        for param in params:
            self.state[param].setdefault("mu_product", 1.0)

    def _derived(self, group: dict[str, Any], params: list[Any], counts: dict[str, Any]) -> dict[str, Any]:
        beta, decay, step = number(group["betas"][0]), number(group["momentum_decay"]), counts["step"]
        mu, mu_next = (beta * (1.0 - 0.5 * 0.96 ** (n * decay)) for n in (step, step + 1))
        product = single(counts["mu_product"] * single(mu))
        for param in params:
            self.state[param]["mu_product"] = product
        return {"mu": mu, "mu_next": mu_next, "mu_product": product}


class RAdam(OneRecordOptimizer):
    """Adam that takes plain momentum steps until it knows the size of the gradients well enough.

    Args:
        lr: the learning rate.
        betas: the decay rates of the means of the gradient and of its square.
        eps: added to the root of the second mean.
        weight_decay: times the parameter itself is added to its gradient.
        decoupled_weight_decay: shrink the parameter itself by ``lr * weight_decay`` instead.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept = "radam_step", {"exp_avg": "", "exp_avg_sq": ""}

    def __init__(
        self, params: Params, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())


class RMSprop(OneRecordOptimizer):
    """Gradients divided by the root of a running mean of their squares.

    Args:
        lr: the learning rate.
        alpha: the decay rate of that mean.
        eps: added to its root.
        weight_decay: times the parameter itself is added to its gradient.
        momentum: how much of the last step's direction is kept.
        centered: divide by an estimate of the variance instead.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept = "rmsprop_step", {"square_avg": "", "grad_avg": "centered", "momentum_buffer": "momentum"}
    not_negative = ("alpha", "eps", "weight_decay", "momentum")

    def __init__(
        self, params: Params, lr: Rate = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())


class Adagrad(OneRecordOptimizer):
    """Gradients divided by the root of the sum of all their squares so far.

    Args:
        lr: the learning rate.
        lr_decay: by how much each step lowers it: step ``n`` uses ``lr / (1 + (n - 1) * lr_decay)``.
        weight_decay: times the parameter itself is added to its gradient.
        initial_accumulator_value: what the sum starts from.
        eps: added to its root.
        maximize: go along the gradient, not against it.
        foreach, fused: accepted; a step is one record either way.
    """

    op, kept = "adagrad_step", {"sum": ""}
    not_negative = ("lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def __init__(
        self, params: Params, lr: Rate = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        self._configure(locals())
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(step=0, sum=_filled(param, float(group["initial_accumulator_value"])))


class Adadelta(OneRecordOptimizer):
    """Steps as long as the recent ones were, relative to the recent gradients: there is no length to choose.

    Args:
        lr: a factor of each step.
        rho: the decay rate of the means of squares.
        eps: added to these means before their roots are taken.
        weight_decay: times the parameter itself is added to its gradient.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept = "adadelta_step", {"square_avg": "", "acc_delta": ""}

    def __init__(
        self, params: Params, lr: Rate = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _check(self, options: dict[str, Any]) -> None:
        check_ranges(rho=(options["rho"], 0.0, 1.0 + 1e-15))


class Rprop(OneRecordOptimizer):
    """A step size per element, which follows the signs of its gradients alone.

    Args:
        lr: the first step size.
        etas: what a step size is multiplied by where the sign changes, and where it stays.
        step_sizes: the smallest and the largest step size.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept, not_negative = "rprop_step", {"prev": "", "step_size": ""}, ()

    def __init__(
        self, params: Params, lr: Rate = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _check(self, options: dict[str, Any]) -> None:
        if not 0.0 < options["etas"][0] < 1.0 < options["etas"][1]:
            raise ArgumentValueError(f"etas are a number between 0 and 1 and one above 1, not {options['etas']}")

    def _derived(self, group: dict[str, Any], params: list[Any], counts: dict[str, Any]) -> dict[str, Any]:
        for param in params:
            if "step_size" not in self.state[param]:
                self.state[param]["step_size"] = _filled(param, number(group["lr"]))
        limits = (*group["etas"], *group["step_sizes"])
        return dict(zip(("eta_minus", "eta_plus", "smallest", "largest"), limits, strict=True))


class ASGD(OneRecordOptimizer):
    """Stochastic gradient descent that also keeps the average of the parameters, as ``state[param]["ax"]``.

    Args:
        lr: the first learning rate.
        lambd: by how much a step shrinks the parameter and slows the next.
        alpha: the power by which the learning rate falls.
        t0: the step after which averaging begins.
        weight_decay: times the parameter itself is added to its gradient.
        maximize: go along the gradient, not against it.
        foreach, capturable: accepted; a step is one record either way.
    """

    op, kept, not_negative = "asgd_step", {"ax": ""}, ("weight_decay",)
    counts = {"step": int, "eta": float, "mu": float}
    told_apart = ("eta", "mu")

    def __init__(
        self, params: Params, lr: Rate = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _prepare(self, group: dict[str, Any], params: list[Any]) -> None:
        for param in params:
            if "eta" not in self.state[param]:
                self.state[param].update(eta=single(number(group["lr"])), mu=1.0)

    def _derived(self, group: dict[str, Any], params: list[Any], counts: dict[str, Any]) -> dict[str, Any]:
        step, lr, lambd = counts["step"], number(group["lr"]), number(group["lambd"])
        eta = single(lr / (1 + lambd * lr * step) ** group["alpha"])
        for param in params:  # the next step's: the record has this one's
            self.state[param].update(eta=eta, mu=single(1 / max(1, step - group["t0"])))
        return {}


class Adafactor(OneRecordOptimizer):
    """Adam's second moments in little memory: a matrix keeps one for each row and each column.

    Args:
        lr: the largest learning rate; step ``n`` takes at most ``1 / sqrt(n)``.
        beta2_decay: the power of the step number that is the weight of the newest square.
        eps: the smallest root of a second moment (by default the dtype's resolution), and the smallest size of a
            parameter by which its step is scaled.
        d: the largest root mean square that a step may have before it is scaled.
        weight_decay: the parameter shrinks by ``lr * weight_decay`` each step.
        maximize: go along the gradient, not against it.
        foreach: accepted; a step is one record either way.
    """

    op, kept = "adafactor_step", {"row_var": "", "col_var": "", "variance": ""}
    not_negative = ("weight_decay",)

    def __init__(
        self, params: Params, lr: Rate = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())

    def _check(self, options: dict[str, Any]) -> None:
        if options["beta2_decay"] > 0:
            raise ArgumentValueError(f"beta2_decay must be at most 0, not {options['beta2_decay']}")
        for eps in options["eps"]:
            check_ranges(eps=(eps or 0.0, 0.0, INFINITY))
        check_ranges(d=(options["d"], 1.0, INFINITY))

    def _prepare(self, group: dict[str, Any], params: list[Any]) -> None:
        for param in params:
            if param.is_complex():
                raise ArgumentError(f"Adafactor works on real parameters, not on {param.dtype.name} ones")
            state, shape = self.state[param], tuple(param.shape)
            if "row_var" in state or "variance" in state:
                continue
            like = {"dtype": param.dtype, "device": param.device}
            if len(shape) > 1:
                state["row_var"] = zeros((*shape[:-1], 1), **like)
                state["col_var"] = zeros((*shape[:-2], 1, shape[-1]), **like)
            else:
                state["variance"] = zeros(shape, **like)

    def _derived(self, group: dict[str, Any], params: list[Any], counts: dict[str, Any]) -> dict[str, Any]:
        return dict(zip(("eps1", "eps2"), group["eps"], strict=True))

    def _kept(self, params: list[Any], name: str) -> list[Any]:
        return [self.state[param].get(name) for param in params]


class Muon(OneRecordOptimizer):
    """Momentum brought close to an orthogonal matrix: for the matrices of a network, and for nothing else.

    Args:
        lr: the learning rate.
        weight_decay: the parameter shrinks by ``lr * weight_decay`` each step.
        momentum: the decay rate of the mean gradient.
        nesterov: look ahead along the momentum.
        ns_coefficients: the polynomial that each iteration applies.
        eps: the smallest norm that the momentum is divided by.
        ns_steps: the number of iterations, below 100.
        adjust_lr_fn: how the learning rate follows the matrix's shape, ``"original"`` (by default) or
            ``"match_rms_adamw"``.
    """

    op, kept, counts = "muon_step", {"momentum_buffer": ""}, {}
    not_negative = ("momentum", "weight_decay")

    def __init__(
        self, params: Params, lr: Rate = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        self._configure(locals())
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ArgumentValueError(f"Muon works on matrices, a parameter has shape {list(param.shape)}")

    def _check(self, options: dict[str, Any]) -> None:
        if options["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ArgumentValueError(
                f"adjust_lr_fn is 'original' or 'match_rms_adamw', not {options['adjust_lr_fn']!r}"
            )

    def _derived(self, group: dict[str, Any], params: list[Any], counts: dict[str, Any]) -> dict[str, Any]:
        for param in params:
            if param.is_complex():
                raise ArgumentError(f"Muon works on real parameters, not on {param.dtype.name} ones")
        if group["ns_steps"] >= 100:
            raise ArgumentValueError(f"ns_steps must be below 100, not {group['ns_steps']}")
        if len(group["ns_coefficients"]) != 3:
            raise ArgumentValueError(f"ns_coefficients are three numbers, not {group['ns_coefficients']}")
        return dict(
            zip("abc", group["ns_coefficients"], strict=True), ns_steps=int(group["ns_steps"]),
            nesterov=bool(group["nesterov"]), adjust=group["adjust_lr_fn"] or "original",
        )  # fmt: skip


class SparseAdam(OneRecordOptimizer):
    """Adam for sparse gradients, of which gradwire has none: its arguments are checked, its step is refused.

    Raises:
        Unsupported: on :meth:`step`, and for any gradient there is.
    """

    counts, not_negative = {}, ()

    def __init__(
        self, params: Params, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        self._configure(locals())
        for group in self.param_groups:
            for param in group["params"]:
                if param.is_complex():
                    raise ArgumentValueError(f"SparseAdam works on real parameters, not on {param.dtype.name} ones")

    def _check(self, options: dict[str, Any]) -> None:
        if not isinstance(options["lr"], Tensor) and not options["lr"] > 0:
            raise ArgumentValueError(f"lr must be above 0, not {options['lr']}")
        check_ranges(eps=(options["eps"], 5e-324, INFINITY))

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        raise Unsupported(
            "SparseAdam.step is not supported by gradwire: it needs sparse gradients, and gradwire has dense ones alone"
        )
