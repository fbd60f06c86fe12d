"""Draws graphs, with the package ``pydot``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..graph_module import GraphModule
from ..node import Node

COLORS = {
    "call_module": "LemonChiffon1", "call_function": "aliceblue", "call_method": "LightPink", "output": "PowderBlue",
    "placeholder": "AliceBlue", "get_attr": "LightGrey",
}  # fmt: skip


class FxGraphDrawer:
    """A drawing of a module's graph.

    Args:
        graph_module: the module.
        name: what the drawing is called.
        ignore_getattr, ignore_parameters_and_buffers: leave these nodes out.

    Raises:
        RuntimeError: without the package ``pydot``.
    """

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True, **style: Any,
    ) -> None:  # fmt: skip
        try:
            pydot: Any = import_module("pydot")
        except ImportError as error:
            raise RuntimeError("FXGraphDrawer requires the pydot package to be installed: pip install pydot") from error
        left_out = ignore_getattr or ignore_parameters_and_buffers
        self._name = name
        self._drawing = pydot.Dot(name, rankdir="TB")
        shown = [node for node in graph_module.graph.nodes if not (left_out and node.op == "get_attr")]
        for node in shown:
            look = {"shape": "record", "fillcolor": COLORS[node.op], "style": '"filled,rounded"'}
            self._drawing.add_node(pydot.Node(node.name, label=_label(node), **look))
        for node in shown:
            for used in node.all_input_nodes:
                if used in shown:
                    self._drawing.add_edge(pydot.Edge(used.name, node.name))

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The drawing, as pydot has it."""
        return self._drawing

    get_main_dot_graph = get_dot_graph

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """The drawings by name."""
        return {self._name: self._drawing}


def _label(node: Node) -> str:
    rows = [f"name=%{node.name}", f"op_code={node.op}", f"target={node._pretty_print_target(node.target)}"]
    known: Any = node.meta.get("tensor_meta")
    if hasattr(known, "shape"):
        rows.append(f"dtype={known.dtype}\\nshape={tuple(known.shape)}")
    return '"{' + "|".join(row.replace("<", r"\<").replace(">", r"\>") for row in rows) + '}"'


__all__ = ["FxGraphDrawer"]
