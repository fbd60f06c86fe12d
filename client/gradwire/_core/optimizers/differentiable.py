"""Steps with ``differentiable=True``: recorded for backward, operation by operation, to optimize through an optimizer.

A function changes one parameter in place, given its group, the parameter, its gradient and its state. Everything here
is ordinary tensor arithmetic: a step takes about a dozen records for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..context.modes import enable_grad
from ..dispatch.dispatch import call
from ..surface.creation import full_like, zeros_like
from ..tensor.tensor import Tensor
from .options import number, single

Step = Callable[[dict[str, Any], Any, Any, dict[str, Any]], None]


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
    rate = number(group.get("weight_decay", 0))
    if rate and group.get("decoupled_weight_decay"):
        param.mul_(1 - number(group["lr"]) * rate)
    elif rate:
        grad = grad.add(param, alpha=rate)
    return grad


def _moments(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> tuple[Any, Any]:
    beta1, beta2 = map(float, group["betas"])
    mean, square = _kept(state, "exp_avg", param), _kept(state, "exp_avg_sq", param)
    mean.lerp_(grad, 1 - beta1)
    square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    return mean, square


def _sgd(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    grad, momentum = _decayed(group, param, grad), float(group["momentum"])
    if momentum:
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - float(group["dampening"]))
        grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
    param.add_(grad, alpha=-float(group["lr"]))


def _adam(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = map(float, group["betas"])
    mean, square = _moments(group, param, grad, state)
    if group["amsgrad"]:
        largest = _kept(state, "max_exp_avg_sq", param)
        largest.copy_(call("maximum", largest.clone(), square))
        square = largest
    scale = square.sqrt() / (1 - beta2**step) ** 0.5 + float(group["eps"])
    _real(param).addcdiv_(mean.clone(), scale, value=-float(group["lr"]) / (1 - beta1**step))


def _adamax(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = map(float, group["betas"])
    mean, norm = _kept(state, "exp_avg", param), _kept(state, "exp_inf", param)
    mean.lerp_(grad, 1 - beta1)
    norm.copy_(call("maximum", norm.mul(beta2), grad.abs() + float(group["eps"])))
    _real(param).addcdiv_(mean, norm, value=-float(group["lr"]) / (1 - beta1**step))


def _nadam(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = map(float, group["betas"])
    lr, decay = float(group["lr"]), float(group["momentum_decay"])
    mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (n * decay)) for n in (step, step + 1))
    product = state["mu_product"] = single(state.get("mu_product", 1.0) * single(mu))
    mean, square = _moments(group, param, grad, state)
    scale = square.div(1 - beta2**step).sqrt() + float(group["eps"])
    _real(param).addcdiv_(grad * (-lr * (1 - mu) / (1 - product)), scale)
    _real(param).addcdiv_(mean * (-lr * mu_next / (1 - product * mu_next)), scale)


def _radam(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    beta1, beta2 = map(float, group["betas"])
    mean, square = _moments(group, param, grad, state)
    second, longest = 1 - beta2**step, 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / second
    move = mean / (1 - beta1**step) * float(group["lr"])
    if length > 5:
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        move = move * (second**0.5 / (square.sqrt() + float(group["eps"]))) * ratio**0.5
    _real(param).sub_(move)


def _rmsprop(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    _counted(state)
    grad, alpha = _real(_decayed(group, param, grad)), float(group["alpha"])
    square = _kept(state, "square_avg", param)
    square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    if group["centered"]:
        mean = _kept(state, "grad_avg", param)
        mean.lerp_(grad, 1 - alpha)
        scale = square.addcmul(mean, mean, value=-1).sqrt()
    else:
        scale = square.sqrt()
    scale = scale + float(group["eps"])
    if group["momentum"] > 0:
        buffer = _kept(state, "momentum_buffer", param)
        buffer.mul_(float(group["momentum"])).addcdiv_(grad, scale)
        _real(param).add_(buffer, alpha=-float(group["lr"]))
    else:
        _real(param).addcdiv_(grad, scale, value=-float(group["lr"]))


def _adagrad(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    step, grad = _counted(state), _real(_decayed(group, param, grad))
    total = _kept(state, "sum", param)
    total.addcmul_(grad, grad, value=1)
    rate = float(group["lr"]) / (1 + (step - 1) * float(group["lr_decay"]))
    _real(param).addcdiv_(grad, total.sqrt() + float(group["eps"]), value=-rate)


def _adadelta(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    _counted(state)
    grad, rho, eps = _real(_decayed(group, param, grad)), float(group["rho"]), float(group["eps"])
    square, deltas = _kept(state, "square_avg", param), _kept(state, "acc_delta", param)
    square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
    delta = deltas.add(eps).sqrt() / square.add(eps).sqrt() * grad
    deltas.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    _real(param).add_(delta, alpha=-float(group["lr"]))


def _rprop(group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
    _counted(state)
    grad = _real(-grad if group["maximize"] else grad)
    if "step_size" not in state:
        start = float(group["lr"])
        state["step_size"] = full_like(param, complex(start, start) if param.is_complex() else start)
    before, sizes = _kept(state, "prev", param), _real(state["step_size"])
    shrink, grow = map(float, group["etas"])
    turn = grad.detach() * before.detach()
    factor = call("where", turn > 0, grow, call("where", turn < 0, shrink, 1.0)).to(sizes.dtype)
    low, high = map(float, group["step_sizes"])
    sizes.mul_(factor).clamp_(low, high)
    grad = call("masked_fill", grad, turn < 0, 0.0)
    _real(param).addcmul_(grad.sign(), sizes, value=-1)
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
