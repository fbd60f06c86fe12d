"""Graphs of trained modules that compute less."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

FUSED: Any = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval), (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval), (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)  # fmt: skip
"""Layers that a batch norm behind them can be part of."""


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a layer of the second class, with what a layer of the first class gives."""
    if not node.args:
        return False
    return all(
        isinstance(current, Node) and current.op == "call_module" and type(modules.get(current.target)) is kind
        for kind, current in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Put another module in the place of the one that a node calls."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """A module in which batch norms behind convolutions and linear layers are part of these, for evaluation.

    Args:
        model: the module, in evaluation mode.
        inplace: change its layers, not those of a copy.
        no_trace: take the graph of a GraphModule as it is.
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules: dict[str, Any] = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, join in FUSED:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules):
                continue
            layer: Any = node.args[0]
            norm = modules[node.target]
            if len(layer.users) == 1 and norm.track_running_stats:
                replace_node_module(layer, modules, join(modules[layer.target], norm))
                node.replace_all_uses_with(layer)
                graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Any) -> Any:
    """A module without its dropout layers."""

    class WithoutDropout(Transformer):
        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: Any, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """A module of some nodes of a graph, which takes the values of others."""
    graph = Graph()
    env = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        env[node] = graph.node_copy(node, lambda used: env[used])
    graph.output([env[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]
