"""Replaces a pattern in a graph by something else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from .._core.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher


class Match(NamedTuple):
    """A place in a graph where a pattern was.

    Attributes:
        anchor: the last node of the pattern there.
        nodes_map: the graph's nodes by the pattern's.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """The same with the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace a pattern wherever it is in the graph of a module, without overlaps.

    Args:
        gm: the module; it is changed, and compiled again.
        pattern: a function or module, whose graph is looked for. Its inputs match any node.
        replacement: a function or module with the same inputs, whose graph takes its place.
    """
    return [Match(made.anchor, made.nodes_map) for made in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: list[Any] | None = None,
    ignore_literals: bool = False, replacement_callback: Callable[..., Graph] | None = None, node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """The same for matches that every filter is true for.

    Args:
        match_filters: functions of a match, the graph and the pattern's graph.
        ignore_literals: constants in the pattern match any constant.
        replacement_callback: gives the graph that takes the place of a match, instead of ``replacement``.
        node_name_match: look only at nodes whose name contains it.
    """
    graph, wanted = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(
        wanted, match_output=False, match_placeholder=False, remove_overlapping_matches=True,
        ignore_literals=ignore_literals,
    )  # fmt: skip
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(match, graph, wanted) for accepts in match_filters or ())
    ]
    common = None if replacement is None else _graph_of(replacement)
    if common is None and replacement_callback is None:
        raise AssertionError("either a replacement or a replacement_callback is needed")
    replaced: dict[Node, Node] = {}
    made = []
    for match in matches:
        new: Any = common if replacement_callback is None else replacement_callback(match, graph, wanted)
        made.append(_replace(graph, match, wanted, new, replaced))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_parts(gm, replacement)
    return made


def _graph_of(given: Any) -> Graph:
    if isinstance(given, Graph):
        return given
    return given.graph if isinstance(given, GraphModule) else symbolic_trace(given).graph


def _replace(
    graph: Graph, match: InternalMatch, pattern: Graph, new: Graph, replaced: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [node for node in new.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(f"the replacement has {len(inputs)} inputs, the pattern {len(match.placeholder_nodes)}")
    for i, node in enumerate(match.placeholder_nodes):
        if isinstance(node, Node) and node in replaced:
            match.placeholder_nodes[i] = replaced[node]
            for key, value in match.nodes_map.items():
                if value is node:
                    match.nodes_map[key] = replaced[node]
    copies: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with graph.inserting_before(_place(graph, match)):
        returned = graph.graph_copy(new, copies)
    results = (returned,) if isinstance(returned, Node) else tuple(returned)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(f"the replacement has {len(results)} results, the pattern {len(match.returning_nodes)}")
    for old, value in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(value)
        replaced[old] = value
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    added = [node for node in copies.values() if node not in match.placeholder_nodes]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _place(graph: Graph, match: InternalMatch) -> Node:
    """The first node behind the match: its first user, or the next one where it has none."""
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return min(users)
    return max(match.returning_nodes).next


def _take_parts(gm: GraphModule, replacement: Any) -> None:
    """Take the modules and tensors of a replacement that the graph names now."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _at(gm, node.target) is not None:
            continue
        found = _at(replacement, node.target)
        if found is None:
            raise ArgumentError(f"the replacement names {node.target!r}, which neither it nor the module has")
        if isinstance(found, Module):
            gm.add_submodule(node.target, copy.deepcopy(found))
        else:
            setattr(gm, node.target, copy.deepcopy(found))
    gm.graph.lint()


def _at(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
