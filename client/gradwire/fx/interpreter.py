"""``Interpreter`` runs a graph node by node; ``Transformer`` makes another graph meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradwire_protocol.errors import ArgumentError

from . import traceback
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy


class Interpreter:
    """Runs a graph node by node. Subclasses override what is done for a kind of nodes, or for all (``run_node``).

    Args:
        module: the module of the graph.
        garbage_collect_values: let go of values after their last use.
        graph: what is run, if it is not the module's own.
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node._input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph and return its output.

        Args:
            args: the arguments of the function.
            initial_env: values of nodes that are not run.
            enable_io_processing: take arguments and give the result as the module's function does; else as the graph
                has them.
        """
        self.env = {} if initial_env is None else initial_env
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _tell_node(error, node)
                if isinstance(error, KeyError):
                    raise ArgumentError(*error.args) from error
                raise
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
            if self.garbage_collect_values:
                for gone in self.user_to_last_uses.get(node, ()):
                    del self.env[gone]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """The same with arguments in a list, which is emptied, so that they can be let go of."""
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(inputs) != len(args_list):
            raise ArgumentError(f"the graph takes {len(inputs)} arguments, not {len(args_list)}")
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        with traceback.set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The next argument; all that are left for ``*args``."""
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise ArgumentError(f"the graph's input {target!r} is a positional argument, and was not given")

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What a function returns."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What a method of the first argument returns."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What a module returns."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What is at a path in the module."""
        here, parts = self.module, target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(here, part):
                raise ArgumentError(f"a node names {target!r}, and the module has no {'.'.join(parts[: i + 1])}")
            here = getattr(here, part)
        return here

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in place of nodes."""

        def value_of(used: Node) -> Any:
            if used not in self.env:
                raise ArgumentError(f"node {n} uses {used}, which has no value: Graph.lint() tells what is wrong")
            return self.env[used]

        return map_arg(args, value_of)


def _tell_node(error: Exception, node: Node) -> None:
    told = f"While executing {node.format_node()}"
    if node.stack_trace:
        told += f"\nOriginal traceback:\n{node.stack_trace}"
    if not any(told in str(note) for note in getattr(error, "__notes__", ())):
        error.add_note(told)


class Transformer(Interpreter):
    """An interpreter on proxies, which makes a new graph: overriding a kind of nodes changes what becomes of them.

    Args:
        module: the module that is transformed.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer()
        self.tracer.graph = self.new_graph
        self.tracer.root = module

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A proxy for an input of the new graph."""
        default = args[0] if args else _no_default()
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A proxy for an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A proxy for what a module returns."""
        return self.tracer.call_module(self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A proxy for what a function returns."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        with traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()

            def strip(value: Any) -> Any:
                return value.node if isinstance(value, Proxy) else value

            from .node import map_aggregate

            made = self.new_graph.output(map_aggregate(result, strip), old.type)
            made.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)


def _no_default() -> Any:
    import inspect

    return inspect.Signature.empty


__all__ = ["Interpreter", "Transformer"]
