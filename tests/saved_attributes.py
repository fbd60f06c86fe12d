"""The saved values of nodes (``grad_fn._saved_*``), compared with PyTorch over its op database.

``python -m tests.saved_attributes --record`` writes the table of names whose values both libraries share; without
``--record`` it compares, and lists PyTorch's additional names.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import torch
from torch.testing._internal.common_methods_invocations import op_db

import gradwire
from gradwire._core.backward import saved_attributes
from gradwire._core.graph.graph_mirror import Node
from gradwire_protocol.meta import Meta
from tests.op_db.bridge import Bridge
from tests.op_db.trial import operator_of

SAMPLES: Final = 6
MOST: Final = 0.6
NAMESAKES: Final = 0.2
"""The part of the samples that have to agree, in general and where an argument has the very name: a node of this name
may also be one of several that another op is made of, which differ."""
_EIGEN: Final = {"eigenvalues": "result0", "eigenvectors": "result1"}
_UPSAMPLED: Final = {"scales_h": "scales.at0", "scales_w": "scales.at1"}
UNSAMPLED: Final[dict[str, dict[str, str]]] = {
    "EmbeddingBagBackward0": {"mode": "mode.code"},
    "ErfinvBackward0": {"self": "self"},
    "FftC2CBackward0": {"normalization": "scale.code"},
    "FftC2RBackward0": {"normalization": "scale.code"},
    "FftR2CBackward0": {"normalization": "scale.code"},
    "GridSampler2DBackward0": {"interpolation_mode": "mode.code", "padding_mode": "padding_mode.code"},
    "Im2ColBackward0": {
        **{name: f"{name}.to2" for name in ("kernel_size", "dilation", "padding", "stride")},
        "self_sym_argsize_minus_1": "self.shape[-1]",
        "self_sym_argsize_minus_2": "self.shape[-2]",
    },
    "IndexAddBackward0": {"source_dim": "source.ndim"},
    "IndexCopyBackward0": {"source_dim": "source.ndim"},
    "LinalgEigBackward0": _EIGEN,
    "LinalgEighBackward0": _EIGEN,
    "MmBackward0": {"mat2": "mat2"},
    "NativeGroupNormBackward0": {"N": "self.shape[0]", "C": "self.shape[1]"},
    "PowBackward0": {"exponent": "exponent"},
    "UnsafeSplitBackward0": {"dim": "dim", "self_sym_sizes": "self.shape", "split_size": "split_size_or_sections"},
    **{
        f"AvgPool{n}DBackward0": {name: f"{name}.to{n}" for name in ("kernel_size", "stride", "padding")}
        for n in (2, 3)
    },
    **{
        f"MaxPool{n}DWithIndicesBackward0": {
            name: f"{name}.to{n}" for name in ("kernel_size", "stride", "padding", "dilation")
        }
        for n in (2, 3)
    },
    **{
        f"FractionalMaxPool{n}DBackward0": {name: f"{name}.to{n}" for name in ("kernel_size", "output_size")}
        for n in (2, 3)
    },
    **{f"Upsample{kind}2DBackward0": _UPSAMPLED for kind in ("Bicubic", "Bilinear", "Nearest")},
    **{f"Upsample{kind}1DBackward0": {"scales": "scales.at0"} for kind in ("Linear", "Nearest", "NearestExact")},
    "UpsampleTrilinear3DBackward0": {"scales_d": "scales.at0", "scales_h": "scales.at1", "scales_w": "scales.at2"},
}
"""What no sample of the op database shows, too few of them, or only by coincidence; it comes before what they show."""
ABSENT: Final = {("EmbeddingBagBackward0", "sparse")}
"""What agrees by coincidence alone."""
_FACTS: Final = ("shape", "numel", "stride", "dtype")


def first_tensor(value: Any, kind: type) -> Any:
    """The first tensor with a history among the results."""
    for item in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(item, kind) and item.grad_fn is not None:
            return item
    return None


def pairs(entry: Any, samples: int = SAMPLES) -> Iterator[tuple[Any, Any]]:
    """The nodes of some samples under torch and gradwire, where they have the same name."""
    function = operator_of(entry, gradwire)
    for sample in islice(entry.sample_inputs("cpu", torch.float64, requires_grad=True), samples):
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = first_tensor(entry(sample.input, *sample.args, **sample.kwargs), torch.Tensor)
            bridge = Bridge(gradwire)
            actual = first_tensor(
                function(bridge(sample.input), *bridge(sample.args), **bridge(sample.kwargs)), gradwire.Tensor
            )
            if expected is None or actual is None or actual.grad_fn.name() != expected.grad_fn.name():
                continue
            if actual.grad_fn.recipe is not None:
                yield expected, actual


def plain(value: Any) -> Any:
    """A value as plain data; numbers that wrapped around, as PyTorch shows some that are negative, unwrapped."""
    if isinstance(value, (torch.Tensor, gradwire.Tensor)):
        return ["tensor", list(value.shape), value.detach().double().tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if type(value) is int and value >= 1 << 63:
        return value - (1 << 64)
    if isinstance(value, (torch.dtype, gradwire.dtype)):
        return str(value)
    return value


def agree(expected: Any, actual: Any) -> bool:
    """Whether two plain values are the same, to rounding."""
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(agree, expected, actual))
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        return abs(expected - actual) <= 1e-9 * (1 + abs(expected)) or repr(expected) == repr(float(actual))
    return type(expected) is type(actual) and bool(expected == actual)


def told(node: Any) -> dict[str, Any]:
    """What a node of torch tells."""
    found = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            with contextlib.suppress(Exception):
                found[name.removeprefix("_saved_")] = plain(getattr(node, name))
    return found


def candidates(node: Node, name: str) -> Iterator[str]:
    """Where a value of this name may be found: the argument of the name, then results, then facts about arguments."""
    op, described = node.recipe.entry.op, node.recipe.described
    if name in op.positions:
        yield from (name, f"{name}.code", f"{name}.tuple")
    if name.startswith("result"):
        yield "result" + (name.removeprefix("result") or "0")
    stem = next(
        (s for s in ("_sym_sizes", "_sym_strides", "_sym_numel", "_sym_argsize", "_scalar_type") if s in name), ""
    )
    if not stem:
        for i in range(len(node.outs)):
            yield f"result{i}"
        yield from (p.name for p in op.params if p.name != name)
        return
    tensors = [p.name for p, value in zip(op.params, described, strict=True) if type(value) is Meta]
    own = name.partition(stem)[0]
    for operand in sorted(tensors, key=lambda p: p != own):
        yield from (f"{operand}.{fact}" for fact in _FACTS)
        yield from (f"{operand}.shape[{i}]" for i in (0, 1, 2, -1, -2))


def found_at(node: Node, source: str) -> Any:
    """The plain value of a source, or an object equal to nothing."""
    try:
        return plain(saved_attributes.find(node, source))
    except Exception:
        return object()


def names_of_the_same(entry: Any) -> Iterator[tuple[str, str, list[str]]]:
    """By node and name, the sources that have PyTorch's value, for each sample."""
    for expected, actual in pairs(entry):
        node = actual.grad_fn
        for name, value in told(expected.grad_fn).items():
            yield node.label, name, [s for s in candidates(node, name) if agree(value, found_at(node, s))]


def record() -> None:
    seen: dict[tuple[str, str], Counter[str]] = {}
    for entry in op_db:
        if not entry.supports_autograd:
            continue
        with contextlib.suppress(Exception):
            for label, name, sources in names_of_the_same(entry):
                seen.setdefault((label, name), Counter()).update(["", *sources])
    table: dict[str, dict[str, str]] = {}
    for (label, name), counted in sorted(seen.items()):
        every = counted.pop("")
        stem = name.partition("_sym_")[0]
        namesakes = [s for s in counted if s.partition(".")[0] == stem and counted[s] >= NAMESAKES * every]
        others = [s for s in counted if counted[s] >= MOST * every]
        best = max(namesakes or others, key=lambda s: (counted[s], s == name), default="")
        if best and (label, name) not in ABSENT:
            table.setdefault(label, {})[name] = best
        else:
            print(label, name, every, counted.most_common(1))
    for label, row in UNSAMPLED.items():
        table.setdefault(label, {}).update(row)
    lines = [f"{json.dumps(label)}: {json.dumps(dict(sorted(row.items())))}" for label, row in sorted(table.items())]
    saved_attributes.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{sum(map(len, table.values()))} of {len(seen)} names")


def differences(entry: Any, samples: int = SAMPLES) -> Iterator[str]:
    """What differs between the two libraries in an entry of the op database."""
    for expected, actual in pairs(entry, samples):
        values = told(expected.grad_fn)
        for name in saved_attributes.names(actual.grad_fn):
            try:
                mine = plain(getattr(actual.grad_fn, name))
            except RuntimeError as error:
                mine = repr(error)
            theirs = values.get(name.removeprefix("_saved_"))
            if not agree(theirs, mine):
                yield f"{entry.name}: {actual.grad_fn.label}.{name}: torch {theirs!r:.100}, gradwire {mine!r:.100}"


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        for each in op_db:
            if each.supports_autograd:
                with contextlib.suppress(NotImplementedError):
                    print(*differences(each), sep="\n", end="")
