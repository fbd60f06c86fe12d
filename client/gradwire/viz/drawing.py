"""Drawings of the live autograd graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.drawing.nodes import joined, kind_of, results_in_a_line, results_of, summary
from gradwire_protocol.drawing.svg import Box, Joint, Kind, Theme, render, shorten
from gradwire_protocol.dtypes import BY_NAME
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, GraphError
from gradwire_protocol.quantities import spell_bytes

from .._core.graph.graph_mirror import AccumulateGrad, edge_of
from .._core.modules.parameter import Parameter
from .._core.session.current_session import current_session
from .._core.tensor.tensor import Tensor

if TYPE_CHECKING:
    from .._core.session.session import Session

MAX_NODES: Final = 500
NAME_LENGTH: Final = 40
LINE_LENGTH: Final = 34
BIGGEST_TOLD: Final = 5


@dataclass(frozen=True)
class Drawing:
    """A drawing of an autograd graph, which notebooks display.

    Attributes:
        svg: the drawing, an SVG document.
        nodes: the server's data of each node: ``name``, ``shapes``, ``dtypes``, ``saved_bytes``, its result
            ``tensors``, and additionally ``line`` (``file:line``, or ``None``).
        edges: ``from`` a node ``to`` a node, at output ``slot``.
        saved_bytes: the memory that the graph saves for backward; shared memory counts once.
        omitted: the number of nodes that are not drawn.
        unused: given names whose tensors are not in the graph and get no gradient from it.
    """

    svg: str
    nodes: list[dict[str, Any]]
    edges: list[dict[str, int]]
    saved_bytes: int
    omitted: int
    unused: list[str]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="max-width:100%;max-height:48em;overflow:auto">{self.svg}</div>'

    def __repr__(self) -> str:
        told = [f"<drawing of {summary(self.nodes, self.edges, self.saved_bytes)}>"]
        for node in sorted(self.nodes, key=lambda n: -n["saved_bytes"])[:BIGGEST_TOLD]:
            if node["saved_bytes"]:
                where = f" at {node['line']}" if node["line"] else ""
                told.append(f"  {node['name']} keeps {spell_bytes(node['saved_bytes'])}{where}")
        if self.omitted:
            told.append(f"  {self.omitted:,} nodes are not drawn")
        if self.unused:
            told.append(f"  not in this graph: {', '.join(self.unused)}")
        return "\n".join(told)


def graph(
    *tensors: Tensor, params: Mapping[str, Tensor] | None = None, max_nodes: int = MAX_NODES, theme: Theme = "auto"
) -> Drawing:
    """Draw the live autograd graph behind these tensors in the order of backward: results above, leaves below.

    A node shows its name, the shapes and dtype of its results, its saved bytes, and the program line that made it. A
    leaf shows its name, shape, dtype and size. An arrow is the path of a gradient. The call waits for everything
    recorded so far.

    Args:
        tensors: results, of any shape; without any, all live tensors of the session.
        params: names of tensors, such as ``dict(model.named_parameters())``; results may be named too.
        max_nodes: the limit of drawn nodes. Of a larger graph, the nodes nearest to the results are drawn, and the rest
            is one box.
        theme: ``"light"``, ``"dark"``, or ``"auto"`` for the reader's preference.

    Raises:
        GraphError: for a tensor that does not require grad.
        LimitExceeded: for a graph of more nodes than the server exports (``GRADWIRE_MAX_GRAPH_EXPORT``).

    Example::

        loss = criterion(model(x), target)
        viz.graph(loss, params=dict(model.named_parameters())).save("loss.svg")
    """
    names = {} if params is None else dict(params)
    session = _checked(tensors, names, max_nodes, theme)
    found = session.graph(*tensors)
    plan = _Plan(session, tensors, names, found)
    omitted = plan.omit(max_nodes)
    heading = [summary(plan.nodes, plan.edges, found["saved_bytes"])]
    unused = plan.unused()
    if omitted:
        heading.append(f"{omitted:,} nodes are left out (max_nodes={max_nodes})")
    if unused:
        heading.append(shorten(f"not in this graph: {', '.join(unused)}", 110))
    svg = render(plan.boxes, plan.joints, heading, theme)
    return Drawing(svg, plan.nodes, plan.edges, found["saved_bytes"], omitted, unused)


def _checked(tensors: tuple[Tensor, ...], names: dict[str, Tensor], max_nodes: int, theme: str) -> Session:
    """The session of the tensors, after a check that they can be drawn."""
    for what, given in [*((f"tensor {i}", t) for i, t in enumerate(tensors)), *names.items()]:
        if not isinstance(given, Tensor):
            raise ArgumentTypeError(f"viz.graph draws tensors and names tensors; {what} is a {type(given).__name__}")
    if type(max_nodes) is not int or max_nodes < 1:
        raise ArgumentValueError(f"viz.graph: max_nodes={max_nodes!r} is not a number of nodes")
    if theme not in ("auto", "light", "dark"):
        raise ArgumentValueError(f"viz.graph: theme={theme!r} is none of 'auto', 'light' and 'dark'")
    for i, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise GraphError(
                f"viz.graph: tensor {i}, of shape {list(tensor.shape)}, does not require grad: there is no graph "
                "behind it"
            )
        if tensor._session is not tensors[0]._session:
            raise ArgumentValueError(f"viz.graph: tensor {i} is of another session than tensor 0")
    return tensors[0]._session if tensors else current_session()


class _Plan:
    """Boxes and edges of a drawing: the server's nodes, and a box for every given tensor."""

    def __init__(
        self, session: Session, tensors: tuple[Tensor, ...], names: dict[str, Tensor], found: dict[str, Any]
    ) -> None:  # fmt: skip
        self.names = names
        self.name_of = {tensor._id: name for name, tensor in names.items()}
        self.parameters = _leaves(tensors, names)
        self.nodes: list[dict[str, Any]] = found["nodes"]
        self.edges: list[dict[str, int]] = found["edges"]
        for node in self.nodes:
            node["line"] = session.line_of(node["position"])
        self._results(tensors, found["roots"])
        self.boxes = [self._box(node) for node in self.nodes]
        self.joints = joined(self.edges)
        for label, at, about in self.results:
            self.joints.append(Joint(len(self.boxes), at))
            self.boxes.append(Box("result", label[0], label[1:], about))

    def _results(self, tensors: tuple[Tensor, ...], roots: list[dict[str, int]]) -> None:
        """The first boxes: one for each given tensor; a given leaf is its own node."""
        at = {root["tensor"]: root["node"] for root in roots}
        by_tensor = {number: node["id"] for node in self.nodes for number in node["tensors"]}
        self.results: list[tuple[list[str], int, str]] = []
        for tensor in tensors:
            if tensor._id in at:
                label = [self.name_of.get(tensor._id, "result"), kind_of(list(tensor.shape), tensor.dtype.name)]
                self.results.append((label, at[tensor._id], f"tensor {tensor._id}"))
            elif tensor._id not in by_tensor:
                by_tensor[tensor._id] = len(self.nodes)
                self.nodes.append({
                    "id": len(self.nodes), "name": "AccumulateGrad", "shapes": [list(tensor.shape)],
                    "dtypes": [tensor.dtype.name], "saved_bytes": 0, "freed": False, "custom": False, "position": 0,
                    "tensors": [tensor._id], "line": None,
                })  # fmt: skip

    def _box(self, node: dict[str, Any]) -> Box:
        about = [node["name"], *(f"result {i}: {kind_of(*r)}" for i, r in enumerate(results_of(node)))]
        if node["name"] == "AccumulateGrad":
            return self._leaf(node, about)
        kind: Kind = "saving" if node["saved_bytes"] else "plain"
        kind = "freed" if node["freed"] else "custom" if node.get("custom") else kind
        named = [self.name_of[number] for number in node["tensors"] if number in self.name_of]
        given = node["id"] in {at for _, at, _ in self.results}
        lines = [
            results_in_a_line(node)
            if given or not named
            else f"{shorten(named[0], NAME_LENGTH)}: {results_in_a_line(node)}"
        ]
        about.extend(f"made {name}" for name in named)
        below = []
        if node["saved_bytes"]:
            below.append(f"keeps {spell_bytes(node['saved_bytes'])}")
            about.append(f"keeps {node['saved_bytes']:,} bytes for backward")
        elif node["freed"]:
            below.append("freed")
            about.append("what it kept was freed by an earlier backward, or is computed again (checkpoint)")
        if node["line"]:
            below.append(shorten(_base(node["line"]), LINE_LENGTH))
            about.append(f"at {node['line']}")
        if below:
            lines.append(" · ".join(below))
        return Box(kind, shorten(node["name"], NAME_LENGTH), lines, "\n".join(about))

    def _leaf(self, node: dict[str, Any], about: list[str]) -> Box:
        name = next((self.name_of[number] for number in node["tensors"] if number in self.name_of), "")
        known = next((self.parameters[number] for number in node["tensors"] if number in self.parameters), None)
        kind: Kind = "parameter" if isinstance(known, Parameter) else "leaf"
        shape, dtype = node["shapes"][0], node["dtypes"][0]
        size = spell_bytes(prod(shape) * BY_NAME[dtype].itemsize)
        label = shorten(name, NAME_LENGTH) if name else kind
        return Box(kind, label, [kind_of(shape, dtype), size], "\n".join([name or kind, *about, size]))

    def omit(self, most: int) -> int:
        """Omit the nodes farthest from the results, and return their number."""
        inner = len(self.nodes)
        if inner <= most:
            return 0
        below: list[list[int]] = [[] for _ in self.boxes]
        arrived = [0] * len(self.boxes)
        for joint in self.joints:
            below[joint.source].append(joint.target)
            arrived[joint.target] += 1
        order = [i for i in range(len(self.boxes)) if not arrived[i]]
        seen = set(order)
        for at in order:  # grows while it is walked: breadth first
            for target in below[at]:
                if target not in seen:
                    seen.add(target)
                    order.append(target)
        nodes = [i for i in order if i < inner]
        kept = set(nodes[:most]) | set(range(inner, len(self.boxes)))
        dropped = inner - most
        # An omitted node may lead back to a drawn one, so the box of the rest has no outgoing edges.
        number = {old: new for new, old in enumerate(sorted(kept))}
        rest = len(number)
        boxes = [self.boxes[old] for old in sorted(kept)]
        saved = sum(node["saved_bytes"] for node in self.nodes if node["id"] not in kept)
        lines = [f"keep {spell_bytes(saved)}"] if saved else []
        boxes.append(Box("omitted", f"{dropped:,} more nodes", lines, "left out: see max_nodes"))
        joints: dict[tuple[int, int], Joint] = {}
        for joint in self.joints:
            if joint.source in kept:
                target = number.get(joint.target, rest)
                word = joint.word if target != rest else ""
                joints.setdefault((number[joint.source], target), Joint(number[joint.source], target, word))
        self.boxes, self.joints = boxes, list(joints.values())
        return dropped

    def unused(self) -> list[str]:
        """The names whose tensors are not in the graph."""
        used = {number for node in self.nodes for number in node["tensors"]}
        return [name for name, tensor in self.names.items() if tensor._id not in used]


def _leaves(tensors: tuple[Tensor, ...], names: dict[str, Tensor]) -> dict[int, Tensor]:
    """The leaves behind the tensors by id, from the client's graph mirror."""
    found = {tensor._id: tensor for tensor in [*tensors, *names.values()] if tensor.is_leaf}
    stack = [edge[0] for tensor in tensors if (edge := edge_of(tensor)) is not None]
    seen = set(map(id, stack))
    while stack:
        node = stack.pop()
        if isinstance(node, AccumulateGrad):
            found[node.variable._id] = node.variable
        for edge in node.edges:
            if edge is not None and id(edge[0]) not in seen:
                seen.add(id(edge[0]))
                stack.append(edge[0])
    return found


def _base(file: str) -> str:
    """The last part of a path in any system's notation."""
    return file.replace("\\", "/").rpartition("/")[2]
