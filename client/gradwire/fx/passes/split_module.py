"""Splits a module into modules that run one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentError

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg


class Partition:
    """The nodes that become one module.

    Attributes:
        name: what it is called behind ``submod_``.
        nodes: its nodes, in order.
        inputs: nodes outside of it that it uses.
        outputs: its nodes that others use.
        before: partitions that it needs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.before: dict[str, None] = {}

    @property
    def node_names(self) -> list[str]:
        """The names of its nodes."""
        return [node.name for node in self.nodes]


def split_module(
    m: GraphModule, root_m: Any, split_callback: Callable[[Node], int], qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False, keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True, *, partition_affix: str | None = None,
) -> GraphModule:  # fmt: skip
    """A module made of modules ``submod_0``, ``submod_1``, ..., which does the same.

    Args:
        m: the module.
        root_m: where its parts come from; not needed.
        split_callback: says which module a node goes to.
        qualname_map: gets the old paths of modules by the new ones.
        keep_original_order: run them in the order in which the graph comes to them, not as soon as they can run.
        keep_original_node_name: nodes keep their names.
        keep_original_input_name: inputs of the modules are called like the nodes they come from.
        partition_affix: stands in the names of the modules before the number.
    """
    partitions: dict[str, Partition] = {}
    place: dict[Node, str] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = str(split_callback(node))
            name = f"{partition_affix}_{name}" if partition_affix is not None else name
            partitions.setdefault(name, Partition(name)).nodes.append(node)
            place[node] = name
    for node in m.graph.nodes:
        for used in node.all_input_nodes if node.op not in ("placeholder", "get_attr") else ():
            _note_use(partitions, place, used, node)
    order = _in_order(partitions, bool(keep_original_order))
    new = Graph()
    env: dict[Node, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            env[node] = new.placeholder(node.target, type_expr=node.type, default_value=default)
            env[node].meta = dict(node.meta)
    parts: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "get_attr":
            env[node] = new.get_attr(node.target, node.type)
            env[node].meta = dict(node.meta)
            parts[node.target] = _value_at(m, node.target)
    for name in order:
        partition = partitions[name]
        parts[partition.submod_name] = _module_of(
            m, partition, qualname_map, bool(keep_original_node_name), keep_original_input_name
        )
        result: Any = new.call_module(partition.submod_name, tuple(env[node] for node in partition.inputs))
        outputs = list(partition.outputs)
        if len(outputs) == 1:
            env[outputs[0]] = result
        elif outputs:
            from ..proxy import Proxy

            for i, node in enumerate(outputs):
                env[node] = Proxy(result)[i].node  # type: ignore[index]
    for node in m.graph.nodes:
        if node.op == "output":
            new.output(map_arg(node.args[0], lambda used: env[used])).meta = dict(node.meta)
    return GraphModule(parts, new)


def _note_use(partitions: dict[str, Partition], place: dict[Node, str], used: Node, user: Node) -> None:
    made, needed = place.get(used), place.get(user)
    if made == needed:
        return
    if made is not None:
        partitions[made].outputs.setdefault(used)
    if needed is not None:
        partitions[needed].inputs.setdefault(used)
        if made is not None:
            partitions[needed].before.setdefault(made)


def _in_order(partitions: dict[str, Partition], keep: bool) -> list[str]:
    """The names of partitions, each after those it needs."""
    left = {name: dict(partition.before) for name, partition in partitions.items()}
    order: list[str] = []
    ready = [name for name, before in left.items() if not before]
    while ready:
        name = ready.pop(0) if keep else ready.pop()
        order.append(name)
        for other, before in left.items():
            if name in before:
                del before[name]
                if not before:
                    ready.append(other)
    if len(order) != len(partitions):
        raise ArgumentError("cycle exists between partitions: split_callback has to keep their order")
    if keep and all(set(partitions[name].before) <= set(list(partitions)[:i]) for i, name in enumerate(partitions)):
        return list(partitions)
    return order


def _value_at(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _module_of(
    m: GraphModule, partition: Partition, qualname_map: dict[str, str] | None, keep_names: bool, input_names: bool
) -> GraphModule:
    graph = Graph()
    env: dict[Node, Node] = {}
    parts: dict[str, Any] = {}
    for i, used in enumerate(partition.inputs):
        env[used] = graph.placeholder(used.name if input_names else f"arg_{i}", type_expr=used.type)
        env[used].meta = dict(used.meta)
    for node in partition.nodes:
        target = node.target
        if node.op == "call_module":
            parts[target.replace(".", "_")] = _value_at(m, target)
            if qualname_map is not None:
                qualname_map[f"{partition.submod_name}.{target.replace('.', '_')}"] = target
            target = target.replace(".", "_")
        args, kwargs = (map_arg(given, lambda used: env[used]) for given in (node.args, node.kwargs))
        name = node.name if keep_names else None
        env[node] = graph.create_node(node.op, target, args, kwargs, name, node.type)
        env[node].meta = dict(node.meta)
    outputs = tuple(env[node] for node in partition.outputs)
    graph.output(outputs[0] if len(outputs) == 1 else outputs)
    return GraphModule(parts, graph)


__all__ = ["Partition", "split_module"]
