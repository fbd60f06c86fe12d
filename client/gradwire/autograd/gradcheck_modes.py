"""What ``gradcheck`` records and compares besides backward: forward mode, and batched derivatives.

Each check records tensors first, and looks at their values once all have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._core.backward.backward import grad
from .._core.backward.function import Function
from .._core.composed.vmap import vmap
from .._core.dispatch import dual_tensors
from .._core.dispatch.dispatch import call
from .._core.dispatch.transform_levels import anchored
from .._core.graph import forward_levels
from .._core.surface.creation_like import zeros_like
from .._core.tensor.tensor import Tensor
from .functional import upload_like

Array = np.ndarray[Any, Any]


class GradcheckError(RuntimeError):
    """A gradient that differs from the finite differences, or that is computed in an inadmissible way."""


def _tupled(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def slopes(func: Callable[..., Any], inputs: tuple[Any, ...], tangents: dict[int, Any]) -> list[Any]:
    """The tangents of the outputs that can have one, given those of some inputs; zeros where there is none."""
    plain = [t.detach() if isinstance(t, Tensor) else t for t in inputs]
    with forward_levels.ForwardLevel() as level:
        for position, tangent in tangents.items():
            plain[position] = dual_tensors.make_dual(plain[position], tangent, level)
        outputs = [o for o in _tupled(func(*plain)) if _is_number(o)]
        found = [dual_tensors.tangent_of(o, level) for o in outputs]
        return [zeros_like(o).detach() if t is None else t.detach() for o, t in zip(outputs, found, strict=True)]


class ForwardMode:
    """Derivatives along each direction, and with tangents left out."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: tuple[Any, ...],
        positions: list[int],
        directions: list[Array],
        undefined: bool,
    ) -> None:
        self.wanted: list[Any] = []
        self._counts = [len(table) for table in directions]
        self._pairs = 0
        for position, table in zip(positions, directions, strict=True):
            rows = upload_like(inputs[position], table) if len(table) else []
            for i in range(len(table)):
                self.wanted += slopes(func, inputs, {position: rows[i]})
        self.width: int = len(self.wanted) // max(sum(self._counts), 1)
        if undefined and all(self._counts):
            first = {p: upload_like(inputs[p], table[0]) for p, table in zip(positions, directions, strict=True)}
            for position in positions:
                for missing in ({position: zeros_like(inputs[position]).detach()}, {}):
                    kept = {p: t for p, t in first.items() if p != position}
                    self.wanted += slopes(func, inputs, kept | missing)
                self._pairs += self.width

    def take(self, values: Iterator[Any]) -> list[list[list[Array]]]:
        """The derivatives by input, direction and output.

        Raises:
            GradcheckError: where a missing tangent gives something else than one of zeros.
        """
        found = [[[next(values) for _ in range(self.width)] for _ in range(count)] for count in self._counts]
        for i in range(self._pairs // max(self.width, 1)):
            zeros, missing = ([next(values) for _ in range(self.width)] for _ in range(2))
            for k, (one, two) in enumerate(zip(zeros, missing, strict=True)):
                if not np.allclose(one, two, equal_nan=True):
                    raise GradcheckError(
                        f"forward mode: the tangent of output {k} differs between a tangent of zeros and none for the "
                        f"checked input {i}"
                    )
        return found


def compare_slopes(numerical: Sequence[Array], forward: Sequence[Array], where: str, atol: float, rtol: float) -> None:
    """Compare finite differences with forward mode, a row for each direction.

    Raises:
        GradcheckError: naming the largest deviation.
    """
    one, two = np.array(numerical).reshape(len(numerical), -1), np.array(forward).reshape(len(forward), -1)
    near = np.isclose(two, one, rtol=rtol, atol=atol)
    if near.all():
        return
    deviation = np.where(near, -1.0, np.nan_to_num(np.abs(two - one), nan=np.inf))
    worst = np.unravel_index(int(np.argmax(deviation)), near.shape)
    raise GradcheckError(
        f"Jacobian mismatch in forward mode for {where}: {int((~near).sum())} of {near.size} entries differ, "
        f"the largest deviation is {deviation[worst]:.6g}, along direction {int(worst[0])} at element {int(worst[1])}, "
        f"where numerical is {one[worst]:.6g} and analytical {two[worst]:.6g} (atol {atol:g}, rtol {rtol:g})\n"
        f"numerical:\n{one}\nanalytical:\n{two}"
    )


class _Undefined(Function):
    """A view whose gradient never arrives at what it shows."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None


def undefined_gradients(
    outputs: list[Any], sources: list[Any], vectors: list[Any]
) -> tuple[list[Any], Exception | None]:
    """The gradients that are defined where those of the outputs are not: of all outputs, then of each one of several.
    With them the error of a backward that cannot do without, to be raised once the values have been compared."""
    found: list[Any] = []
    missing = [set(range(len(outputs))), *({k} for k in range(len(outputs)) if len(outputs) > 1)]
    for group in missing:
        roots = [anchored(_Undefined.apply(o) if k in group else o) for k, o in enumerate(outputs)]
        try:
            gradients = grad(roots, sources, vectors, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            which = "every output" if len(group) == len(outputs) else f"output {min(group)}"
            refusal = GradcheckError(f"backward fails where the gradient of {which} is undefined: {error}")
            refusal.__cause__ = error
            return found, refusal
        except Exception as error:
            return found, error
        found += [g for g in gradients if g is not None]
    return found, None


class Batched:
    """Derivatives for two random vectors, one after the other and under ``vmap``."""

    def __init__(self) -> None:
        self.wanted: list[Any] = []
        self._names: list[str] = []

    def backward(self, output: Any, k: int, sources: list[Any]) -> None:
        """Record gradients of an output."""
        root = anchored(output)
        vectors = _random(output, 2)
        rows = [self._gradients(root, sources, vectors[i], False) for i in range(2)]
        together = self._attempt("gradients", lambda: self._gradients(root, sources, vectors, True))
        for j, batched in enumerate(together):
            self._pair(f"the gradient of output {k} for checked input {j}", [row[j] for row in rows], batched)

    @staticmethod
    def _gradients(root: Any, sources: list[Any], vectors: Any, batched: bool) -> tuple[Any, ...]:
        return grad(
            [root], sources, [vectors], retain_graph=True, allow_unused=True, materialize_grads=True,
            is_grads_batched=batched,
        )  # fmt: skip

    def forward(self, func: Callable[..., Any], inputs: tuple[Any, ...], position: int) -> None:
        """Record derivatives along directions of an input."""
        vectors = _random(inputs[position], 2)
        rows = [slopes(func, inputs, {position: vectors[i]}) for i in range(2)]
        together = self._attempt(
            "forward mode", lambda: vmap(lambda v: tuple(slopes(func, inputs, {position: v})))(vectors)
        )
        for k, batched in enumerate(together):
            self._pair(f"the forward derivative of output {k} for input {position}", [row[k] for row in rows], batched)

    @staticmethod
    def _attempt(what: str, compute: Callable[[], Any]) -> Any:
        try:
            return compute()
        except RuntimeError as error:
            raise GradcheckError(f"batched {what} could not be computed under vmap: {error}") from error

    def _pair(self, name: str, rows: list[Any], batched: Any) -> None:
        self.wanted += [call("stack", [r.detach() for r in rows], 0), batched.detach()]
        self._names.append(name)

    def compare(self, values: Iterator[Any]) -> None:
        """Look at what was recorded.

        Raises:
            GradcheckError: naming the derivative that differs.
        """
        for name in self._names:
            one, two = next(values), next(values)
            if one.shape != two.shape or not np.allclose(one, two, rtol=1e-5, atol=1e-8):
                raise GradcheckError(f"{name} differs under vmap:\none by one:\n{one}\nbatched:\n{two}")


def _random(like: Any, count: int) -> Any:
    generator = np.random.default_rng()
    shape = (count, *like.shape)
    array = generator.standard_normal(shape)
    return upload_like(like, array + 1j * generator.standard_normal(shape) if like.is_complex() else array)
