"""The parameters that a graph's modules have."""

from __future__ import annotations

from typing import Any

from ..graph_module import GraphModule


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Note on each node that calls a layer what the layer's settings are (``node.attrs_for_lowering``)."""
    modules: dict[str, Any] = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        module = modules[node.target]
        if isinstance(module, GraphModule):
            lift_lowering_attrs_to_nodes(module)
        else:
            known = {name: value for name, value in vars(module).items() if not name.startswith("_")}
            node.attrs_for_lowering = {"name": type(module).__name__, **known, **module._parameters, **module._buffers}


__all__ = ["lift_lowering_attrs_to_nodes"]
