"""``assert_close``. Values are compared on the server: a comparison of any size costs one round trip, and a second one
to say what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, GradwireError
from gradwire_protocol.promotion import join

from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.surface.creation import as_tensor, tensor
from .._core.tensor.tensor import Tensor

PRECISIONS: Final[dict[DType, tuple[float, float]]] = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
"""By dtype, the relative and the absolute tolerance that hold unless others are given; 0 for all others."""

_NUMBERS: Final = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


class _Pair:
    """Two tensors to compare, and their position in the arguments."""

    def __init__(self, actual: Any, expected: Any, path: str) -> None:
        self.actual = actual
        self.expected = expected
        self.path = path
        self.rtol = self.atol = 0.0


class _Comparison:
    """One call of :func:`assert_close`."""

    def __init__(
        self, allow_subclasses: bool, rtol: float | None, atol: float | None, equal_nan: bool, check_device: bool,
        check_dtype: bool, check_stride: bool, msg: str | Callable[[str], str] | None,
    ) -> None:  # fmt: skip
        if (rtol is None) != (atol is None):
            raise ArgumentValueError(f"rtol and atol are given both or not at all, not rtol={rtol} and atol={atol}")
        self.allow_subclasses = allow_subclasses
        self.tolerances = None if rtol is None or atol is None else (float(rtol), float(atol))
        self.equal_nan = bool(equal_nan)
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_stride = check_stride
        self.msg = msg
        self.pairs: list[_Pair] = []

    def fail(self, text: str, path: str) -> AssertionError:
        """The error to raise, with the caller's text if given."""
        text += f"\nIt is the item {path}." if path else ""
        if callable(self.msg):
            text = self.msg(text)
        return AssertionError(text if self.msg is None or callable(self.msg) else self.msg)

    # What is compared with what

    def gather(self, actual: Any, expected: Any, path: str = "") -> None:
        """Find the pairs in two structures, which must match."""
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                raise self.fail(f"The lengths differ: {len(actual)} of actual, {len(expected)} of expected.", path)
            for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                self.gather(a, e, f"{path}[{i}]")
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            if actual.keys() != expected.keys():
                more, less = sorted(map(repr, actual.keys() - expected.keys())), expected.keys() - actual.keys()
                raise self.fail(
                    f"The keys differ: actual alone has {', '.join(more) or 'none'}, expected alone has "
                    f"{', '.join(sorted(map(repr, less))) or 'none'}.",
                    path,
                )
            for key in expected:
                self.gather(actual[key], expected[key], f"{path}[{key!r}]")
        else:
            self._leaves(actual, expected, path)

    def _leaves(self, actual: Any, expected: Any, path: str) -> None:
        if actual is None or expected is None:
            if actual is not expected:
                raise self.fail(f"None equals None alone: actual is {actual!r:.60}, expected {expected!r:.60}.", path)
            return
        bools = [isinstance(v, (bool, np.bool_)) for v in (actual, expected)]
        if all(bools):
            if bool(actual) is not bool(expected):
                raise self.fail(f"Booleans differ: actual is {actual}, expected {expected}.", path)
        elif not any(bools) and all(isinstance(v, (int, float, complex, np.number)) for v in (actual, expected)):
            self._numbers(actual, expected, path)
        else:
            self._tensors(actual, expected, path)

    def _numbers(self, actual: Any, expected: Any, path: str) -> None:
        kinds = [next(k for k in (complex, float, int) if isinstance(_plain(v), k)) for v in (actual, expected)]
        if self.check_dtype and kinds[0] is not kinds[1]:
            raise self.fail(f"The kinds of numbers differ: {kinds[0].__name__} and {kinds[1].__name__}.", path)
        found: list[Any] = [np.asarray(_plain(v)) for v in (actual, expected)]
        rtol, atol = self._tolerances(*(_NUMBERS[k] for k in kinds))
        if not np.isclose(found[0], found[1], rtol=rtol, atol=atol, equal_nan=self.equal_nan):
            difference = abs(found[0] - found[1])
            size = abs(found[1])
            relative = float(difference / size) if size else float("inf")
            raise self.fail(
                f"Numbers differ: {_plain(actual)!r} is not {_plain(expected)!r}: by {float(difference):g}, "
                f"{relative:g} of the expected (allowed {atol:g} + {rtol:g} of it).",
                path,
            )

    def _tensors(self, actual: Any, expected: Any, path: str) -> None:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not self.allow_subclasses and type(actual) is not type(expected)):
            raise ArgumentTypeError(
                f"a {type(actual).__name__} is not compared with a {type(expected).__name__}"
                + (f" (item {path})" if path else "")
            )
        made: list[Any] = []
        for value in (actual, expected):
            try:
                made.append(value.detach() if isinstance(value, Tensor) else as_tensor(value))
            except (TypeError, ValueError, GradwireError):
                raise ArgumentTypeError(f"no tensor can be made of a {type(value).__name__} to compare it") from None
        pair = _Pair(made[0], made[1], path)
        self._attributes(pair)
        self.pairs.append(pair)

    def _attributes(self, pair: _Pair) -> None:
        a, e = pair.actual, pair.expected
        if a.shape != e.shape:
            raise self.fail(f"The shapes differ: {list(a.shape)} of actual, {list(e.shape)} of expected.", pair.path)
        if self.check_device and a.device != e.device:
            raise self.fail(f"The devices differ: {a.device} of actual, {e.device} of expected.", pair.path)
        if self.check_dtype and a.dtype is not e.dtype:
            raise self.fail(f"The dtypes differ: {a.dtype!r} of actual, {e.dtype!r} of expected.", pair.path)
        if self.check_stride and a.stride() != e.stride():
            raise self.fail(f"The strides differ: {a.stride()} of actual, {e.stride()} of expected.", pair.path)
        pair.rtol, pair.atol = self._tolerances(a.dtype, e.dtype)
        if a.device != e.device:
            a, e = a.cpu(), e.cpu()
        if a.dtype is not e.dtype:
            common = join(a.dtype, e.dtype)
            a, e = a.to(common), e.to(common)
        pair.actual, pair.expected = a, e

    def _tolerances(self, *kinds: DType) -> tuple[float, float]:
        if self.tolerances is not None:
            return self.tolerances
        found = [PRECISIONS.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(rtol for rtol, _ in found), max(atol for _, atol in found)

    # Values

    def compare(self) -> None:
        """Compare all pairs, and describe the first that differs."""
        if not self.pairs:
            return
        counts = [call("sum", call("logical_not", self._close(p))) for p in self.pairs]
        by_session: dict[Any, list[int]] = {}
        for i, count in enumerate(counts):
            by_session.setdefault(count._session, []).append(i)
        wrong = {}
        for session, places in by_session.items():
            for i, value in zip(places, session.read([counts[i] for i in places]), strict=True):
                wrong[i] = int(value.item())
        for i, pair in enumerate(self.pairs):
            if wrong[i]:
                raise self._described(pair, wrong[i])

    def _close(self, pair: _Pair) -> Any:
        rtol, atol = pair.rtol, pair.atol
        if pair.actual.dtype is dtypes.bool_:
            return call("eq", pair.actual, pair.expected)
        return call("isclose", pair.actual, pair.expected, rtol, atol, self.equal_nan)

    def _described(self, pair: _Pair, wrong: int) -> AssertionError:
        a, e = pair.actual, pair.expected
        wide = dtypes.complex128 if a.dtype.is_complex else dtypes.float64
        close = self._close(pair)
        difference = call("abs", call("sub", call("to", a, wide), call("to", e, wide)))
        size = call("abs", call("to", e, wide))
        difference = call("masked_fill", difference, close, 0.0)
        relative = call("masked_fill", call("div", difference, size), close, 0.0)
        found = []
        for amount in (difference, relative):
            # NaN is further away than anything.
            amount = call("nan_to_num", amount, float("inf"), float("inf"), 0.0)
            at = call("argmax", call("reshape", amount, (-1,)), 0)
            found += [at, call("max", amount)]
        values = a._session.read(found)
        at_most, most, at_share, share = (v.item() for v in values if v is not None)
        total = e.numel()
        where = [_index(int(at), tuple(e.shape)) for at in (at_most, at_share)]
        here = tensor(int(at_most), device=e.device)
        pairs = [call("index_select", call("reshape", t, (-1,)), 0, call("reshape", here, (1,))) for t in (a, e)]
        left, right = (v.item() if v is not None else None for v in a._session.read(pairs))
        exact = " (they must be equal)" if pair.rtol == pair.atol == 0 else ""
        return self.fail(
            f"{wrong} of {total} elements differ ({wrong / total:.1%}){exact}.\n"
            f"Greatest difference: {most:g}{where[0]}, where actual is {left} and expected {right} "
            f"(allowed {pair.atol:g} + {pair.rtol:g} of the expected).\n"
            f"Greatest relative difference: {share:g}{where[1]}.",
            pair.path,
        )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _index(flat: int, shape: tuple[int, ...]) -> str:
    if not shape:
        return ""
    return f" at {tuple(int(i) for i in np.unravel_index(flat, shape))}"


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that two tensors are close: that ``|actual - expected| <= atol + rtol * |expected|`` for each element.

    Numbers, arrays, and sequences and mappings of all these are compared, too, part by part. The tolerances follow the
    dtype unless both are given: (1.3e-6, 1e-5) for float32, (1e-7, 1e-7) for float64, (1e-3, 1e-5) for float16,
    (1.6e-2, 1e-5) for bfloat16, complex numbers as their parts, and 0 for all others.

    Args:
        allow_subclasses: compare values of related types, too.
        equal_nan: let NaN be equal to NaN.
        check_device, check_dtype, check_stride: whether these must be the same. Layouts always are.
        msg: what the error says instead, or a function of what it would say.

    Raises:
        AssertionError: with the greatest difference and where it is, or what else differs.
        ArgumentTypeError: for values that cannot be compared.
        ArgumentValueError: when only one of the tolerances is given.
    """
    comparison = _Comparison(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride, msg)
    with no_grad():
        comparison.gather(actual, expected)
        comparison.compare()


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """The older form of :func:`assert_close`, with wider tolerances, in which dtypes may differ."""
    warnings.warn("torch.testing.assert_allclose is an old form of assert_close", FutureWarning, stacklevel=2)
    given = actual if isinstance(actual, Tensor) else tensor(actual)
    wanted = expected if isinstance(expected, Tensor) else tensor(expected, dtype=given.dtype)
    if rtol is None and atol is None:
        each = [_OLDER_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (given, wanted)]
        rtol, atol = max(one[0] for one in each), max(one[1] for one in each)
    assert_close(given, wanted, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


_OLDER_TOLERANCES: Final = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
