"""Derives the client's table of Sobol directions from SciPy's copy of the numbers of Joe and Kuo.

    python -m tools.sobol_directions [--check]

The table has a bit for each odd number up to 2^19, which is set if the number's bits are a polynomial of the sequence,
and the initial direction numbers of each dimension: all are odd, and number i is below 2^i, so that i - 1 bits tell it.
"""

from __future__ import annotations

import argparse
import io
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np

from gradwire._core.composed.sobol import TABLE

DEGREES: Final = 19
"""Polynomials have fewer bits than 2 to this."""


def derived() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    """The arrays of the table."""
    with np.load(io.BytesIO((files("scipy.stats") / "_sobol_direction_numbers.npz").read_bytes())) as numbers:
        polynomials, initial = numbers["poly"], numbers["vinit"]
    marked = np.zeros(1 << (DEGREES - 1), np.uint8)
    marked[polynomials[1:] >> 1] = 1
    bits = [
        (int(initial[row, i]) >> (bit + 1)) & 1
        for row in range(1, len(polynomials))
        for i in range(int(polynomials[row]).bit_length() - 1)
        for bit in range(i)
    ]
    return {"polynomials": np.packbits(marked), "initial": np.packbits(np.array(bits, np.uint8))}


def main() -> int:
    """Write the table, or compare it with what is derived."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the table is another one")
    arrays = derived()
    if not parser.parse_args().check:
        np.savez_compressed(TABLE, **arrays)  # type: ignore[arg-type]  # numpy has the keywords wrong
        return 0
    with np.load(TABLE) as there:
        same = all(np.array_equal(there[name], array) for name, array in arrays.items())
    if not same:
        print(f"{Path(TABLE).name} is not what SciPy's numbers give", file=sys.stderr)
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
