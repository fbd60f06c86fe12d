"""Finds by trial what a client can know of an op's results without its rule: a name of a rule for shapes and dtypes.

The rules of the op table are Python. Other clients know a few general rules by name (``broadcast``, ``reduce``,
``promote``, ...), which this module tries on many calls of an op: a rule describes the op if it agrees with the op
table on every call that is valid. The TypeScript client has the same general rules in ``client/typescript/src/rules``.

A rule for shapes is one of:

* ``broadcast``: the common shape of all operands;
* ``@k``: the shape of the argument at position k;
* ``reduce``: ``self`` without the dimensions ``dim``, or with extents of one there, by ``keepdim``;
* ``loss``: no dimensions, unless ``reduction`` is ``"none"``: then the common shape of the first two;
* ``size``: the parameter ``size``;
* ``scalar``: no dimensions;
* ``?``: none of these; a client may have a rule for this op alone.

A rule for dtypes is one of:

* ``promote``: the common dtype of all operands, tensors and numbers;
* ``@k``: the dtype of the argument at position k;
* the name of a dtype, or ``default``: the default float dtype;
* one of the first two followed by ``.float`` (integers become the default float), ``.real``, ``.complex`` or
  ``.summed`` (integers become int64);
* ``dtype|`` and one of these: the parameter ``dtype`` where it is given;
* ``?``: none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, Final, NamedTuple

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta, Shape, meta
from gradwire_protocol.params import Kind, Param
from gradwire_protocol.promotion import DEFAULT_FLOAT, ScalarKind, result_type
from gradwire_protocol.shapes import broadcast, canonical_dims, reduced_shape
from gradwire_protocol.table import Op

SHAPES: Final[tuple[Shape, ...]] = (
    (2, 3), (3, 2), (3, 3), (3,), (), (2, 1, 3), (2, 3, 4), (2, 4, 5), (1, 2, 6, 6), (3, 2, 3, 3), (1, 1, 4, 4, 4),
    (6,),
)  # fmt: skip
INTS: Final = (1, 0, 2, 3)
TUPLES: Final = ((3, 3), (0,), (2, 3), (1, 0), (6,), (2,), (3,), (4, 4), (2, 2, 2), ())
WORDS: Final = ("mean", "sum", "none", "trunc", "linear", "ij,jk->ik", "prod")
MAX_TRIALS: Final = 1_500
MAX_RECIPES: Final = 12
MAX_VARIED: Final = 4
"""How many valid calls are also tried with all combinations of dtypes."""
VARIED: Final = tuple(d for d in dtypes.COMPUTED if d.name not in ("int8", "int32", "complex128"))
KINDS: Final = tuple(ScalarKind)
FIRST_DTYPES: Final = (dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64)


class Rule(NamedTuple):
    """The names of the rules that describe an op's results."""

    shape: str
    dtype: str


class Trial(NamedTuple):
    """The arguments of a valid call, and what the op table says of its results."""

    values: tuple[Any, ...]
    shapes: tuple[Shape, ...]
    dtypes: tuple[DType, ...]


def rule_of(op: Op) -> Rule:
    """The general rules that agree with the op's own on every valid trial."""
    if op.results == 0 or op.internal:
        return Rule("none", "none")
    trials = list(_trials(op))
    if not trials:
        return Rule("?", "?")
    results = len(trials[0].dtypes)
    if any(len(trial.dtypes) != results for trial in trials):
        shape = "?"
        found = {_first(_dtype_rules(op), trials, lambda rule, t: set(t.dtypes) <= {rule(t.values)})}
        return Rule(shape, found.pop())
    shapes = [
        "broadcast" if op.elementwise and op.results == 1 and not op.view else
        _first(_shape_rules(op), trials, lambda rule, t, i=i: rule(t.values) == t.shapes[i])  # type: ignore[misc]
        for i in range(results)
    ]  # fmt: skip
    types = [
        _first(_dtype_rules(op), trials, lambda rule, t, i=i: rule(t.values) is t.dtypes[i])  # type: ignore[misc]
        for i in range(results)
    ]
    return Rule(_joined(shapes), _joined(types))


def _joined(names: list[str]) -> str:
    return names[0] if len(set(names)) == 1 else ",".join(names)


def _first(rules: dict[str, Callable[..., Any]], trials: list[Trial], agrees: Callable[[Any, Trial], bool]) -> str:
    for name, rule in rules.items():
        try:
            if all(agrees(rule, trial) for trial in trials):
                return name
        except Exception:  # the rule does not apply to such arguments
            continue
    return "?"


# Trials


def _trials(op: Op) -> Iterator[Trial]:
    varied: set[tuple[int, ...]] = set()
    for recipe in _recipes(op):
        ranks = tuple(v.ndim if isinstance(v, Meta) else -1 for v in recipe)
        new = ranks not in varied and len(varied) < MAX_VARIED
        varied.add(ranks)
        for values in _varied(op, recipe) if new else [recipe]:
            trial = _tried(op, values)
            if trial is not None:
                yield trial


def _tried(op: Op, values: tuple[Any, ...]) -> Trial | None:
    try:
        outs = op.infer(values).outs[: op.results]  # more are intermediate results
    except Exception:  # an invalid call, or one that no client makes
        return None
    return Trial(values, tuple(out.shape for out in outs), tuple(out.dtype for out in outs))


def _recipes(op: Op) -> list[tuple[Any, ...]]:
    """Valid calls with different shapes."""
    pools = [_pool(op, param) for param in op.params]
    plain = [pool if param.required else pool[:1] for param, pool in zip(op.params, pools, strict=True)]
    found: list[tuple[Any, ...]] = []
    for chosen in (plain, pools):
        for values in islice(_diagonal(chosen), MAX_TRIALS):
            for dtype in FIRST_DTYPES:
                typed = tuple(_typed(value, dtype) for value in values)
                if _tried(op, typed) is not None:
                    found.append(typed)
                    break
            if len(found) >= (MAX_RECIPES if chosen is plain else 2 * MAX_RECIPES):
                break
    return found


def _typed(value: Any, dtype: DType) -> Any:
    """A tensor of the usual dtype as one of another."""
    return meta(value.shape, dtype) if isinstance(value, Meta) and value.dtype is dtypes.float32 else value


def _diagonal(pools: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """All combinations, those with early entries of every pool first."""
    longest = sum(len(pool) - 1 for pool in pools)
    for total in range(longest + 1):
        yield from _with_sum(pools, total)


def _with_sum(pools: list[list[Any]], total: int) -> Iterator[tuple[Any, ...]]:
    if not pools:
        if total == 0:
            yield ()
        return
    for i, value in enumerate(pools[0][: total + 1]):
        for rest in _with_sum(pools[1:], total - i):
            yield (value, *rest)


def _pool(op: Op, param: Param) -> list[Any]:
    """Arguments to try for a parameter, its default first."""
    pool: list[Any] = [] if param.required else [_as_kind(param, param.default)]
    tensors = [meta(shape, dtypes.float32) for shape in SHAPES]
    if param.kind in (Kind.TENSOR, Kind.OPERAND):
        if param.required or op.elementwise:
            pool += tensors
        if param.required and param.kind is Kind.TENSOR:
            pool += [meta(shape, dtypes.int64) for shape in SHAPES[:4]]
    elif param.kind is Kind.TENSORS:
        pool += [] if param.optional else [[one, one] for one in tensors] + [[one] for one in tensors]
    elif param.kind is Kind.OPTIONAL_TENSORS:
        pool += [[one] for one in (meta((3,), dtypes.int64), *tensors)]
    elif param.kind is Kind.SCALAR and param.required:
        pool.append(ScalarKind.FLOAT)
    elif param.kind is Kind.POSITION and param.required:
        pool += [0, 1]
    elif param.kind is Kind.ATTRIBUTE:
        pool += _attributes(param)
    elif param.kind is Kind.PAYLOAD:
        pool.append(None)
    return list(dict.fromkeys(map(_hashable, pool))) if param.kind is Kind.ATTRIBUTE else pool


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _attributes(param: Param) -> list[Any]:
    text = param.describe().split(": ", 1)[1].split(" = ")[0]
    known: list[Any] = []
    for part in text.split(" | "):
        if part == "bool" and param.name != "reduction":
            known += [False, True]
        elif part in ("int", "float") and "bool" not in text:
            known += INTS
        elif part == "int":
            known += [3]
        elif part.startswith(("tuple[int", "tuple[float")):
            known += TUPLES
        elif part == "str" and param.name == "device":
            pass
        elif part == "str":
            known += WORDS
        elif part == "dtype":
            known += [dtypes.float64, dtypes.int64]
        elif part == "tuple[tuple[int]]":
            known += [((0,), (0,))]
    return known


def _as_kind(param: Param, value: Any) -> Any:
    if param.kind in (Kind.SCALAR, Kind.OPERAND) and value is not None and not isinstance(value, Meta):
        return ScalarKind.of(value)
    return value


def _varied(op: Op, recipe: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The call with tensors of other dtypes, numbers for operands, and no dimensions."""
    at = [i for i, value in enumerate(recipe) if isinstance(value, Meta)]
    lists = [i for i, value in enumerate(recipe) if isinstance(value, list) and value and isinstance(value[0], Meta)]
    yield recipe
    if len(at) <= 2:
        choices: Iterator[tuple[DType, ...]] = product(VARIED, repeat=len(at))
    else:
        alike = [(dtype,) * len(at) for dtype in VARIED]
        one = [
            tuple(dtype if i == k else recipe[j].dtype for i, j in enumerate(at))
            for k in range(len(at))
            for dtype in VARIED
        ]
        choices = iter([*alike, *one])
    for chosen in choices:
        values = list(recipe)
        for i, dtype in zip(at, chosen, strict=True):
            values[i] = meta(recipe[i].shape, dtype)
        yield tuple(values)
        for i in at:
            if op.params[i].kind is Kind.OPERAND and chosen[0] is chosen[-1]:
                for kind in KINDS:
                    yield (*values[:i], kind, *values[i + 1 :])
    for i in lists:
        for a, b in product(VARIED, repeat=2):
            items = [meta(one.shape, dtype) for one, dtype in zip(recipe[i], (a, b), strict=False)]
            yield (*recipe[:i], items, *recipe[i + 1 :])
    for i, param in enumerate(op.params):
        if param.kind is Kind.SCALAR and recipe[i] is not None:
            for kind in KINDS:
                for dtype in (dtypes.int64, dtypes.float32, dtypes.complex64):
                    values = [meta(v.shape, dtype) if isinstance(v, Meta) else v for v in recipe]
                    yield (*values[:i], kind, *values[i + 1 :])


# Rules


def _named(op: Op, values: tuple[Any, ...], name: str, default: Any = None) -> Any:
    at = op.positions.get(name)
    return default if at is None else values[at]


def _operands(op: Op, values: tuple[Any, ...]) -> list[Meta | ScalarKind]:
    found: list[Meta | ScalarKind] = []
    for param, value in zip(op.params, values, strict=False):
        if isinstance(value, Meta) or (param.kind is Kind.OPERAND and isinstance(value, ScalarKind)):
            found.append(value)
        elif isinstance(value, list):
            found += [v for v in value if isinstance(v, Meta)]
    return found


def _common_shape(op: Op, values: tuple[Any, ...]) -> Shape:
    return broadcast(*[v.shape for v in _operands(op, values) if isinstance(v, Meta)])


def _reduced(op: Op, values: tuple[Any, ...]) -> Shape:
    first: Meta = values[0]
    dim = _named(op, values, "dim")
    keepdim = bool(_named(op, values, "keepdim", False))
    return reduced_shape(first.shape, canonical_dims(dim, first.ndim), keepdim) if first.ndim else ()


def _shape_rules(op: Op) -> dict[str, Callable[..., Any]]:
    rules: dict[str, Callable[..., Any]] = {}
    tensors = [i for i, p in enumerate(op.params) if p.kind in (Kind.TENSOR, Kind.OPERAND)]
    for i in tensors:
        rules[f"@{i}"] = lambda values, i=i: values[i].shape
    if "dim" in op.positions and tensors[:1] == [0]:
        rules["reduce"] = lambda values: _reduced(op, values)
    if "reduction" in op.positions:
        rules["loss"] = lambda values: _common_shape(op, values) if _named(op, values, "reduction") == "none" else ()
    if "size" in op.positions:
        rules["size"] = lambda values: tuple(_named(op, values, "size"))
    if len(tensors) > 1:
        rules["broadcast"] = lambda values: _common_shape(op, values)
    rules["scalar"] = lambda values: ()
    return rules


def _summed(dtype: DType) -> DType:
    return dtypes.int64 if dtype.category <= dtypes.INTEGRAL else dtype


def _floated(dtype: DType) -> DType:
    return DEFAULT_FLOAT.get() if dtype.category <= dtypes.INTEGRAL else dtype


CONVERTED: Final[dict[str, Callable[[DType], DType]]] = {
    "": lambda dtype: dtype,
    ".float": _floated,
    ".real": DType.to_real,
    ".summed": _summed,
    ".complex": DType.to_complex,
    ".float.complex": lambda dtype: _floated(dtype).to_complex(),
    ".float.real": lambda dtype: _floated(dtype).to_real(),
}


def _promoted(op: Op, values: tuple[Any, ...]) -> DType:
    return result_type([v if isinstance(v, ScalarKind) else (v.dtype, v.ndim) for v in _operands(op, values)])


def _dtype_rules(op: Op) -> dict[str, Callable[..., Any]]:
    takers = [i for i, p in enumerate(op.params) if p.kind in (Kind.TENSOR, Kind.OPERAND)]
    plain: dict[str, Callable[..., Any]] = {}
    sources: dict[str, Callable[..., DType]] = {f"@{i}": lambda values, i=i: values[i].dtype for i in takers}
    if len(takers) > 1 or any(p.kind in (Kind.TENSORS, Kind.OPERAND) for p in op.params):
        sources["promote"] = lambda values: _promoted(op, values)
    for suffix, convert in CONVERTED.items():
        for source, read in sources.items():
            plain[source + suffix] = lambda values, read=read, convert=convert: convert(read(values))
    for dtype in (dtypes.bool_, dtypes.int64, dtypes.int32, dtypes.uint8, dtypes.uint64, dtypes.float64):
        plain[dtype.name] = lambda values, dtype=dtype: dtype
    plain["default"] = lambda values: DEFAULT_FLOAT.get()
    if "dtype" not in op.positions:
        return plain
    given: dict[str, Callable[..., Any]] = {
        f"dtype|{name}": lambda values, rule=rule: _named(op, values, "dtype") or rule(values)
        for name, rule in plain.items()
    }
    return given | plain
