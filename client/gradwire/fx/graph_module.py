"""``GraphModule``: a module whose ``forward`` is the code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from gradwire_protocol.errors import ArgumentError, Unsupported

from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.tensor.tensor import Tensor
from ._codegen import PythonCode, _PyTreeCodeGen
from .graph import Graph

_USER_PRESERVED_ATTRIBUTES_KEY: Final = "_user_preserved_attributes"
_numbers = itertools.count()


def _function_of(code: PythonCode, name: str, graph: Graph) -> Callable[..., Any]:
    """The function that code defines. Its source is known to tracebacks."""
    key = f"<eval_with_key>.{next(_numbers)}"
    origin = graph._co_fields
    if origin:
        key += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
    names = dict(code.globals)
    source = code.src
    linecache.cache[key] = (len(source), None, source.splitlines(keepends=True), key)
    # The source is written by _codegen from the nodes of a graph: identifiers, constants, and names of `globals`.
    exec(compile(source, key, "exec", dont_inherit=True), names)  # noqa: S102
    made: Callable[..., Any] = names[name]
    return made


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Copy what is at a path, with empty modules on the way."""
    *path, field = target.split(".")
    for part in path:
        source, here = getattr(from_module, part), getattr(to_module, part, None)
        if source is here:
            return  # it came with one of its parents
        if here is None:
            here = Module()
            setattr(to_module, part, here)
        from_module, to_module = source, here
    _put(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Put an object at a path, with empty modules on the way."""
    *path, field = target.split(".")
    for part in path:
        here = getattr(to_module, part, None)
        if here is None:
            here = Module()
            setattr(to_module, part, here)
        to_module = here
    _put(to_module, field, from_obj)


def _put(module: Any, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        if name in vars(module):
            delattr(module, name)
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _get_attr(model: Any, attr_name: str) -> Any:
    for part in attr_name.split("."):
        model = getattr(model, part)
    return model


class _CodeOnlyModule(Module):
    """A module with these attributes, for subclasses of GraphModule that copy themselves."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module that runs a graph.

    ``forward`` is Python code, written from the graph (``code``); after changes of the graph, ``recompile`` writes it
    again. Each instance is of a class of its own, which has that method.

    Args:
        root: where modules, parameters and buffers that the graph names come from: a module, or a dict by path.
        graph: what it does.
        class_name: what its class is called.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        base = next(kind for kind in cls.__mro__ if kind.__qualname__.rpartition(".")[2] != "GraphModuleImpl")
        made: type[Any] = type("GraphModuleImpl", (base,), {"__module__": base.__module__})
        found: Self = super().__new__(made)
        return found

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                named = (root.named_children(), root.named_buffers(), root.named_parameters())
                targets = [*(name for name, _ in itertools.chain(*named)), *targets]
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in targets:
                if target not in root:
                    raise ArgumentError(f"the graph names {target!r}, which the dict of modules and tensors lacks")
            for target in sorted(targets, key=lambda path: path.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise ArgumentError(f"a GraphModule takes its parts from a module or a dict, not {type(root).__name__}")
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., Any]] = []
        self._create_node_hooks: list[Callable[..., Any]] = []
        self._erase_node_hooks: list[Callable[..., Any]] = []
        self._deepcopy_hooks: list[Callable[..., Any]] = []
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """What it does. A graph that is assigned is compiled."""
        found: Graph = self._graph
        return found

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"the graph of a GraphModule is a Graph, not {type(g).__name__}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code of its ``forward``."""
        if "_code" not in vars(self):
            raise ArgumentError("the module has no code yet: recompile() writes it")
        found: str = self._code
        return found

    def recompile(self) -> PythonCode:
        """Write ``forward`` again, after changes of the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info is not None:
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        written = self._graph.python_code(root_module="self")
        self._code = written.src
        self._lineno_map = written._lineno_map
        type(self).forward = _function_of(written, codegen._func_name, self._graph)  # type: ignore[method-assign]
        return written

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, *, fast_sympy_print: bool = False, expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:  # fmt: skip
        """Its code as a class, with that of modules in it that are graphs, too. Prints and returns it."""
        shown = _readable(self, self._get_name(), include_stride, include_device, colored)
        if print_output:
            print(shown)
        return shown

    # Parts

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module at a path, with empty modules on the way. False where something else is there."""
        *path, field = target.split(".")
        here: Any = self
        for part in path:
            found = getattr(here, part, None)
            if found is None:
                found = Module()
                setattr(here, part, found)
            if not isinstance(found, Module):
                return False
            here = found
        here.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the module at a path. False where there is none."""
        *path, field = target.split(".")
        here: Any = self
        for part in path:
            here = getattr(here, part, None)
            if not isinstance(here, Module):
                return False
        if not isinstance(getattr(here, field, None), Module):
            return False
        delattr(here, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            used.update(itertools.accumulate(node.target.split("."), lambda path, part: f"{path}.{part}"))
            if node.op == "call_module":
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            if name:
                self.delete_submodule(name)

    # Copies and files

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        held = {key: value for key, value in vars(self).items() if key not in ("_graph", "_deepcopy_hooks")}
        base = next(kind for kind in type(self).__mro__ if kind.__qualname__.rpartition(".")[2] != "GraphModuleImpl")
        kind: Any = base
        made: GraphModule = kind.__new__(kind)
        memo[id(self)] = made
        Module.__init__(made)
        type(made).__name__ = type(self).__name__
        vars(made).update(copy.deepcopy(held, memo))
        made._deepcopy_hooks = []
        made.graph = copy.deepcopy(self.graph, memo)
        for hook in self._deepcopy_hooks:
            hook(made)
        return made

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph, type(self).__name__)
        made.meta = self.meta
        return made

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            f"{type(self).__name__} is a GraphModule: its code would run when a file of it is loaded, which gradwire "
            "does not do. Save its state_dict(), and trace the module again where it is loaded"
        )

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write a Python module with the code, and a file with the state dict: a program imports it by itself.

        Modules in it are written as the calls that make them, which only layers have.

        Raises:
            Unsupported: where it has modules of other kinds.
        """
        from .. import nn
        from ..serialization import save
        from ._codegen import builtins_of_code

        kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
        lines = []
        for name, child in self.named_children():
            if type(child) not in kinds:
                raise Unsupported(f"to_folder writes layers of torch.nn, not {type(child).__name__} ({name})")
            lines.append(f"        self.{name} = nn.{child!r}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                made = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
                lines.append(f"        self.register_buffer({name!r}, {made})")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                made = f"torch.empty({list(parameter.shape)}, dtype={parameter.dtype})"
                lines.append(f"        self.{name} = nn.Parameter({made})")
        place = Path(folder)
        place.mkdir(exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        imports = "\n".join(known.import_str for known in builtins_of_code().values())
        head = f"{imports}\nfrom pathlib import Path\nfrom torch import nn\n\n\nclass {module_name}(nn.Module):\n"
        init = "    def __init__(self):\n        super().__init__()\n"
        read = "        self.load_state_dict(torch.load(Path(__file__).with_name('state_dict.pt')))\n"
        code = "\n".join(f"    {line}" if line else "" for line in self.code.strip("\n").split("\n"))
        (place / "module.py").write_text(f"{head}{init}{chr(10).join(lines)}\n{read}\n{code}\n")
        (place / "__init__.py").write_text("from .module import *\n")

    # Hooks

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__repr__()}\n{self._code}\n{note}"


def _indented(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("    " + line for line in rest)]) if rest else first


def _readable(module: GraphModule, name: str, stride: bool, device: bool, colored: bool) -> str:
    written = module.graph.python_code(
        "self", verbose=True, include_stride=stride, include_device=device, colored=colored
    )
    own = _indented(f"class {name}(torch.nn.Module):\n" + written.src.lstrip("\n"))
    inner = [
        _readable(child, path, stride, device, colored)
        for path, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    return own + _indented("\n".join(["", *inner]))


__all__ = ["GraphModule", "_assign_attr", "_copy_attr", "_get_attr"]
