"""Breadth-first exploration of all states, with the shortest trace to a violation, and reachability of the goal."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .actions import steps
from .invariants import finished, hopeful, violation
from .reducing import reduced
from .state import Bounds, State, initial
from .storage import Bugs


class Explored(NamedTuple):
    """The result of an exploration.

    Attributes:
        violation: what is violated; empty if nothing is.
        trace: the actions that lead to it, with the state at the end.
        seconds: of processor time.
    """

    states: int
    transitions: int
    depth: int
    seconds: float
    violation: str
    trace: tuple[str, ...]
    last: State | None


def _steps(state: State, bounds: Bounds, bugs: Bugs) -> Iterator[tuple[str, State]]:
    for label, after in steps(state, bounds, bugs):
        yield label, reduced(after, not bugs)


def explore(bounds: Bounds, bugs: Bugs = frozenset(), most: int = 0, liveness: bool = True) -> Explored:
    """Visit every state within the bounds.

    States are kept by their 64-bit hash: with n states, two of them share one with a probability of about n^2 / 2^65.

    Args:
        most: stop after this many states; 0 for no limit. A stopped exploration is an error, not a result.
    """
    began = time.process_time()
    first = initial(bounds)
    seen: dict[int, int] = {hash(first): 0}
    parents, hashes, levels = array("q", [-1]), array("q", [hash(first)]), 0
    edges_from, edges_to = array("I"), array("I")
    goals, waiting = array("I"), array("I")
    frontier: list[tuple[int, State]] = [(0, first)]
    transitions = 0

    def result(text: str, index: int) -> Explored:
        labels, last = _trace(index, parents, hashes, bounds, bugs) if text else ((), None)
        return Explored(len(seen), transitions, levels, time.process_time() - began, text, labels, last)

    while frontier:
        following: list[tuple[int, State]] = []
        for index, state in frontier:
            if liveness:
                if finished(state, bounds.frames):
                    goals.append(index)
                elif hopeful(state):
                    waiting.append(index)
            for _, after in _steps(state, bounds, bugs):
                transitions += 1
                key = hash(after)
                known = seen.get(key)
                if known is None:
                    known = seen[key] = len(parents)
                    parents.append(index)
                    hashes.append(key)
                    wrong = violation(after, bugs)
                    if wrong:
                        return result(wrong, known)
                    following.append((known, after))
                if liveness:
                    edges_from.append(index)
                    edges_to.append(known)
        levels += 1
        frontier = following
        if most and len(seen) > most:
            raise RuntimeError(f"more than {most:,} states; the exploration is incomplete")
    if liveness:
        stuck = _unable(len(parents), edges_from, edges_to, goals, waiting)
        if stuck >= 0:
            return result("no way leads from here to the acknowledgement of all frames", stuck)
    return result("", 0)


def _unable(states: int, sources: array[int], targets: array[int], goals: array[int], waiting: array[int]) -> int:
    """The first waiting state from which no goal can be reached; -1 without one."""
    edges = np.frombuffer(targets, dtype=np.uint32)
    order = np.argsort(edges, kind="stable")
    before = np.frombuffer(sources, dtype=np.uint32)[order]
    begins = np.searchsorted(edges[order], np.arange(states + 1))
    able = np.zeros(states, dtype=bool)
    layer = np.frombuffer(goals, dtype=np.uint32).astype(np.int64)
    able[layer] = True
    while layer.size:
        counts = begins[layer + 1] - begins[layer]
        offsets = np.repeat(begins[layer] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        found = np.unique(before[offsets + np.arange(counts.sum())])
        layer = found[~able[found]].astype(np.int64)
        able[layer] = True
    lost = [index for index in waiting if not able[index]]
    return min(lost, default=-1)


def _trace(
    index: int, parents: array[int], hashes: array[int], bounds: Bounds, bugs: Bugs
) -> tuple[tuple[str, ...], State]:
    """The actions from the first state to this one, found again by the hashes of the states between."""
    path = []
    while index > 0:
        path.append(hashes[index])
        index = parents[index]
    state, labels = initial(bounds), []
    for wanted in reversed(path):
        label, state = next((label, after) for label, after in _steps(state, bounds, bugs) if hash(after) == wanted)
        labels.append(label)
    return tuple(labels), state


def lines(found: Explored) -> Iterator[str]:
    """A violation for a reader."""
    yield f"violated: {found.violation}"
    for number, label in enumerate(found.trace, 1):
        yield f"  {number:2}. {label}"
    if found.last is not None:
        claims, published = list(found.last.claims), list(found.last.published)
        yield f"  claims {claims}, published {published}, acknowledged {found.last.acked}"
