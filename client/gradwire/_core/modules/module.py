"""``Module``: a tree of parameters, buffers and modules with a ``forward``."""

from __future__ import annotations

import builtins
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, overload

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..context.argument_types import Device
from ..context.late_signatures import called_as, show_as
from ..context.layouts import memory_format
from ..context.modes import no_grad
from ..dispatch.dispatch import call
from ..session.kept_objects import KEEPERS, Keeper
from ..surface.conversions import reordered
from ..surface.creation import place
from ..surface.creation_like import empty_like
from ..surface.to_arguments import to_arguments, to_form
from ..tensor.tensor import NO_GRAD, Tensor
from .global_hooks import BUFFERS, MODULES, PARAMETERS, replaced
from .hooked import Hooked
from .parameter import Buffer, Parameter, clear_gradients
from .state import Stateful

SomeModule = TypeVar("SomeModule", bound="Module")
_TABLES = ("_parameters", "_buffers", "_modules")


class Module(Hooked, Stateful):
    """The base of all layers and models.

    Parameters, buffers and modules that are assigned as attributes are registered under the attribute's name.
    A subclass calls ``super().__init__()`` before it assigns any, and defines ``forward``.
    """

    training: bool
    dump_patches: bool = False
    call_super_init: bool = False
    """Whether the next class in the order of inheritance is initialised, too, with the arguments that are left."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            given = [*map(repr, args), *kwargs]
            raise ArgumentTypeError(f"Module.__init__() takes no arguments, got {', '.join(given)!s:.80}")
        plain = object.__setattr__
        plain(self, "training", True)
        plain(self, "_parameters", {})
        plain(self, "_buffers", {})
        plain(self, "_non_persistent_buffers_set", set())
        plain(self, "_modules", {})
        self._init_hooks()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes of another module, as a copy does. Tables of hooks that they lack are empty."""
        self._init_hooks()
        self.__dict__.update(state)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result. Every subclass defines its own."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Keep a parameter under ``name``; None reserves the name."""
        self._check_name(name, "parameter", "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentTypeError(f"parameter {name!r} must be a Parameter or None, not {type(param).__name__}")
        if param is not None and not param.is_leaf:
            raise ArgumentValueError(f"parameter {name!r} was computed: a parameter is a leaf, made from values alone")
        self._parameters[name] = replaced(PARAMETERS, self, name, param) if PARAMETERS and param is not None else param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep a tensor that is not trained under ``name``. Only persistent buffers are part of the state dict."""
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentTypeError(f"buffer {name!r} must be a tensor or None, not {type(tensor).__name__}")
        self._buffers[name] = replaced(BUFFERS, self, name, tensor) if BUFFERS else tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Keep a module under ``name``; None reserves the name."""
        self._check_name(name, "module", "_modules")
        if module is not None and not isinstance(module, Module):
            raise ArgumentTypeError(f"module {name!r} must be a Module or None, not {type(module).__name__}")
        self._modules[name] = replaced(MODULES, self, name, module) if MODULES else module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as :meth:`add_module`."""
        self.add_module(name, module)

    def _check_name(self, name: str, what: str, table: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(f"a {what} cannot be registered before Module.__init__() was called")
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a {what}'s name is a string, not {type(name).__name__}")
        if "." in name:
            raise KeyError(f"a {what}'s name cannot contain a dot: {name!r}")
        if name == "":
            raise KeyError(f"a {what}'s name cannot be empty")
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute {name!r} exists already")

    def __getattr__(self, name: str) -> Any:
        # Reached only where ordinary lookup found nothing.
        slots = self.__dict__
        for table in _TABLES:
            if table in slots:
                entries = slots[table]
                if name in entries:
                    return entries[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        slots = self.__dict__
        if isinstance(value, Parameter):
            self._release(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._release(name, "_modules")
            if "_modules" not in slots:
                raise AttributeError("a module cannot be assigned before Module.__init__() was called")
            self._modules[name] = replaced(MODULES, self, name, value) if MODULES else value
        elif isinstance(value, Buffer) and name not in slots.get("_buffers", ()):
            self._release(name, "_buffers")
            made: Any = value
            self.register_buffer(name, made, made.persistent)
        elif name in slots.get("_parameters", ()):
            if value is not None:
                raise ArgumentTypeError(f"parameter {name!r} takes a Parameter or None, not {type(value).__name__}")
            self._parameters[name] = None
        elif name in slots.get("_modules", ()):
            if value is not None:
                raise ArgumentTypeError(f"module {name!r} takes a Module or None, not {type(value).__name__}")
            self._modules[name] = replaced(MODULES, self, name, None) if MODULES else None
        elif name in slots.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise ArgumentTypeError(f"buffer {name!r} takes a tensor or None, not {type(value).__name__}")
            self._buffers[name] = replaced(BUFFERS, self, name, value) if BUFFERS else value
        else:
            object.__setattr__(self, name, value)

    def _release(self, name: str, keep: str) -> None:
        """Forget what an attribute was, unless it is an entry of the table ``keep``."""
        self.__dict__.pop(name, None)
        for table in _TABLES:
            if table != keep:
                self.__dict__.get(table, {}).pop(name, None)
        if keep != "_buffers":
            self.__dict__.get("_non_persistent_buffers_set", set()).discard(name)

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    # Traversal

    def children(self) -> Iterator[Module]:
        """The modules directly inside, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside with their names, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once, or as often as it is there."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their dotted names, parents first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def _named_members(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, member in getattr(module, table).items():
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; with ``recurse`` those of all modules below, too."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once; with ``recurse`` those of all modules below, too."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; the empty path is this module."""
        found = self
        for name in target.split(".") if target else ():
            inner = getattr(found, name, None)
            if inner is None:
                raise AttributeError(f"{type(found).__name__} has nothing named {name!r} (on the way to {target!r})")
            if not isinstance(inner, Module):
                raise AttributeError(f"{name!r} (on the way to {target!r}) is no module")
            found = inner
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace, or add, the module at a dotted path; with ``strict`` only replace.

        Raises:
            ArgumentValueError: for an empty path, or what is no module.
            AttributeError: where something on the way, or what would be replaced, is no module.
        """
        parent_path, _, name = target.rpartition(".")
        if not name:
            raise ArgumentValueError("set_submodule needs the path of a module below this one")
        if not isinstance(module, Module):
            raise ArgumentValueError(f"set_submodule takes a module, not {type(module).__name__}")
        parent = self.get_submodule(parent_path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has nothing named {name!r} to replace")
        if not isinstance(getattr(parent, name, module), Module):
            raise AttributeError(f"{name!r} (at the end of {target!r}) is no module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        found: Parameter = self._get_member(target, "_parameters", "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        found: Tensor = self._get_member(target, "_buffers", "buffer")
        return found

    def _get_member(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        entries = getattr(owner, table)
        if name not in entries:
            raise AttributeError(f"{type(owner).__name__} has no {what} named {name!r}")
        return entries[name]

    # Acting on the whole tree

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` on every module below and then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, which dropout and batch normalisation look at."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is True or False, not {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Train all parameters from now on, or none."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or make them zero, in one record."""
        clear_gradients(self.parameters(), set_to_none)

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace the memory of every parameter, gradient and buffer by what ``fn`` makes of it.

        Parameters stay the same objects, so that an optimizer that holds them goes on; but to the meta device and back
        they are new ones, since nothing of them is the same.
        """
        for module in self.children():
            module._apply(fn)
        with no_grad():
            for name, param in self._parameters.items():
                if param is None:
                    continue
                grad = param.grad if param._grad_state != NO_GRAD else None
                self._parameters[name] = _replaced(param, fn)
                if grad is not None:
                    _replaced(grad, fn)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    @overload
    def to(
        self, device: Device = None, dtype: DType | None = None, non_blocking: bool = False, *,
        memory_format: memory_format | None = None,
    ) -> Self: ...  # fmt: skip
    @overload
    def to(self, dtype: DType, non_blocking: bool = False, *, memory_format: memory_format | None = None) -> Self: ...
    @overload
    def to(self, tensor: Tensor, non_blocking: bool = False, *, memory_format: memory_format | None = None) -> Self: ...

    @called_as(to_form)  # type: ignore[misc]  # whose arguments it takes apart
    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and/or floating point dtype, or those of a tensor. Integer members keep their dtype."""
        target, dtype, copy = to_arguments("Module.to()", args, kwargs)
        if copy is not None:
            raise ArgumentError("Module.to() changes the module in place, it takes no copy: use copy.deepcopy before")
        if dtype is not None and dtype.category < dtypes.FLOATING:
            raise ArgumentTypeError(f"a module can be floating point or complex, not {dtype.name}")
        if dtype is not None and dtype.is_complex:
            warnings.warn("not every layer computes with complex numbers", UserWarning, stacklevel=2)
        where = None if target is None else place(target)
        order = kwargs.get("memory_format")
        return self._apply(
            lambda t: _converted(t, dtype if t.dtype.category >= dtypes.FLOATING else None, where, order)
        )

    def to_empty(self, *, device: Device, recurse: bool = True) -> Self:
        """Move to a device without copying: the values are lost."""
        owner = self if recurse else _Shallow(self)
        owner._apply(lambda t: empty_like(t, device=device))
        return self

    def type(self, dst_type: DType | str | builtins.type[Tensor]) -> Self:
        """Cast all parameters and buffers, integer ones too; to a dtype or a type like ``torch.DoubleTensor``."""
        return self._apply(lambda t: t.type(dst_type))

    def _float_cast(self, dtype: DType) -> Self:
        return self._apply(lambda t: _converted(t, dtype, None) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating point members to float32."""
        return self._float_cast(dtypes.float32)

    def double(self) -> Self:
        """Cast floating point members to float64."""
        return self._float_cast(dtypes.float64)

    def half(self) -> Self:
        """Cast floating point members to float16."""
        return self._float_cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast floating point members to bfloat16."""
        return self._float_cast(dtypes.bfloat16)

    def cpu(self) -> Self:
        """Move to the server's CPU."""
        return self.to("cpu")

    def cuda(self, device: Device = None) -> Self:
        """Move to a GPU of the server."""
        return self.to("cuda" if device is None else device)

    def share_memory(self) -> Self:
        """Does nothing to what has memory: all processes that use a session share it.

        Raises:
            ArgumentError: for parameters without a shape, which have none.
        """
        for member in (*self.parameters(), *self.buffers()):
            member.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: the server compiles the frames that repeat, whatever they are made of."""

    # Printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the brackets when the module is printed."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        entries = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        return bracketed(self._get_name(), extra.split("\n") if extra else [], entries)

    def _repr_html_(self) -> str:
        """What a notebook shows: a tree that folds."""
        from .html_tree import module_html

        return module_html(self)


class _Shallow:
    """Applies a function to one module's own members, not to those below."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> None:
        below = self._module._modules
        object.__setattr__(self._module, "_modules", {})
        try:
            self._module._apply(fn)
        finally:
            object.__setattr__(self._module, "_modules", below)


def indented(text: str) -> str:
    """A text whose lines but the first are moved right by two columns."""
    return text.replace("\n", "\n  ")


def bracketed(name: str, extra: list[str], entries: list[str]) -> str:
    """A module's text: on one line while it is only its name and one line more."""
    if len(extra) <= 1 and not entries:
        return f"{name}({''.join(extra)})"
    return f"{name}(\n  " + "\n  ".join([*extra, *entries]) + "\n)"


def _converted(tensor: Tensor, dtype: DType | None, device: str | None, order: memory_format | None = None) -> Any:
    if order is not None and tensor.ndim in (4, 5):
        return reordered(tensor, order, dtype, device)
    dtype = dtype or tensor.dtype
    device = device or tensor._form.device
    if dtype is tensor.dtype and device == tensor._form.device:
        return tensor
    return call("to", tensor, dtype, device)


def _replaced(tensor: Tensor, fn: Callable[[Tensor], Tensor]) -> Any:
    made = fn(tensor)
    if made is tensor:
        return tensor
    if made._form.device != tensor._form.device and "meta" in (made._form.device, tensor._form.device):
        return Parameter(made, requires_grad=tensor.requires_grad)
    tensor.data = made
    return tensor


def _take_state(module: Module) -> dict[str, Any]:
    """What a checkpoint keeps of a module: which parameters and buffers it has, and its mode."""
    return {"parameters": dict(module._parameters), "buffers": dict(module._buffers), "training": module.training}


def _put_state(module: Module, kept: dict[str, Any]) -> None:
    for table, before in ((module._parameters, kept["parameters"]), (module._buffers, kept["buffers"])):
        table.clear()
        table.update(before)
    module.training = kept["training"]


KEEPERS[Module] = Keeper(_take_state, _put_state)

# What a class hands on to the next one is nothing as a rule.
show_as(Module.__init__, lambda: inspect.signature(Module._init_hooks))
