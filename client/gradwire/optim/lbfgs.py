"""LBFGS: the vectors stay on the server, the numbers that decide are read with the loss, once an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from .._core.context.modes import enable_grad, no_grad
from .._core.dispatch.dispatch import call
from .._core.optimizers.optimizer import Loss, Optimizer, Params, Rate
from .._core.optimizers.options import check_rate, number
from .._core.surface.creation import ones
from .._core.tensor.tensor import Tensor
from .line_search import Point, strong_wolfe


class _Evaluation(NamedTuple):
    """What a call of the closure told: its result, the loss, the gradient, and numbers of it."""

    result: Any
    loss: float
    gradient: Any
    largest: float
    total: float
    slope: float
    square: float
    next: _Direction | None


class _Direction(NamedTuple):
    """A direction and how it continues the history; ``numbers`` are known once they were read."""

    d: Any
    change: Any
    step: Any
    inverse: Any
    scale: Any
    facts: Any
    numbers: Any = None


class LBFGS(Optimizer):
    """Limited-memory BFGS: directions from the last gradients, as Newton's method would take them.

    There is one group, and :meth:`step` needs a closure. A step waits for the server once for each time it calls it,
    and with a line search once more for each direction.

    Args:
        lr: the length of a step, or where the line search begins.
        max_iter: the most directions of a step.
        max_eval: the most calls of the closure, by default 5 for 4 directions.
        tolerance_grad: stop when no element of the gradient is above this.
        tolerance_change: stop when neither parameters nor loss change by more than this.
        history_size: how many gradients are remembered.
        line_search_fn: ``"strong_wolfe"``, or None to take each step as it is.
    """

    def __init__(
        self,
        params: Params,
        lr: Rate = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ArgumentValueError(f"LBFGS takes one parameter group, not {len(self.param_groups)}")

    @property
    def _params(self) -> list[Any]:
        found: list[Any] = self.param_groups[0]["params"]
        return found

    def step(self, closure: Callable[[], Loss]) -> Loss:  # type: ignore[override]
        """Minimise what ``closure`` computes, which clears the gradients, calls backward and returns the loss.

        Returns the loss before the first change.
        """
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentError(f"line_search_fn is 'strong_wolfe' or None, not {group['line_search_fn']!r}")
        search = group["line_search_fn"] is not None
        with no_grad():
            now = first = self._evaluate(closure, state)
            state["func_evals"] += 1
            if now.largest <= group["tolerance_grad"]:
                return first.result
            evaluations = 1
            for turn in range(1, group["max_iter"] + 1):
                state["n_iter"] += 1
                slope, span = self._turn(state, now)
                lr = number(group["lr"])
                t = state["t"] = (min(1.0, 1.0 / now.total) if now.total else 1.0) * lr if state["n_iter"] == 1 else lr
                before = now
                state.update(prev_flat_grad=now.gradient, prev_loss=now.loss)
                if slope > -group["tolerance_change"]:
                    break
                if search:
                    most = group["max_eval"] - evaluations
                    now, t, count = self._search(closure, state, before, slope, span, t, most)
                else:
                    self._move(state["d"], t)
                    count = int(turn != group["max_iter"])
                    if count:
                        now = self._evaluate(closure, state)
                evaluations += count
                state["func_evals"] += count
                if (
                    turn == group["max_iter"]
                    or evaluations >= group["max_eval"]
                    or now.largest <= group["tolerance_grad"]
                    or span * abs(t) <= group["tolerance_change"]
                    or abs(now.loss - before.loss) < group["tolerance_change"]
                ):
                    break
        return first.result

    def _turn(self, state: dict[str, Any], now: _Evaluation) -> tuple[float, float]:
        """Turn to the next direction; returns the slope along it and its largest element."""
        if state["n_iter"] == 1:
            state.update(d=call("neg", now.gradient), old_dirs=[], old_stps=[], ro=[])
            state["H_diag"] = ones((), dtype=now.gradient.dtype, device=now.gradient.device)
            return -now.square, now.largest
        found = now.next
        if found is None:
            found = self._direction(state, now.gradient)
            found = found._replace(numbers=found.facts._session.read([found.facts])[0])
        product, slope, largest, _ = found.numbers.tolist()
        if product > 1e-10:
            if len(state["old_dirs"]) == self.param_groups[0]["history_size"]:
                for name in ("old_dirs", "old_stps", "ro"):
                    state[name] = state[name][1:]
            state["old_dirs"] = [*state["old_dirs"], found.change]
            state["old_stps"] = [*state["old_stps"], found.step]
            state["ro"] = [*state["ro"], found.inverse]
            state["H_diag"] = found.scale
        state["d"] = found.d
        return slope, largest

    def _direction(self, state: dict[str, Any], gradient: Any) -> _Direction:
        scale = state["H_diag"]
        if not isinstance(scale, Tensor):
            scale = call("full", (), float(scale), dtype=gradient.dtype, device=gradient._form.device)
        made = call(
            "lbfgs_direction", gradient, state["prev_flat_grad"], state["d"], number(state["t"]), state["old_dirs"],
            state["old_stps"], state["ro"], scale, self.param_groups[0]["history_size"],
        )  # fmt: skip
        return _Direction(*made)

    def _evaluate(self, closure: Callable[[], Any], state: dict[str, Any], direction: Any = None) -> _Evaluation:
        """Call the closure and read what is to be known of it, in one round trip. Without a direction that is being
        searched along, the next one is computed at the same time."""
        with enable_grad():
            result = closure()
        gradient = call("flat_gradient", self._params)
        wanted = [call("gradient_facts", gradient, direction)]
        found = None
        if direction is None and state.get("d") is not None:
            found = self._direction(state, gradient)
            wanted.append(found.facts)
        if isinstance(result, Tensor):
            wanted.append(result.detach())
        values = gradient._session.read(wanted)
        told: list[Any] = list(values)
        loss = float(told[-1].item() if isinstance(result, Tensor) else result)
        if found is not None:
            found = found._replace(numbers=told[1])
        largest, total, slope, square = told[0].tolist()
        return _Evaluation(result, loss, gradient, largest, total, slope, square, found)

    def _search(
        self, closure: Callable[[], Any], state: dict[str, Any], before: _Evaluation, slope: float, span: float,
        t: float, most: int,
    ) -> tuple[_Evaluation, float, int]:  # fmt: skip
        origin = call("flat_values", self._params)

        def evaluate(distance: float) -> Point:
            self._move(state["d"], distance, origin)
            seen = self._evaluate(closure, state, state["d"])
            return Point(distance, seen.loss, seen.slope, seen)

        start = Point(0.0, before.loss, slope, before)
        point, count = strong_wolfe(evaluate, start, t, span, most=most)
        state["t"] = point.t
        self._move(state["d"], point.t, origin)
        return point.gradient, point.t, count

    def _move(self, direction: Any, t: float, origin: Any = None) -> None:
        call("move_params", self._params, direction, float(t), origin)
        self._touch(self._params)
