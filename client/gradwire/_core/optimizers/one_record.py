"""Optimizers whose step of a parameter group is one record of one op."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from gradwire_protocol.table import FLOAT, TABLE, Kind

from ..dispatch.dispatch import call
from ..tensor.tensor import Tensor
from .optimizer import Optimizer
from .options import INFINITY, betas_of, check_flags, check_fused, check_ranges, check_rate, number


class OneRecordOptimizer(Optimizer):
    """The shape that most optimizers have: options, what is kept of each parameter, and an op that takes both.

    The op's parameters tell what goes into a record. Its lists are the parameters and the tensors kept of them. All
    else has the name of an option or of a count, or is found by :meth:`_derived`.

    Attributes:
        op: the op that takes the step.
        kept: the tensors kept of each parameter, in the op's order: their name in ``state``, and the option without
            which there are none, or ``""``.
        told_apart: the counts beside the step by which parameters need records of their own.
        not_negative: the options that must be at least 0.
    """

    op: ClassVar[str]
    counts: ClassVar[dict[str, Any]] = {"step": int}
    kept: ClassVar[Mapping[str, str]] = {}
    told_apart: ClassVar[tuple[str, ...]] = ()
    not_negative: ClassVar[tuple[str, ...]] = ("eps", "weight_decay")

    def _configure(self, arguments: Mapping[str, Any]) -> None:
        """Initialise with the arguments of ``__init__`` as ``locals()`` has them: all but ``params`` are options."""
        options = {name: value for name, value in arguments.items() if name not in ("self", "params", "__class__")}
        check_rate(options["lr"])
        check_ranges(**{name: (options[name], 0.0, INFINITY) for name in self.not_negative})
        check_flags(options)
        self._check(options)
        if "betas" in options:
            options["betas"] = betas_of(options["betas"])
        super().__init__(arguments["params"], options)

    def _check(self, options: dict[str, Any]) -> None:
        """Refuse what this optimizer alone refuses."""

    def _prepare(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Make the state that does not begin with zeros."""

    def _derived(self, group: dict[str, Any], params: list[Tensor], counts: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the op that are no options, by name. ``counts`` are those by which parameters are told apart."""
        return {}

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        check_fused(group, params)
        self._prepare(group, params)
        given = group | {"skip": self._skip}
        if "betas" in group:
            given["beta1"], given["beta2"] = group["betas"]
        for counts, some in self._alike(params):
            given |= counts
            given |= self._derived(group, some, counts)
            tensors: list[list[Any]] = [
                self._kept(some, name) if not option or group[option] else [None] * len(some)
                for name, option in self.kept.items()
            ]
            numbers = [
                number(given[name]) if is_float and given[name] is not None else given[name]
                for name, is_float in _taken(self.op).items()
            ]
            call(self.op, some, *tensors, *numbers)
            self._touch(*tensors)

    def _alike(self, params: list[Tensor]) -> list[tuple[dict[str, Any], list[Any]]]:
        """The parameters that one record can take, with their counts, for each of which this step is counted."""
        if not self.counts:
            return [({}, params)]
        found: dict[Any, list[Any]] = {}
        more = self.told_apart
        for param in params:
            state = self.state[param]
            step = state["step"] = int(state.get("step", 0)) + 1
            found.setdefault((step, *[state[name] for name in more]) if more else step, []).append(param)
        if "step" not in _taken(self.op) and not more:
            return [({}, params)]
        if not more:
            return [({"step": step}, some) for step, some in found.items()]
        return [(dict(zip(("step", *more), key, strict=True)), some) for key, some in found.items()]


@cache
def _taken(op: str) -> dict[str, bool]:
    """The parameters of an op that are no lists of tensors, and whether they are floats."""
    lists = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
    return {param.name: param.numbers == FLOAT for param in TABLE[op].params if param.kind not in lists}
