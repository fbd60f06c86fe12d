"""Finds the places in a graph that look like a pattern."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ...._core.tensor.tensor import Tensor
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node


@dataclass
class InternalMatch:
    """A place in a graph that looks like a pattern.

    Attributes:
        anchors: the last nodes of the pattern.
        nodes_map: nodes of the graph (or constants) by those of the pattern.
        placeholder_nodes: what the pattern's inputs are there.
        returning_nodes: what the pattern returns there.
        name_node_map: the nodes that the pattern names.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes)
        )


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern: the graph that is looked for.
        match_output: its output is part of it.
        match_placeholder: its inputs match inputs alone, not any node.
        remove_overlapping_matches: of matches that share nodes, give the first.
        ignore_literals: its constants match any constant.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        if not len(pattern.nodes):
            raise ArgumentValueError("a pattern has nodes; this graph has none")
        for node in pattern.nodes:
            if node.op not in ("output", "placeholder") and not node.users and not node.is_impure():
                raise AssertionError(f"the pattern's node {node} is not used: eliminate_dead_code() removes it")
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        last = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else last

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Its places in a graph. What is inside of one is used only there, except for what the pattern returns.

        Args:
            graph: where it is looked for.
            node_name_match: nodes whose name contains it match anything.
        """
        candidates = [
            (anchor, [node for node in graph.nodes if self._alike(anchor, node, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        found: list[InternalMatch] = []

        def extend(at: int, match: InternalMatch) -> None:
            if at == len(candidates):
                match.placeholder_nodes = [match.nodes_map[node] for node in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
                found.append(match)
                return
            anchor, nodes = candidates[at]
            for node in nodes:
                attempt = copy.copy(match)
                if self._match_nodes(anchor, node, attempt, node_name_match):
                    extend(at + 1, attempt)

        if any(nodes for _, nodes in candidates):
            extend(0, InternalMatch(self.pattern_anchors))
        found = [match for match in found if self._is_contained(match.nodes_map)]
        found = self._without_overlaps(found) if self.remove_overlapping_matches else found
        for match in found:
            match.anchors = [match.nodes_map[anchor] for anchor in self.pattern_anchors]
        return found

    def _alike(self, wanted: Node, node: Node, node_name_match: str) -> bool:
        if not self.match_placeholder and wanted.op == "placeholder":
            return True
        if node_name_match and node_name_match in node.name:
            return True
        if wanted.op != node.op:
            return False
        if wanted.op in ("placeholder", "output"):
            return True
        return self._alike_attributes(wanted, node) if wanted.op == "get_attr" else bool(wanted.target == node.target)

    @staticmethod
    def _alike_attributes(wanted: Node, node: Node) -> bool:
        values = [_get_attr(each.graph.owning_module, each.target) for each in (wanted, node)]
        if type(values[0]) is not type(values[1]):
            return False
        if not isinstance(values[0], Tensor):
            raise ArgumentError(f"patterns have tensors as attributes, not {type(values[0]).__name__}: {wanted.target}")
        return True

    def _match_nodes(self, wanted: Node, node: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        if wanted in match.nodes_map:
            return match.nodes_map[wanted] is node
        if any(node is other for other in match.nodes_map.values()):
            return False
        if not self._alike(wanted, node, node_name_match):
            return False
        match.nodes_map[wanted] = node
        if wanted.op == "placeholder":
            return True
        if list(wanted.kwargs) != list(node.kwargs):
            return False
        return self._match_items([*wanted.args, *wanted.kwargs.values()], [*node.args, *node.kwargs.values()], match)

    def _match_items(self, wanted: Any, given: Any, match: InternalMatch) -> bool:
        return len(wanted) == len(given) and all(
            self._match_item(a, b, match) for a, b in zip(wanted, given, strict=True)
        )

    def _match_item(self, wanted: Any, given: Any, match: InternalMatch) -> bool:
        if isinstance(wanted, Node) and isinstance(given, Node):
            return self._match_nodes(wanted, given, match)
        if isinstance(wanted, (list, tuple)) and isinstance(given, (list, tuple)):
            return self._match_items(wanted, given, match)
        if isinstance(wanted, Node):
            if wanted.op != "placeholder":
                return self.ignore_literals
            if wanted in match.nodes_map:
                return bool(match.nodes_map[wanted] == given)
            match.nodes_map[wanted] = given
            return True
        if isinstance(given, Node):
            return self.ignore_literals
        return self.ignore_literals or (type(given) is type(wanted) and bool(given == wanted))

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        inside = {node: wanted for wanted, node in nodes_map.items() if wanted.op != "placeholder"}
        return all(
            wanted in self.pattern_returning_nodes or all(user in inside for user in node.users)
            for node, wanted in inside.items()
        )

    @staticmethod
    def _without_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            own = {node for wanted, node in match.nodes_map.items() if wanted.op not in ("placeholder", "output")}
            if not own & taken:
                kept.append(match)
                taken |= own
        return kept


__all__ = ["InternalMatch", "SubgraphMatcher"]
