"""Texts and arrows of a graph's nodes: of those that the server describes, see ``GET /v1/sessions/{id}/graph``."""

from __future__ import annotations

from typing import Any, Final

from ..quantities import counted, spell_bytes
from .svg import Joint

SHAPES_SHOWN: Final = 2


def summary(nodes: list[dict[str, Any]], edges: list[dict[str, int]], saved_bytes: int) -> str:
    """A one-line summary of a graph."""
    leaves = sum(node["name"] == "AccumulateGrad" for node in nodes)
    told = f"{counted(len(nodes), 'node')} ({counted(leaves, 'leaf', 'leaves')}), {counted(len(edges), 'edge')}"
    return f"{told}; {spell_bytes(saved_bytes)} kept for backward"


def joined(edges: list[dict[str, int]]) -> list[Joint]:
    """One edge for all edges between two nodes, labelled with their count, or with the result's number."""
    slots: dict[tuple[int, int], list[int]] = {}
    for edge in edges:
        slots.setdefault((edge["from"], edge["to"]), []).append(edge["slot"])
    several = {edge["to"] for edge in edges if edge["slot"]}
    joints = []
    for (source, target), found in slots.items():
        word = f"[{', '.join(map(str, sorted(set(found))))}]" if target in several else ""
        if len(found) > 1:
            word = f"{word} ×{len(found)}".strip()
        joints.append(Joint(source, target, word))
    return joints


def results_of(node: dict[str, Any]) -> list[tuple[list[int], str]]:
    """Shape and dtype of each result of a node."""
    return list(zip(node["shapes"], node["dtypes"], strict=True))


def kind_of(shape: list[int], dtype: str) -> str:
    """Such as ``float32[2, 3]``."""
    return f"{dtype}[{', '.join(map(str, shape))}]"


def results_in_a_line(node: dict[str, Any]) -> str:
    """The results of a node in one line: equal ones are counted, long lists are shortened."""
    results = [kind_of(*result) for result in results_of(node)]
    if len(results) > 1 and len(set(results)) == 1:
        return f"{len(results)} × {results[0]}"
    more = f" … {len(results)} in all" if len(results) > SHAPES_SHOWN else ""
    return ", ".join(results[:SHAPES_SHOWN]) + more
