"""Pooling: planes one by one, each output row over the taps of its windows, so that the inner loop has no branches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....autograd.registry import compiled
from ....numerics.windows import Ints, Windows
from ....ops.pooling import windows_of
from ....runtime.arrays import Array, Namespace
from ..native import Count, Element, Flag, In1, Int1, IntOut1, Out1, flat, inline, native
from ..pairs import gradient_of_four, largest_of_four, sum_of_four
from ..slabs import spatial
from ..threads import split

# Facts of windows: extents, outputs, kernel, stride, padding, dilation, of three dimensions each.


def _facts(windows: Windows) -> Array:
    key = (windows.extents, windows.outputs, windows.kernel, windows.stride, windows.padding, windows.dilation)
    rows = [spatial(values, missing) for values, missing in zip(key, (1, 1, 1, 1, 0, 1), strict=True)]
    return np.array(rows, np.int64).reshape(-1)


@inline
def _first(tap: int, axis: int, facts: Array) -> int:
    """The first output along an axis in whose window a tap is inside the input."""
    left = facts[12 + axis] - tap * facts[15 + axis]
    return 0 if left <= 0 else (left + facts[9 + axis] - 1) // facts[9 + axis]


@inline
def _end(tap: int, axis: int, facts: Array) -> int:
    """The output after the last of them."""
    right = facts[axis] - 1 + facts[12 + axis] - tap * facts[15 + axis]
    return 0 if right < 0 else min(facts[3 + axis], right // facts[9 + axis] + 1)


@inline
def _place(output: int, tap: int, axis: int, facts: Array) -> int:
    """Where along an axis a window's tap is; outside of the input in padding."""
    return output * facts[9 + axis] + tap * facts[15 + axis] - facts[12 + axis]


@inline
def _inside(place: int, axis: int, facts: Array) -> bool:
    return 0 <= place < facts[axis]


@inline
def _larger(a: Element, b: Element) -> Element:
    """The larger of two, NaN if one is."""
    return a if a >= b or a != a else b


# Loops over one tap of windows that are ``by`` elements apart, called by way of :func:`_with_step`: there the compiler
# knows the step if it is 1 or 2, and makes vectors of them.


@inline
def _take_larger(row: Array, seen: Array, by: int) -> None:
    for w in range(row.size):
        row[w] = _larger(row[w], seen[w * by])


@inline
def _take_sum(row: Array, seen: Array, by: int) -> None:
    for w in range(row.size):
        row[w] += seen[w * by]


@inline
def _give(row: Array, line: Array, by: int) -> None:
    for w in range(row.size):
        line[w * by] += row[w]


@inline
def _mark(code: Array, row: Array, seen: Array, by: int, tap: int) -> None:
    for w in range(row.size):
        v = seen[w * by]
        code[w] = np.int32(tap) if (v == row[w]) | (v != v) else code[w]


@inline
def _mark_larger(code: Array, row: Array, seen: Array, by: int, tap: int) -> None:
    for w in range(row.size):
        v = seen[w * by]
        better = (v > row[w]) | (v != v) | (code[w] < 0)
        row[w] = v if better else row[w]
        code[w] = np.int32(tap) if better else code[w]


@inline
def _with_step(visit: Callable[..., None], row: Array, seen: Array, by: int) -> None:
    if by == 1:
        visit(row, seen, 1)
    elif by == 2:
        visit(row, seen, 2)
    else:
        visit(row, seen, by)


@inline
def _coded_with_step(visit: Callable[..., None], code: Element, row: Array, seen: Array, by: int, tap: int) -> None:
    if by == 1:
        visit(code, row, seen, 1, tap)
    elif by == 2:
        visit(code, row, seen, 2, tap)
    else:
        visit(code, row, seen, by, tap)


@inline
def _over_lines(visit: Callable[..., None], column: Array, x: Array, at: int, od: int, oh: int, facts: Array) -> None:
    """Visit all lines of the plane at ``at`` that a row of windows sees."""
    in_h, in_w = facts[1], facts[2]
    for i in range(facts[6]):
        z = _place(od, i, 0, facts)
        for j in range(facts[7]):
            y = _place(oh, j, 1, facts)
            if _inside(z, 0, facts) and _inside(y, 1, facts):
                visit(column, x[at + (z * in_h + y) * in_w : at + (z * in_h + y + 1) * in_w], 1)


@inline
def _spans(facts: Array) -> tuple[Array, Array, Array]:
    """Along the last axis, for each tap: the first output that meets it, the one after the last, where the first is."""
    lows, highs, ats = np.empty(facts[8], np.int64), np.empty(facts[8], np.int64), np.empty(facts[8], np.int64)
    for k in range(facts[8]):
        lows[k] = _first(k, 2, facts)
        highs[k] = max(_end(k, 2, facts), lows[k])
        ats[k] = _place(lows[k], k, 2, facts)
    return lows, highs, ats


@inline
def _shifts(facts: Array) -> Array:
    """How far in a plane each tap is from the first."""
    found = np.empty(facts[6] * facts[7] * facts[8], np.int64)
    for tap in range(found.size):
        i, j, k = tap // (facts[7] * facts[8]), tap // facts[8] % facts[7], tap % facts[8]
        found[tap] = ((i * facts[15]) * facts[1] + j * facts[16]) * facts[2] + k * facts[17]
    return found


@inline
def _halves(facts: Array) -> bool:
    """Whether windows are 2 by 2, side by side, in planes that they cover."""
    two = True
    for axis in (0, 2):
        two &= facts[6 + axis] == 2 and facts[9 + axis] == 2 and facts[12 + axis] == 0 and facts[15 + axis] == 1
        two &= facts[axis] == 2 * facts[3 + axis]
    return two and facts[1] == 1 and facts[7] == 1 and facts[13] == 0


# Maxima


@native("float32", "float64")
def maxima(x: In1, facts: Int1, out: Out1, start: Count, stop: Count) -> None:
    """The largest of each window, of planes from ``start`` on."""
    in_h, in_w, out_d, out_h, out_w = facts[1], facts[2], facts[3], facts[4], facts[5]
    plane, made = facts[0] * in_h * in_w, out_d * out_h * out_w
    lows, highs, ats = _spans(facts)
    halves, column = _halves(facts), np.empty(in_w, x.dtype)
    for unit in range(start, stop):
        for r in range(out_d * out_h):
            od, oh = r // out_h, r % out_h
            if halves:
                at = unit * plane + 2 * od * in_w
                largest_of_four(x, at, at + in_w, out, unit * made + r * out_w, out_w)
                continue
            column[:] = -np.inf
            _over_lines(_take_larger, column, x, unit * plane, od, oh, facts)
            row = out[unit * made + r * out_w : unit * made + (r + 1) * out_w]
            row[:] = -np.inf
            for k in range(facts[8]):
                _with_step(_take_larger, row[lows[k] : highs[k]], column[ats[k] :], facts[11])


@native("float32", "float64")
def maxima_with_places(x: In1, facts: Int1, out: Out1, places: IntOut1, start: Count, stop: Count) -> None:
    """The same, and where in its plane each is: the first of equal ones, but the last NaN."""
    in_h, in_w, out_d, out_h, out_w = facts[1], facts[2], facts[3], facts[4], facts[5]
    plane, made = facts[0] * in_h * in_w, out_d * out_h * out_w
    lows, highs, ats = _spans(facts)
    code, shifts = np.empty(out_w, np.int32), _shifts(facts)
    for unit in range(start, stop):
        for r in range(out_d * out_h):
            od, oh = r // out_h, r % out_h
            row = out[unit * made + r * out_w : unit * made + (r + 1) * out_w]
            found = places[unit * made + r * out_w : unit * made + (r + 1) * out_w]
            row[:] = -np.inf
            code[:] = -1
            for i in range(facts[6]):
                z = _place(od, i, 0, facts)
                for j in range(facts[7]):
                    y = _place(oh, j, 1, facts)
                    if not (_inside(z, 0, facts) and _inside(y, 1, facts)):
                        continue
                    line = x[unit * plane + (z * in_h + y) * in_w :]
                    for k in range(facts[8]):
                        tap = (i * facts[7] + j) * facts[8] + k
                        codes, part, seen = code[lows[k] : highs[k]], row[lows[k] : highs[k]], line[ats[k] :]
                        _coded_with_step(_mark_larger, codes, part, seen, facts[11], tap)
            base = (_place(od, 0, 0, facts) * in_h + _place(oh, 0, 1, facts)) * in_w - facts[14]
            for w in range(out_w):
                found[w] = base + w * facts[11] + shifts[code[w]]


@native("float32", "float64")
def maxima_gradient(g: In1, x: In1, out: In1, facts: Int1, made: Out1, start: Count, stop: Count) -> None:
    """Each window's gradient added to the first of its elements that is its maximum."""
    in_h, in_w, out_d, out_h, out_w = facts[1], facts[2], facts[3], facts[4], facts[5]
    plane, size = facts[0] * in_h * in_w, out_d * out_h * out_w
    lows, highs, ats = _spans(facts)
    halves, code, shifts = _halves(facts), np.empty(out_w, np.int32), _shifts(facts)
    for unit in range(start, stop):
        if not halves:
            made[unit * plane : (unit + 1) * plane] = 0
        for r in range(out_d * out_h):
            od, oh = r // out_h, r % out_h
            at = unit * size + r * out_w
            if halves:
                upper = unit * plane + 2 * od * in_w
                gradient_of_four(x, out, g, made, upper, upper + in_w, at, out_w)
                continue
            top, grad = out[at : at + out_w], g[at : at + out_w]
            code[:] = -1
            for i in range(facts[6] - 1, -1, -1):  # from the last, so that the first stays
                z = _place(od, i, 0, facts)
                for j in range(facts[7] - 1, -1, -1):
                    y = _place(oh, j, 1, facts)
                    if not (_inside(z, 0, facts) and _inside(y, 1, facts)):
                        continue
                    line = x[unit * plane + (z * in_h + y) * in_w :]
                    for k in range(facts[8] - 1, -1, -1):
                        tap = (i * facts[7] + j) * facts[8] + k
                        codes, part, seen = code[lows[k] : highs[k]], top[lows[k] : highs[k]], line[ats[k] :]
                        _coded_with_step(_mark, codes, part, seen, facts[11], tap)
            base = unit * plane + (_place(od, 0, 0, facts) * in_h + _place(oh, 0, 1, facts)) * in_w - facts[14]
            for w in range(out_w):
                if code[w] >= 0:
                    made[base + w * facts[11] + shifts[code[w]]] += grad[w]


# Means


@inline
def _members(output: int, axis: int, padded: bool, facts: Array) -> int:
    """How many elements of a window count along an axis."""
    begin = output * facts[9 + axis] - facts[12 + axis]
    end = min(begin + facts[6 + axis], facts[axis] + facts[12 + axis])
    return end - begin if padded else min(end, facts[axis]) - max(begin, 0)


@native("float32", "float64")
def means(x: In1, facts: Int1, padded: Flag, divisor: Count, out: Out1, start: Count, stop: Count) -> None:
    """The mean of each window, of planes from ``start`` on; the sum over ``divisor`` if that is not 0."""
    in_h, in_w, out_d, out_h, out_w = facts[1], facts[2], facts[3], facts[4], facts[5]
    plane, made = facts[0] * in_h * in_w, out_d * out_h * out_w
    lows, highs, ats = _spans(facts)
    column, members = np.empty(in_w, x.dtype), np.empty(out_w, x.dtype)
    halves = _halves(facts)
    for w in range(out_w):
        members[w] = divisor if divisor else _members(w, 2, padded, facts)
    for unit in range(start, stop):
        for r in range(out_d * out_h):
            od, oh = r // out_h, r % out_h
            if halves:
                upper = unit * plane + 2 * od * in_w
                sum_of_four(x, upper, upper + in_w, out, unit * made + r * out_w, out_w)
                row = out[unit * made + r * out_w : unit * made + (r + 1) * out_w]
                for w in range(row.size):
                    row[w] /= x.dtype.type(divisor if divisor else 4)
                continue
            column[:] = 0
            _over_lines(_take_sum, column, x, unit * plane, od, oh, facts)
            row = out[unit * made + r * out_w : unit * made + (r + 1) * out_w]
            row[:] = 0
            for k in range(facts[8]):
                _with_step(_take_sum, row[lows[k] : highs[k]], column[ats[k] :], facts[11])
            both = x.dtype.type(1 if divisor else _members(od, 0, padded, facts) * _members(oh, 1, padded, facts))
            for w in range(row.size):
                row[w] /= both * members[w]


@native("float32", "float64")
def means_gradient(g: In1, facts: Int1, padded: Flag, divisor: Count, made: Out1, start: Count, stop: Count) -> None:
    """Each window's gradient shared among its elements."""
    in_h, in_w, out_d, out_h, out_w = facts[1], facts[2], facts[3], facts[4], facts[5]
    plane, size = facts[0] * in_h * in_w, out_d * out_h * out_w
    lows, highs, ats = _spans(facts)
    share, members, line = np.empty(out_w, g.dtype), np.empty(out_w, g.dtype), np.empty(in_w, g.dtype)
    for w in range(out_w):
        members[w] = divisor if divisor else _members(w, 2, padded, facts)
    for unit in range(start, stop):
        made[unit * plane : (unit + 1) * plane] = 0
        for r in range(out_d * out_h):
            od, oh = r // out_h, r % out_h
            both = g.dtype.type(1 if divisor else _members(od, 0, padded, facts) * _members(oh, 1, padded, facts))
            own = g[unit * size + r * out_w : unit * size + (r + 1) * out_w]
            for w in range(share.size):
                share[w] = own[w] / (both * members[w])
            line[:] = 0
            for k in range(facts[8]):
                _with_step(_give, share[lows[k] : highs[k]], line[ats[k] :], facts[11])
            _over_lines(_give, line, made, unit * plane, od, oh, facts)


# The ops


def _planes(x: Array, windows: Windows) -> int:
    """How many there are; 0 where the kernels do not apply."""
    count = len(windows.kernel)
    if x.dtype.char not in "fd" or not x.size or min(windows.outputs) < 1:
        return 0
    return int(np.prod(x.shape[: x.ndim - count], dtype=np.int64))


def _work(windows: Windows) -> int:
    """Of a plane, in elements."""
    return int(np.prod(windows.outputs) * np.prod(windows.kernel))


def _register(count: int) -> None:
    @compiled(f"max_pool{count}d")
    def max_pool(
        xp: Namespace, x: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
    ) -> Array:
        windows = windows_of(count, x.shape, kernel_size, stride, padding, dilation, ceil_mode)
        planes = _planes(x, windows)
        if not planes:
            return NotImplemented
        out = np.empty((*x.shape[: x.ndim - count], *windows.outputs), x.dtype)
        split(maxima, planes, _work(windows), flat(x), _facts(windows), out.reshape(-1))
        return out

    @compiled(f"max_pool{count}d_with_indices")
    def max_pool_with_indices(
        xp: Namespace, x: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
    ) -> tuple[Array, Array]:
        windows = windows_of(count, x.shape, kernel_size, stride, padding, dilation, ceil_mode)
        planes = _planes(x, windows)
        if not planes:
            return NotImplemented
        out = np.empty((*x.shape[: x.ndim - count], *windows.outputs), x.dtype)
        places = np.empty(out.shape, np.int64)
        facts = _facts(windows)
        split(maxima_with_places, planes, _work(windows), flat(x), facts, out.reshape(-1), places.reshape(-1))
        return out, places

    @compiled(f"avg_pool{count}d")
    def avg_pool(
        xp: Namespace, x: Array, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
        count_include_pad: bool, divisor_override: int | None = None,
    ) -> Array:  # fmt: skip
        windows = windows_of(count, x.shape, kernel_size, stride, padding, 1, ceil_mode)
        planes = _planes(x, windows)
        if not planes:
            return NotImplemented
        out = np.empty((*x.shape[: x.ndim - count], *windows.outputs), x.dtype)
        shared = _facts(windows), count_include_pad, divisor_override or 0
        split(means, planes, _work(windows), flat(x), *shared, out.reshape(-1))
        return out


for _count in (1, 2, 3):
    _register(_count)


@compiled("max_pool_backward")
def max_pool_backward(
    xp: Namespace, g: Array, x: Array, out: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Array:
    count = len(kernel_size)
    windows = Windows(x.shape[-count:], out.shape[-count:], kernel_size, stride, padding, dilation)
    planes = _planes(x, windows)
    if not planes or not x.dtype == out.dtype == g.dtype:
        return NotImplemented
    made = np.empty(x.shape, g.dtype)
    split(maxima_gradient, planes, _work(windows), flat(g), flat(x), flat(out), _facts(windows), made.reshape(-1))
    return made


@compiled("avg_pool_backward")
def avg_pool_backward(
    xp: Namespace, g: Array, extents: Ints, kernel_size: Ints, stride: Ints, padding: Ints, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    count = len(extents)
    windows = Windows(extents, g.shape[g.ndim - count :], kernel_size, stride, padding, (1,) * count)
    planes = _planes(g, windows)
    if not planes:
        return NotImplemented
    made = np.empty((*g.shape[: g.ndim - count], *extents), g.dtype)
    shared = _facts(windows), count_include_pad, divisor_override or 0
    split(means_gradient, planes, _work(windows), flat(g), *shared, made.reshape(-1))
    return made
