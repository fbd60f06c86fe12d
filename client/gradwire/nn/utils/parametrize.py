"""``torch.nn.utils.parametrize``: a parameter or buffer that is a function of others.

``module.weight`` becomes a property that computes the weight, each time it is asked for, from an *original* that is
trained in its place. The functions are modules; their inverses, ``right_inverse``, say which original gives a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from ..._core.context.modes import no_grad
from ..._core.modules.module import Module, SomeModule
from ..._core.modules.parameter import Parameter
from ..._core.tensor.tensor import Tensor
from ..container import ModuleDict, ModuleList


class _Cache:
    """What parametrized tensors are, while someone asked to keep it."""

    depth = 0
    held: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within this context each parametrized tensor is computed once, at its first use."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.held.clear()


def _keep(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _replace(tensor: Any, value: Tensor) -> None:
    """Let a tensor that others may hold, an optimizer say, show other memory."""
    if value is not tensor:
        tensor.data = value.detach()


def _inverted(parametrizations: Any, value: Any) -> Any:
    """What comes out of the inverses, last parametrization first; one without an inverse changes nothing."""
    for parametrization in reversed(list(parametrizations)):
        if hasattr(parametrization, "right_inverse"):
            try:
                value = parametrization.right_inverse(value)
            except NotImplementedError:
                continue
    return value


def _need_like(what: str, found: Any, wanted: Any, *, shape: bool = True) -> None:
    """Check that a parametrization stays within tensors of one shape and dtype.

    Raises:
        ArgumentValueError: telling both.
    """
    if not isinstance(found, Tensor):
        raise ArgumentValueError(f"{what} must be a tensor, not {type(found).__name__}")
    if found.dtype != wanted.dtype:
        raise ArgumentValueError(f"{what} has dtype {found.dtype}, it must have {wanted.dtype}, unless unsafe is set")
    if shape and found.shape != wanted.shape:
        raise ArgumentValueError(
            f"{what} has shape {list(found.shape)}, it must have {list(wanted.shape)}, unless unsafe is set"
        )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and its original.

    The original stands under ``original``; where the first parametrization's inverse gives several tensors, under
    ``original0``, ``original1`` and so on. :func:`register_parametrization` makes these lists.

    Args:
        modules: the parametrizations, in the order in which they are applied.
        original: the parameter or buffer.
        unsafe: they may change dtype and shape.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ArgumentValueError("a ParametrizationList needs at least one parametrization")
        super().__init__(modules)
        self.unsafe: bool = unsafe
        like = original.detach()
        with no_grad():
            found: Any = _inverted(self, original)
        if not isinstance(found, (Tensor, list, tuple)):
            raise ArgumentValueError(
                f"right_inverse gives a tensor or a sequence of tensors, not {type(found).__name__}"
            )
        self.is_tensor: bool = isinstance(found, Tensor)
        self.ntensors: int = 1 if isinstance(found, Tensor) else len(found)
        if isinstance(found, Tensor):
            _need_like("what right_inverse gives", found, like, shape=False)
            if found.device != like.device:
                raise ArgumentValueError(f"right_inverse gives a tensor on {found.device}, not on {like.device}")
            _replace(original, found)
            _keep(self, "original", original)
        else:
            for i, part in enumerate(found):
                if not isinstance(part, Tensor):
                    raise ArgumentValueError(f"right_inverse gives tensors; number {i} is {type(part).__name__}")
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _keep(self, f"original{i}", part)
        if not unsafe:
            _need_like("what the parametrization gives", self(), like)

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrizations give ``value``, as far as their inverses are right."""
        with no_grad():
            for parametrization in reversed(list(self)):
                if not hasattr(parametrization, "right_inverse"):
                    raise ArgumentError(f"{type(parametrization).__name__} has no right_inverse: it cannot be assigned")
                value = parametrization.right_inverse(value)
        if self.is_tensor:
            _need_like("what right_inverse gives", value, self.original, shape=False)
            _replace(self.original, value)
            return
        if not isinstance(value, (list, tuple)) or len(value) != self.ntensors:
            raise ArgumentValueError(f"right_inverse gives a sequence of {self.ntensors} tensors, not {value!r:.60}")
        for i, part in enumerate(value):
            original = getattr(self, f"original{i}")
            _need_like(f"what right_inverse gives as number {i}", part, original, shape=False)
            _replace(original, part)

    def forward(self) -> Tensor:
        """The value of the parametrized tensor."""
        first, *others = list(self)
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for parametrization in others:
            value = parametrization(value)
        return value


def _property(name: str) -> property:
    def value(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _Cache.depth:
            return parametrization()
        key = id(self), name
        if key not in _Cache.held:
            _Cache.held[key] = parametrization()
        return _Cache.held[key]

    def assign(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(value, assign)


def register_parametrization(
    module: SomeModule, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> SomeModule:
    """Let a parameter or buffer be computed by a module from an original; returns the module.

    Its ``forward`` takes the original and gives the value. With a method ``right_inverse`` the tensor can be assigned,
    and what it is now is kept; that may give several tensors, which ``forward`` then takes. Further parametrizations
    of one tensor are applied to what the ones before give.

    Args:
        module: whose tensor.
        tensor_name: the attribute.
        parametrization: the module that computes it.
        unsafe: it may change dtype and shape, and is not checked.

    Raises:
        ArgumentValueError: when there is no such tensor, or the parametrization changes shape or dtype.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        listed = module.parametrizations[tensor_name]
        if not unsafe:
            now = getattr(module, tensor_name)
            value = parametrization(now)
            _need_like("what the parametrization gives", value, now)
            if hasattr(parametrization, "right_inverse"):
                try:
                    back = parametrization.right_inverse(value)
                except NotImplementedError:
                    back = now
                _need_like("what right_inverse gives", back, now)
        listed.append(parametrization)
        listed.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ArgumentValueError(f"{type(module).__name__} has no parameter or buffer named {tensor_name!r}")
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        # A class of its own, since a property is an attribute of a class.
        own = type(module)
        module.__class__ = type(f"Parametrized{own.__name__}", (own,), {})
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module is parametrized; without a name, whether any is."""
    listed = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(listed, ModuleDict):
        return False
    return len(listed) > 0 if tensor_name is None else tensor_name in listed


def remove_parametrizations(module: SomeModule, tensor_name: str, leave_parametrized: bool = True) -> SomeModule:
    """Make a parametrized tensor an ordinary one again; returns the module.

    Args:
        leave_parametrized: with the value that it has; else with that of its original, which must then be one tensor.

    Raises:
        ArgumentValueError: when it is not parametrized, or has several originals and they should be left.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentValueError(f"{tensor_name!r} of {type(module).__name__} is not parametrized")
    listed = module.parametrizations[tensor_name]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                _replace(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ArgumentValueError(f"{tensor_name!r} has {listed.ntensors} originals: none of them can take its place")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _keep(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class, disregarding parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give another module the parametrizations of one, with their originals; returns that other.

    Args:
        tensor_name: of this tensor only.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        listed = from_module.parametrizations[name]
        for parametrization in listed:
            register_parametrization(to_module, name, parametrization)
        names = ["original"] if listed.is_tensor else [f"original{i}" for i in range(listed.ntensors)]
        for original in names:
            setattr(to_module.parametrizations[name], original, getattr(listed, original))
    return to_module


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip
