"""``torch.quasirandom``: Sobol sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType, float32, float64, int64
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ._core.composed import sobol
from ._core.session.current_session import get_default_dtype
from ._core.surface.creation import randint, tensor
from ._core.surface.generator import Generator
from ._core.tensor.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points of a Sobol sequence, which fill the unit cube evenly.

    Args:
        dimension: of the cube, at most 21201.
        scramble: mix the bits of coordinates at random, by Owen's method.
        seed: of these random numbers; by default they come from the session's generator.

    Raises:
        ArgumentValueError: for another dimension.
    """

    MAXBIT = sobol.BITS
    MAXDIM = sobol.MAX_DIMENSION

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentValueError(f"SobolEngine: the dimension is 1 to {self.MAXDIM}, not {dimension}")
        self.dimension: int = dimension
        self.scramble: bool = scramble
        self.seed: int | None = seed
        self.num_generated: int = 0
        self._numbers = sobol.directions(dimension)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        draw: Any = randint
        bits = draw(2, (self.dimension, self.MAXBIT, self.MAXBIT + 1), generator=generator).numpy()
        triangles = np.tril(bits[:, :, :-1])
        triangles[:, range(self.MAXBIT), range(self.MAXBIT)] = 1
        self._shift = bits[:, :, -1] @ (1 << np.arange(self.MAXBIT))
        self._numbers = sobol.scrambled(self._numbers, triangles)

    @property
    def shift(self) -> Tensor:
        """The first point, as integers."""
        return tensor(self._shift, dtype=int64)

    @property
    def sobolstate(self) -> Tensor:
        """The direction numbers of each dimension."""
        return tensor(self._numbers, dtype=int64)

    @property
    def quasi(self) -> Tensor:
        """The point that was drawn last, as integers."""
        at = max(self.num_generated - 1, 0)
        return tensor(sobol.points(self._numbers, self._shift, at, 1)[0], dtype=int64)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next ``n`` points, as rows.

        Raises:
            ArgumentError: for another dtype than float32 and float64.
        """
        chosen = get_default_dtype() if dtype is None else dtype
        if chosen not in (float32, float64):
            raise ArgumentError(f"SobolEngine.draw: the dtype is float32 or float64, not {chosen.name}")
        found = sobol.points(self._numbers, self._shift, self.num_generated, n)
        self.num_generated += n
        made = tensor(found.astype(chosen.name) * np.dtype(chosen.name).type(2.0**-self.MAXBIT))
        if out is None:
            return made
        out.resize_(made.shape).copy_(made)
        return out

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next ``2**m`` points.

        Raises:
            ArgumentValueError: when the number of points would not be a power of 2 then.
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ArgumentValueError(
                f"draw_base2: {self.num_generated} points were drawn, with 2**{m} more they are {total}, and points "
                "are balanced at powers of 2 only: use draw()"
            )
        return self.draw(2**m, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin with the first point again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out ``n`` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts: dict[str, Any] = {"dimension": self.dimension}
        if self.scramble:
            parts["scramble"] = True
        if self.seed is not None:
            parts["seed"] = self.seed
        return f"SobolEngine({', '.join(f'{name}={value}' for name, value in parts.items())})"
