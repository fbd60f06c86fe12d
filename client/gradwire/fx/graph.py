"""``Graph``: a function as a list of nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from gradwire_protocol.errors import ArgumentError

from . import _names
from ._codegen import INPLACE, MAGIC, REFLECTABLE, CodeGen, PythonCode, _PyTreeCodeGen, _PyTreeInfo, builtins_of_code
from ._namespace import TAKEN, Namespace, snake_case
from .node import Node, _format_arg, map_arg

_Namespace = Namespace
_snake_case = snake_case
magic_methods: Final = MAGIC
reflectable_magic_methods: Final = REFLECTABLE
inplace_methods: Final = INPLACE
_NONE: Final = object()


class _InsertPoint:
    """Inside of a ``with`` of it, nodes go to another place."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph, which may change while they are gone through."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, direction = self.graph._root, self.direction
        node: Node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """A function, as nodes in the order in which they are run.

    Args:
        owning_module: the module that has it.
        tracer_cls: the class that traced it.
        tracer_extras: further arguments for that class's ``trace``.
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen: Any = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._places: dict[Node, int] | None = None
        self.meta: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The module that has it."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """Its nodes. ``reversed`` goes through them from the end; both may change them meanwhile."""
        return _node_list(self)

    def _changed_order(self) -> None:
        self._places = None

    def _position(self, node: Node) -> int:
        if self._places is None or node not in self._places:
            self._places = {other: i for i, other in enumerate(self.nodes)}
        return self._places[node]

    def output_node(self) -> Node:
        """The node that returns."""
        found = next(iter(reversed(self.nodes)))
        if found.op != "output":
            raise AssertionError(f"the last node of the graph is {found.op} {found.name}, not its output")
        return found

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Nodes of one kind, in order; of one target, if that is given, as ``call_function`` needs it."""
        if op == "call_function" and target is None:
            raise AssertionError("find_nodes looks for the calls of one function: give it as target")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # Copies

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Copy the nodes of ``g`` behind those of this graph, and note in ``val_map`` what became of each.

        Nodes that are in ``val_map`` already are not copied: what is there takes their place.

        Returns:
            What ``g`` returns, as this graph has it; None where ``g`` has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                made = map_arg(node.args[0], lambda n: val_map[n])
                return (made, node) if return_output_node else made
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        made._codegen = self._codegen
        made._co_fields = dict(self._co_fields)
        memo[id(self)] = made
        copies: dict[Node, Any] = {}
        found = made.graph_copy(self, copies, return_output_node=True)
        for old, new in copies.items():
            memo[id(old)] = new
        if found is not None:
            value, old = found
            new = made.output(value, type_expr=getattr(old, "type", None))
            new.meta = dict(old.meta)
            memo[id(old)] = new
        return made

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Copy one node of another graph; ``arg_transform`` gives this graph's nodes for those among its arguments."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    # New nodes

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Add a node where nodes are put at present, at the end as a rule.

        Args:
            op: its kind.
            target: what it calls or gets.
            args, kwargs: its arguments.
            name: what it is named after; its target otherwise.
            type_expr: its annotation.
        """
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args of a node are a tuple, not {type(args).__name__}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs of a node are a dict, not {type(kwargs).__name__}")
        chosen = self._graph_namespace.create_name(name or self._target_to_str(target), None)
        made = Node(self, chosen, op, target, args, kwargs, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(made)
        self._graph_namespace.associate_name_with_obj(chosen, made)
        self._insert(made)
        self._len += 1
        return made

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = _NONE) -> Node:
        """Add an input, with a default if one is given."""
        import inspect

        given = () if default_value is _NONE or default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, given, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node that gets an attribute of the module, by its path."""
        self._check_target(qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def _check_target(self, path: str) -> None:
        import warnings

        here = self.owning_module
        for part in path.split(".") if here is not None else ():
            if not hasattr(here, part):
                warnings.warn(
                    f"the graph's module has no {path!r}: its code will fail there until add_submodule, "
                    "register_parameter or register_buffer adds it",
                    stacklevel=3,
                )
                return
            here = getattr(here, part)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a module, by its path."""
        self._check_target(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Any, args: Any = None, kwargs: Any = None, type_expr: Any = None, name: str | None = None
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add what the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            named = _names.node_name_of(target)
        else:
            if not isinstance(target, str):
                raise AssertionError(f"a node calls a function or names its target, not {target!r:.60}")
            named = target
            if named.startswith("__") and named.endswith("__"):
                named = named[2:-2]
        return snake_case(named)

    # Changes

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node.

        Raises:
            RuntimeError: while other nodes use it.
        """
        if to_erase.users:
            raise ArgumentError(
                f"node {to_erase} cannot be erased: it has {len(to_erase.users)} users: {list(to_erase.users)}"
            )
        if to_erase.graph is not self:
            raise ArgumentError(f"node {to_erase} is not of this graph")
        if to_erase._erased:
            import warnings

            warnings.warn(f"erase_node: {to_erase} is erased already", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        self._changed_order()
        to_erase._update_args_kwargs((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes before ``n``, or at the beginning: inside of a ``with``, or from now on."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError(f"node {n} is not of this graph")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes behind ``n``, the next ones behind those; or at the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError(f"node {n} is not of this graph")
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes without users that do nothing but compute a value. Returns whether there were any."""
        self.lint()
        impure = is_impure_node or (lambda node: node.is_impure())
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not (node.op in ("placeholder", "output") or impure(node)):
                self.erase_node(node)
        owner, changed = self.owning_module, self._len < before
        if owner is not None:
            for child in owner.children():
                inner = getattr(child, "graph", None)
                if isinstance(inner, Graph):
                    changed |= inner.eliminate_dead_code(is_impure_node)
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # Checks

    def lint(self) -> None:
        """Check that the graph is a function: each node is its own, uses nodes before it alone, and finds its target.

        Raises:
            RuntimeError: for the first node that is not.
        """
        seen: set[Node] = set()
        names: set[str] = set()

        def check(node: Node, user: Node) -> Node:
            if node.graph is not self:
                raise ArgumentError(f"argument {node} of node {user} is not of this graph")
            if node not in seen:
                raise ArgumentError(f"argument {node} of node {user} was used before it has been defined:\n{self}")
            return node

        for node in self.nodes:
            if node.graph is not self:
                raise ArgumentError(f"node {node} is not of this graph")
            if node.name in names:
                raise ArgumentError(f"two nodes have the name {node.name}")
            for used in node._input_nodes:
                check(used, node)
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        from .._core.modules.module import Module

        here, parts = self.owning_module, node.target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(here, part):
                path = ".".join(parts[: i + 1])
                raise ArgumentError(f"node {node} with target {node.target!r} referenced nonexistent attribute {path}")
            here = getattr(here, part)
        if node.op == "call_module" and not isinstance(here, Module):
            raise ArgumentError(f"node {node} calls {node.target!r}, which is no module but {type(here).__name__}")

    # Text

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have another code generator write the function."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the function as the graph's inputs take them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The graph's output as the function returns it."""
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Have the lines of the function's body changed by what ``make_transformer`` makes of the function that changes
        them at present. Used in ``with``, until its end."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_end() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until_end()

    def python_code(
        self, root_module: str, *, verbose: bool = False, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, expanded_def: bool = False, record_func: bool = False, additional_meta: Any = None,
    ) -> PythonCode:  # fmt: skip
        """The graph as the source of a Python function, with the globals that it names.

        Args:
            root_module: what the module is called in it.
            verbose: comment on nodes.
            include_stride, include_device: tell these, too, where they are known.
            colored: color it for a terminal.
        """
        namespace = Namespace()

        def written(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = written
        try:
            made: PythonCode = self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, include_stride=include_stride,
                include_device=include_device, colored=colored,
            )  # fmt: skip
            return made
        finally:
            for node, shown in before.items():
                node._repr_fn = shown

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        header = ("opcode", "name", "target", "args", "kwargs")
        rows = [tuple(str(cell) for cell in (n.op, n.name, n.target, n.args, n.kwargs)) for n in self.nodes]
        widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
        for row in (header, tuple("-" * width for width in widths), *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


TAKEN.update({_name: _known.obj for _name, _known in builtins_of_code().items()})

__all__ = [
    "CodeGen", "Graph", "PythonCode", "_Namespace", "_PyTreeCodeGen", "_PyTreeInfo", "_format_arg", "_node_list",
    "_snake_case", "inplace_methods", "magic_methods", "reflectable_magic_methods",
]  # fmt: skip
