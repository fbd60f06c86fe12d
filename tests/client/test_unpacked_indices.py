"""An unpack hook must return indices, masks and numbers of the kind and shape that were saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

import gradwire

USES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "mask": lambda lib, x: x[x > 1], "positions": lambda lib, x: x[lib.tensor([0, 2])],
    "gather": lambda lib, x: x.gather(0, lib.tensor([0, 2])), "where": lambda lib, x: lib.where(x > 1, x, x * 2),
    "masked_fill": lambda lib, x: x.masked_fill(x > 1, 3),
    "index_put": lambda lib, x: x.index_put((x > 1,), lib.tensor(3.0)),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([0, 2])),
    "embedding": lambda lib, x: lib.nn.functional.embedding(lib.tensor([0, 2]), x.reshape(4, 1)),
    "product": lambda lib, x: x * x,
}  # fmt: skip
WAYS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": lambda t: t.float(), "integers": lambda t: t.long(), "bool": lambda t: t.bool(),
    "cut": lambda t: t[:1], "same": lambda t: t.clone(),
}  # fmt: skip
TAKEN_BY_TORCH: Final = {
    ("mask", "integers"), ("positions", "bool"), ("positions", "cut"), ("gather", "cut"), ("where", "cut"),
    ("masked_fill", "cut"), ("index_put", "integers"), ("index_put", "cut"), ("index_select", "cut"),
    ("embedding", "cut"), ("product", "cut"), ("gather", "bool"), ("index_select", "bool"), ("embedding", "bool"),
}  # fmt: skip
"""Torch computes with what fits by chance, or refuses with the class of whichever op meets it first. Here a tensor
that cannot be the one that was saved is refused."""


def _outcome(lib: Any, use: str, way: str) -> Any:
    x = lib.arange(4.0, requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, WAYS[way]):
        y = USES[use](lib, x)
    try:
        y.sum().backward()
    except IndexError:
        return "IndexError"
    except RuntimeError:
        return "RuntimeError"
    return x.grad.tolist()


CASES: Final = [(use, way) for use in USES for way in WAYS if (use, way) != ("gather", "integers")]
"""Torch's gather saves the tensor that it reads as well, which is then refused."""


@pytest.mark.parametrize(("use", "way"), CASES)
def test_another_kind_or_shape_is_refused_by_backward(session: Any, use: str, way: str) -> None:
    found = _outcome(gradwire, use, way)
    if (use, way) in TAKEN_BY_TORCH:
        assert found in ("IndexError", "RuntimeError")
    else:
        assert found == _outcome(torch, use, way)
    session.synchronize()  # nothing is left to be told later
