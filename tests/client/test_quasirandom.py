"""``torch.quasirandom``: PyTorch's points, and scrambled ones that are as even."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tools.sobol_directions import derived
from torch.quasirandom import SobolEngine as Theirs

import gradwire as gw
from gradwire._core.composed import sobol
from gradwire.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 40, 1111])
def test_points_are_pytorchs(session, dimension) -> None:
    mine, other = SobolEngine(dimension), Theirs(dimension)
    for step in (1, 1, 5, 0, 12):
        if step:
            assert mine.draw(step).tolist() == other.draw(step).tolist()
        else:
            mine.fast_forward(100)
            other.fast_forward(100)
        assert mine.num_generated == other.num_generated
        assert mine.quasi.tolist() == other.quasi.tolist()
    assert mine.draw(3, dtype=gw.float64).tolist() == other.draw(3, dtype=torch.float64).tolist()
    assert mine.reset().draw_base2(4).tolist() == other.reset().draw_base2(4).tolist()
    assert mine.sobolstate.tolist() == other.sobolstate.tolist()
    out = gw.empty(0)
    assert mine.draw(2, out=out) is out
    assert out.shape == (2, dimension)
    assert repr(mine) == repr(other)


def test_the_last_dimensions_are_pytorchs() -> None:
    numbers = sobol.directions(SobolEngine.MAXDIM)
    state = torch.zeros(Theirs.MAXDIM, 30, dtype=torch.long)
    torch._sobol_engine_initialize_state_(state, Theirs.MAXDIM)
    assert (numbers == state.numpy()).all()
    with np.load(sobol.TABLE) as table:
        assert all(np.array_equal(table[name], array) for name, array in derived().items())


def test_scrambled_points_are_even(session) -> None:
    engine = SobolEngine(5, scramble=True, seed=3)
    assert repr(engine) == repr(Theirs(5, scramble=True, seed=3))
    drawn = engine.draw_base2(7).numpy()
    assert (drawn == SobolEngine(5, scramble=True, seed=3).draw(128).numpy()).all()
    assert (drawn != SobolEngine(5, scramble=True, seed=4).draw(128).numpy()).any()
    for column in drawn.T:  # one point in each of 128 equal parts
        assert sorted((column * 128).astype(int)) == list(range(128))
    assert drawn.min() > 0


def test_the_same_mixing_gives_pytorchs_points() -> None:
    rng = np.random.default_rng(1)
    triangles = np.tril(rng.integers(0, 2, (3, 30, 30)))
    triangles[:, range(30), range(30)] = 1
    state = torch.zeros(3, 30, dtype=torch.long)
    torch._sobol_engine_initialize_state_(state, 3)
    torch._sobol_engine_scramble_(state, torch.tensor(triangles), 3)
    assert (sobol.scrambled(sobol.directions(3), triangles) == state.numpy()).all()


def test_wrong_arguments(session) -> None:
    for engine in (SobolEngine, Theirs):
        for dimension in (0, 21202):
            with pytest.raises(ValueError):
                engine(dimension)
        begun = engine(2)
        begun.draw(3)
        with pytest.raises(ValueError):
            begun.draw_base2(2)
    with pytest.raises(RuntimeError, match="float32 or float64"):
        SobolEngine(1).draw(2, dtype=gw.float16)
