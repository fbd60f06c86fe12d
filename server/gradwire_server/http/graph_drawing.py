"""The autograd graph as the drawing of ``gradwire.viz.graph``, from what the server knows: without program lines."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final

from gradwire_protocol.drawing.nodes import joined, kind_of, results_in_a_line, results_of, summary
from gradwire_protocol.drawing.svg import Box, Kind, Theme, render, shorten
from gradwire_protocol.dtypes import BY_NAME
from gradwire_protocol.quantities import spell_bytes

NAME_LENGTH: Final = 40
MAX_NODES: Final = 500
"""The layout of more takes seconds."""


def draw(graph: dict[str, Any], names: Mapping[int, str], theme: Theme) -> str:
    """The drawing as an SVG document. ``names`` are those of tensors, by id."""
    nodes, edges = graph["nodes"], graph["edges"]
    boxes = [_box(node, next((names[each] for each in node["tensors"] if each in names), "")) for node in nodes]
    return render(boxes, joined(edges), [summary(nodes, edges, graph["saved_bytes"])], theme)


def _box(node: dict[str, Any], name: str) -> Box:
    about = [node["name"], *(f"result {i}: {kind_of(*each)}" for i, each in enumerate(results_of(node)))]
    if node["name"] == "AccumulateGrad":
        shape, dtype = node["shapes"][0], node["dtypes"][0]
        size = spell_bytes(prod(shape) * BY_NAME[dtype].itemsize)
        kind: Kind = "parameter" if name else "leaf"
        return Box(kind, shorten(name or "leaf", NAME_LENGTH), [kind_of(shape, dtype), size], "\n".join(about))
    kind = "saving" if node["saved_bytes"] else "plain"
    kind = "freed" if node["freed"] else "custom" if node["custom"] else kind
    told = results_in_a_line(node)
    lines = [f"{shorten(name, NAME_LENGTH)}: {told}" if name else told]
    if node["saved_bytes"]:
        lines.append(f"keeps {spell_bytes(node['saved_bytes'])}")
    elif node["freed"]:
        lines.append("freed")
    return Box(kind, shorten(node["name"], NAME_LENGTH), lines, "\n".join(about))
