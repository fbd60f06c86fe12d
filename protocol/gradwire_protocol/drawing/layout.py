"""Layout of a layered drawing: boxes and the lines between them (Sugiyama's method in four steps).

Every box is one layer below the lowest box that points to it. Within a layer, boxes are ordered by the median of their
neighbours, so that few lines cross. Coordinates minimise the slope of lines. Lines that pass a layer get a lane in it;
lines to one box share a lane, so that a weight that is used a hundred times is reached by one line.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BESIDE: Final = 26.0
"""The gap between neighbours of a layer."""
LANE: Final = 12.0
BETWEEN: Final = 34.0
"""The minimum gap between layers; larger if lines go far to the side."""
BETWEEN_AT_MOST: Final = 110.0
PORT: Final = 16.0
"""The gap between lines that leave a box, and from its corners."""
SWEEPS: Final = 24
SETTLING: Final = 48
EXCHANGES: Final = 4000
"""The number of boxes and lanes up to which neighbours are swapped one by one, which is slow."""


@dataclass(frozen=True)
class Line:
    """A segment of the line between two boxes, from the bottom of one layer to the top of the next.

    Attributes:
        start, end: its ends.
        down_to: the end of its straight part through the reached layer; equal to the end at a box.
        source, target: the boxes at its ends; ``None`` for a lane.
        toward: the box where the line ends.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    down_to: float
    source: int | None
    target: int | None
    toward: int


@dataclass(frozen=True)
class Layout:
    """A drawing's geometry: upper left corners of the boxes in order, lines, and the total size."""

    corners: list[tuple[float, float]]
    lines: list[Line]
    width: float
    height: float


def arrange(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out boxes of these sizes, with these edges, which must not form a cycle.

    Raises:
        ValueError: for edges that form a cycle.
    """
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    unique = list(dict.fromkeys(edges))
    plan = _Plan(sizes, unique, layers_of(len(sizes), unique))
    plan.order()
    plan.settle()
    return plan.measured()


def layers_of(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: one below the lowest box that points to it; without such a box, just above its targets.

    Raises:
        ValueError: for edges that form a cycle.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for a, b in edges:
        after[a].append(b)
        missing[b] += 1
    layer = [0] * count
    sources = [i for i in range(count) if missing[i] == 0]
    ready = list(sources)
    done = 0
    while ready:
        a = ready.pop()
        done += 1
        for b in after[a]:
            layer[b] = max(layer[b], layer[a] + 1)
            missing[b] -= 1
            if not missing[b]:
                ready.append(b)
    if done < count:
        raise ValueError("the edges form a cycle")
    for a in sources:
        if after[a]:
            layer[a] = min(layer[b] for b in after[a]) - 1
    return layer


class _Plan:
    """Boxes and lanes, together called places: the first ``len(sizes)`` are boxes, in order."""

    def __init__(self, sizes: Sequence[tuple[float, float]], edges: list[tuple[int, int]], layer: list[int]) -> None:
        self.sizes = sizes
        self.boxes = len(sizes)
        self.layer = list(layer)
        self.toward = list(range(len(sizes)))
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        lanes: dict[tuple[int, int], int] = {}
        for a, b in edges:
            previous = a
            for level in range(layer[a] + 1, layer[b]):
                lane = lanes.get((b, level))
                if lane is None:
                    lane = lanes[b, level] = len(self.layer)
                    self.layer.append(level)
                    self.toward.append(b)
                    self.above.append([])
                    self.below.append([])
                self._join(previous, lane)
                previous = lane
            self._join(previous, b)
        self.layers: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for place in self._as_walked():
            self.layers[self.layer[place]].append(place)
        self.at = [0] * len(self.layer)
        self._number(self.layers)
        self.x = [0.0] * len(self.layer)

    def _join(self, a: int, b: int) -> None:
        if b not in self.below[a]:
            self.below[a].append(b)
            self.above[b].append(a)

    def _as_walked(self) -> list[int]:
        """All places in depth-first order, which has few crossings initially."""
        seen = [False] * len(self.layer)
        order = []
        for start in range(len(self.layer)):
            if self.above[start]:
                continue
            stack = [start]
            while stack:
                place = stack.pop()
                if not seen[place]:
                    seen[place] = True
                    order.append(place)
                    stack.extend(reversed(self.below[place]))
        return order

    def _number(self, layers: list[list[int]]) -> None:
        for row in layers:
            for i, place in enumerate(row):
                self.at[place] = i

    # Order within the layers

    def order(self) -> None:
        """Reorder the layers, alternately from above and from below, and keep the order with the fewest crossings."""
        best, fewest, since = [list(row) for row in self.layers], self._crossings(), 0
        for sweep in range(SWEEPS):
            if not fewest or since >= 6:
                break
            down = sweep % 2 == 0
            for row in self.layers[1:] if down else self.layers[-2::-1]:
                self._sort(row, self.above if down else self.below)
            crossings = self._crossings()
            since += 1
            if crossings < fewest:
                best, fewest, since = [list(row) for row in self.layers], crossings, 0
        self.layers = best
        self._number(best)
        if fewest and len(self.layer) <= EXCHANGES:
            self._exchange()

    def _sort(self, row: list[int], joined: list[list[int]]) -> None:
        at = self.at
        middles = {p: sum(at[q] for q in joined[p]) / len(joined[p]) if joined[p] else float(at[p]) for p in row}
        row.sort(key=middles.__getitem__)
        for i, place in enumerate(row):
            at[place] = i

    def _crossings(self) -> int:
        total = 0
        for row in self.layers:
            seen: list[int] = []
            for place in row:
                ends = [self.at[q] for q in self.below[place]]
                total += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return total

    def _exchange(self) -> None:
        """Swap neighbours while that reduces crossings."""
        at = self.at
        for _ in range(8):
            better = False
            for row in self.layers:
                for i in range(len(row) - 1):
                    a, b = row[i], row[i + 1]
                    gain = 0
                    for joined in (self.above, self.below):
                        first, second = [at[q] for q in joined[a]], [at[q] for q in joined[b]]
                        gain += sum((m > n) - (m < n) for m in first for n in second)
                    if gain > 0:
                        row[i], row[i + 1] = b, a
                        at[a], at[b] = i + 1, i
                        better = True
            if not better:
                return

    # Coordinates

    def width(self, place: int) -> float:
        return self.sizes[place][0] if place < self.boxes else LANE

    def settle(self) -> None:
        """Find the centre of each place: the least slope of its lines, with gaps between neighbours."""
        offsets = []
        for row in self.layers:
            at, previous, found = 0.0, None, []
            for place in row:
                if previous is not None:
                    at += (self.width(previous) + self.width(place)) / 2 + BESIDE
                found.append(at)
                previous = place
            offsets.append(found)
            for place, x in zip(row, found, strict=True):
                self.x[place] = x - at / 2
        both = [[*a, *b] for a, b in zip(self.above, self.below, strict=True)]
        for turn in range(SETTLING):
            last = turn >= SETTLING - 8
            joined = both if last else (self.above, self.below)[turn % 2]
            rows = list(zip(self.layers, offsets, strict=True))
            for row, found in rows if turn % 2 == 0 else reversed(rows):
                wanted, weights = zip(*(self._pull(place, joined[place]) for place in row), strict=True)
                for place, x in zip(row, nearest(wanted, weights, found), strict=True):
                    self.x[place] = x
        self._straighten()

    def _pull(self, place: int, joined: list[int]) -> tuple[float, float]:
        """The position that a place's lines prefer, and its weight: lanes should be straight."""
        total = weight = 0.0
        for other in joined:
            w = 4.0 if self.below[other] and self.below[place] else 0.05
            total += w * self.x[other]
            weight += w
        return (total / weight, weight) if weight else (self.x[place], 0.2)

    def _straighten(self) -> None:
        """Straighten lanes where their neighbours leave room, and move their targets nearer."""
        lanes: dict[int, list[int]] = {}
        for place in range(self.boxes, len(self.layer)):
            lanes.setdefault(self.toward[place], []).append(place)
        for target, places in lanes.items():
            places.sort(key=lambda p: -self.layer[p])
            at = 0
            previous = self.x[target]
            while at < len(places):
                low, high = self._room(places[at])
                end = at + 1
                while end < len(places):
                    lower, higher = self._room(places[end])
                    if max(low, lower) > min(high, higher):
                        break
                    low, high = max(low, lower), min(high, higher)
                    end += 1
                reached = [self.x[q] for p in places[at:end] for q in self.above[p] if q < self.boxes]
                wanted = sorted([previous, *reached, *(self.x[p] for p in places[at:end])])
                previous = min(max(wanted[len(wanted) // 2], low), high)
                for place in places[at:end]:
                    self.x[place] = previous
                at = end
            if not self.below[target]:
                low, high = self._room(target)
                wanted = [self.x[q] for q in self.above[target]]
                self.x[target] = min(max(sum(wanted) / len(wanted), low), high)

    def _room(self, place: int) -> tuple[float, float]:
        """How far to either side a place can go."""
        row, at = self.layers[self.layer[place]], self.at[place]
        low, high = float("-inf"), float("inf")
        if at:
            before = row[at - 1]
            low = self.x[before] + (self.width(before) + self.width(place)) / 2 + BESIDE
        if at + 1 < len(row):
            after = row[at + 1]
            high = self.x[after] - (self.width(after) + self.width(place)) / 2 - BESIDE
        return min(low, self.x[place]), max(high, self.x[place])

    # Results

    def measured(self) -> Layout:
        """The geometry, with its upper left corner at the origin."""
        left = min(self.x[p] - self.width(p) / 2 for p in range(len(self.x)))
        middle = [x - left for x in self.x]
        heads, feet = [], []
        y = 0.0
        for row in self.layers:
            height = max((self.sizes[p][1] for p in row if p < self.boxes), default=0.0)
            heads.append(y)
            feet.append(y + height)
            lean = max((abs(middle[p] - middle[q]) for p in row for q in self.below[p]), default=0.0)
            y += height + min(BETWEEN + 0.09 * lean, BETWEEN_AT_MOST)
        # A box that is lower than its layer is aligned with its top, so that arrows end at one height.
        corners = [(middle[i] - self.sizes[i][0] / 2, heads[self.layer[i]]) for i in range(self.boxes)]
        lines = []
        for place in range(len(middle)):
            ports = self._ports(place, middle)
            for other, x in zip(sorted(self.below[place], key=middle.__getitem__), ports, strict=True):
                level = self.layer[place]
                box, into = place < self.boxes, other < self.boxes
                foot = corners[place][1] + self.sizes[place][1] if box else feet[level]
                head = heads[level + 1]
                lines.append(
                    Line(
                        (x, foot), (middle[other], head), head if into else feet[level + 1],
                        place if box else None, other if into else None, self.toward[other],
                    )
                )  # fmt: skip
        return Layout(corners, lines, max(m + self.width(p) / 2 for p, m in enumerate(middle)), feet[-1])

    def _ports(self, place: int, middle: list[float]) -> list[float]:
        """The points where lines leave a place, from left to right."""
        targets = sorted(middle[other] for other in self.below[place])
        count = len(targets)
        if place >= self.boxes:
            return [middle[place]] * count
        reach = self.width(place) / 2 - PORT
        step = min(PORT, 2 * reach / max(count - 1, 1))
        offsets = [i * step for i in range(count)]
        left, right = middle[place] - reach, middle[place] + reach - (count - 1) * step
        # Above its target if possible, because a straight line is the easiest to follow.
        wanted = [min(max(x, left + o), right + o) for x, o in zip(targets, offsets, strict=True)]
        return nearest(wanted, [1.0] * count, offsets)


def nearest(wanted: Sequence[float], weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """The positions nearest to the wanted ones, by weighted squares, that keep at least the distances of ``offsets``.

    Without the offsets this is isotonic regression: neighbours in the wrong order are pooled.
    """
    pools: list[tuple[float, float, int]] = []  # middle, weight, how many
    for place, weight, offset in zip(wanted, weights, offsets, strict=True):
        middle, count = place - offset, 1
        while pools and pools[-1][0] > middle:
            before, heft, many = pools.pop()
            middle = (middle * weight + before * heft) / (weight + heft)
            weight += heft
            count += many
        pools.append((middle, weight, count))
    found: list[float] = []
    for middle, _, count in pools:
        found += [middle + offset for offset in offsets[len(found) : len(found) + count]]
    return found
