"""Steps with ``differentiable=True``: recorded for backward, operation by operation, to optimize through an optimizer.

A function changes one parameter in place, given its group, the parameter, its gradient and its state. Everything here
is ordinary tensor arithmetic: a step takes about a dozen records for each parameter.

An option that is a tensor which requires grad gets a gradient too, to learn rates and decays. Then a product saves its
other factor, which the next step overwrites if it is a parameter or a state: such a factor is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..context.modes import enable_grad
from ..dispatch.dispatch import call
from ..surface.creation_like import full_like, zeros_like
from ..tensor.tensor import Tensor
from .options import number, single

Step = Callable[[dict[str, Any], Any, Any, dict[str, Any]], None]


def _option(value: Any) -> Any:
    """An option as a number, or as the tensor of no dimensions that it is learnt by."""
    return value.reshape(()) if isinstance(value, Tensor) and value.requires_grad else number(value)


def _options(values: Any) -> list[Any]:
    return [_option(value) for value in values]


def _in_use(option: Any) -> bool:
    return isinstance(option, Tensor) or option != 0


def _held(tensor: Any, group: dict[str, Any]) -> Any:
    """What an operation is to save of a state that the next step changes: a copy of it, where options are learnt."""
    options = [one for name, value in group.items() if name != "params" for one in _several(value)]
    learnt = any(isinstance(option, Tensor) and option.requires_grad for option in options)
    return tensor.clone() if learnt else tensor


def _several(option: Any) -> Sequence[Any]:
    return option if isinstance(option, (tuple, list)) else (option,)


def _product(x: Any, factor: Any) -> Any:
    return x.clone() * factor if isinstance(factor, Tensor) else x * factor


def _multiply(target: Any, factor: Any) -> Any:
    """Multiply in place."""
    return target.copy_(_product(target, factor)) if isinstance(factor, Tensor) else target.mul_(factor)


def _sum(x: Any, other: Any, alpha: Any) -> Any:
    return x + _product(other, alpha) if isinstance(alpha, Tensor) else x.add(other, alpha=alpha)


def _add(target: Any, other: Any, alpha: Any) -> Any:
    """Add a multiple in place."""
    return target.add_(_product(other, alpha)) if isinstance(alpha, Tensor) else target.add_(other, alpha=alpha)


def _add_product(target: Any, x: Any, y: Any, value: Any) -> Any:
    """Add a multiple of a product in place."""
    return target.add_(x * y * value) if isinstance(value, Tensor) else target.addcmul_(x, y, value=value)


def _add_quotient(target: Any, x: Any, y: Any, value: Any) -> Any:
    """Add a multiple of a quotient in place."""
    return target.add_(x.clone() / y * value) if isinstance(value, Tensor) else target.addcdiv_(x, y, value=value)


def _approach(target: Any, goal: Any, weight: Any) -> Any:
    """Move a part of the way in place."""
    return target.add_(_product(goal - target, weight)) if isinstance(weight, Tensor) else target.lerp_(goal, weight)


def _kept(state: dict[str, Any], name: str, param: Tensor) -> Any:
    if state.get(name) is None:
        state[name] = zeros_like(param)
    return _real(state[name])


def _real(x: Any) -> Any:
    return call("view_as_real", x) if x.is_complex() else x


def _counted(state: dict[str, Any]) -> int:
    state["step"] = int(state.get("step", 0)) + 1
    return int(state["step"])


def _decayed(group: dict[str, Any], param: Tensor, grad: Tensor) -> Any:
    """The gradient, turned around and with weight decay where the group says so."""
    grad = -grad if group["maximize"] else grad
    rate = _option(group.get("weight_decay", 0))
    if _in_use(rate) and group.get("decoupled_weight_decay"):
        _multiply(param, 1 - _option(group["lr"]) * rate)
    elif _in_use(rate):
        grad = _sum(grad, param, rate)
    return grad


def _moments(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> tuple[Any, Any]:
    beta1, beta2 = _options(group["betas"])
    mean, square = _kept(state, "exp_avg", param), _kept(state, "exp_avg_sq", param)
    _approach(mean, grad, 1 - beta1)
    _add_product(_multiply(square, beta2), grad, grad, 1 - beta2)
    return mean, square


def _sgd(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    grad, momentum = _decayed(group, param, grad), _option(group["momentum"])
    if _in_use(momentum):
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            _add(_multiply(buffer, momentum), grad, 1 - _option(group["dampening"]))
        grad = _sum(grad, buffer, momentum) if group["nesterov"] else buffer
    _add(param, grad, -_option(group["lr"]))


def _adam(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = _options(group["betas"])
    mean, square = _moments(group, param, grad, state)
    if group["amsgrad"]:
        largest = _kept(state, "max_exp_avg_sq", param)
        largest.copy_(call("maximum", largest.clone(), _held(square, group)))
        square = largest
    scale = square.sqrt() / (1 - beta2**step) ** 0.5 + _option(group["eps"])
    _add_quotient(_real(param), mean.clone(), scale, -_option(group["lr"]) / (1 - beta1**step))


def _adamax(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = _options(group["betas"])
    mean, norm = _kept(state, "exp_avg", param), _kept(state, "exp_inf", param)
    _approach(mean, grad, 1 - beta1)
    norm.copy_(call("maximum", _product(norm, beta2), grad.abs() + _option(group["eps"])))
    _add_quotient(_real(param), mean, _held(norm, group), -_option(group["lr"]) / (1 - beta1**step))


def _nadam(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = _options(group["betas"])
    lr, decay = _options((group["lr"], group["momentum_decay"]))
    mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (n * decay)) for n in (step, step + 1))
    product = state["mu_product"] = single(state.get("mu_product", 1.0) * single(mu))
    mean, square = _moments(group, param, grad, state)
    scale = _held(square, group).div(1 - beta2**step).sqrt() + _option(group["eps"])
    _real(param).addcdiv_(grad * (-lr * (1 - mu) / (1 - product)), scale)
    _real(param).addcdiv_(_product(mean, -lr * mu_next / (1 - product * mu_next)), scale)


def _radam(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = _options(group["betas"])
    mean, square = _moments(group, param, grad, state)
    second, longest = 1 - beta2**step, 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / second
    move = _held(mean, group) / (1 - beta1**step) * _option(group["lr"])
    if float(length) > 5:
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        move = move * (second**0.5 / (square.sqrt() + _option(group["eps"]))) * ratio**0.5
    _real(param).sub_(move)


def _rmsprop(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    _counted(state)
    grad, alpha = _real(_decayed(group, param, grad)), _option(group["alpha"])
    lr, momentum = _options((group["lr"], group["momentum"]))
    square = _kept(state, "square_avg", param)
    _add_product(_multiply(square, alpha), grad, grad, 1 - alpha)
    if group["centered"]:
        mean = _kept(state, "grad_avg", param)
        _approach(mean, grad, 1 - alpha)
        held = _held(mean, group)
        scale = square.addcmul(held, held, value=-1).sqrt()
    else:
        scale = square.sqrt()
    scale = scale + _option(group["eps"])
    if isinstance(momentum, Tensor) or momentum > 0:
        buffer = _kept(state, "momentum_buffer", param)
        _multiply(buffer, momentum).addcdiv_(grad, scale)
        _add(_real(param), buffer, -lr)
    else:
        _add_quotient(_real(param), grad, scale, -lr)


def _adagrad(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    total = _kept(state, "sum", param)
    total.addcmul_(grad, grad, value=1)
    rate = _option(group["lr"]) / (1 + (step - 1) * _option(group["lr_decay"]))
    _add_quotient(_real(param), grad, total.sqrt() + _option(group["eps"]), -rate)


def _adadelta(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    _counted(state)
    grad = _real(_decayed(group, param, grad))
    rho, eps = _options((group["rho"], group["eps"]))
    square, deltas = _kept(state, "square_avg", param), _kept(state, "acc_delta", param)
    _add_product(_multiply(square, rho), grad, grad, 1 - rho)
    delta = deltas.add(eps).sqrt() / square.add(eps).sqrt() * grad
    _add_product(_multiply(deltas, rho), delta, delta, 1 - rho)
    _add(_real(param), delta, -_option(group["lr"]))


def _rprop(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    _counted(state)
    grad = _real(-grad if group["maximize"] else grad)
    if "step_size" not in state:
        start = _option(group["lr"])
        state["step_size"] = full_like(param, complex(1, 1) if param.is_complex() else 1) * start
    before, sizes = _kept(state, "prev", param), _real(state["step_size"])
    shrink, grow = _options(group["etas"])
    turn = grad.detach() * before.detach()
    factor = call("where", turn > 0, grow, call("where", turn < 0, shrink, 1.0)).to(sizes.dtype)
    low, high = map(float, group["step_sizes"])
    (_multiply(sizes, factor) if factor.requires_grad else sizes.mul_(factor)).clamp_(low, high)
    grad = call("masked_fill", grad, turn < 0, 0.0)
    _real(param).addcmul_(grad.sign(), _held(sizes, group), value=-1)
    before.copy_(grad)


def _asgd(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    lr, lambd = float(group["lr"]), float(group["lambd"])
    eta, mu = state.get("eta", single(lr)), state.get("mu", 1.0)
    average, target = _kept(state, "ax", param), _real(param)
    target.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
    if mu == 1:
        average.copy_(target)
    else:
        average.add_(target.sub(average).mul(mu))
    state["eta"] = single(lr / (1 + lambd * lr * step) ** float(group["alpha"]))
    state["mu"] = single(1 / max(1, step - float(group["t0"])))


STEPS: Final[dict[str, Step]] = {
    "ASGD": _asgd, "Adadelta": _adadelta, "Adagrad": _adagrad, "Adam": _adam, "AdamW": _adam, "Adamax": _adamax,
    "NAdam": _nadam, "RAdam": _radam, "RMSprop": _rmsprop, "Rprop": _rprop, "SGD": _sgd,
}  # fmt: skip


def step_recorded(step: Step, group: dict[str, Any], params: list[Tensor], state: Any) -> None:
    """Take a step that backward goes through."""
    with enable_grad():
        for param in params:
            step(group, param, param.grad, state[param])
