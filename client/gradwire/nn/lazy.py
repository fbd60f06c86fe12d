"""Parameters without a shape yet, and the modules that find it out from their first input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from .._core.context import size
from .._core.context.argument_types import Device
from .._core.dispatch.overrides import refuses_overrides
from .._core.modules.parameter import Parameter
from .._core.session.current_session import get_default_dtype
from .._core.surface.creation import empty
from .._core.tensor.tensor import Tensor


class _Shapeless:
    """What stands for a tensor that has a dtype and a device, and no shape and no memory."""

    __slots__ = ()

    _has_shape = False
    __torch_function__: Any = classmethod(refuses_overrides)
    _FINAL: type[Tensor]

    def _describe(self, requires_grad: bool, device: Any, dtype: DType | None) -> None:
        given = self.__dict__
        given["_wanted"] = {"requires_grad": requires_grad, "device": device, "dtype": dtype or get_default_dtype()}

    def __getattr__(self, name: str) -> Any:
        if name in ("_session", "_id", "_form"):
            raise ArgumentValueError(
                f"this {type(self).__name__} has no shape yet, so nothing can be computed with it: call the module "
                "once, it then learns the shape from its input"
            )
        return super().__getattr__(name)  # type: ignore[misc]

    def __del__(self) -> None:
        """There is nothing on the server to release."""

    @property
    def dtype(self) -> DType:
        """The dtype that the tensor will have."""
        found: DType = self.__dict__["_wanted"]["dtype"]
        return found

    @property
    def device(self) -> Device:
        """The device that the tensor will be on."""
        return size.device(self.__dict__["_wanted"]["device"] or "cpu")

    @property
    def shape(self) -> Any:
        """Not known yet.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(
            f"this {type(self).__name__} has no shape yet: call the module once before loading it into another, or "
            "looking at its shape"
        )

    @property
    def is_leaf(self) -> bool:
        """True: it was not computed."""
        return True

    @property
    def grad(self) -> None:
        """None."""
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(**self.__dict__["_wanted"])
        return memo[id(self)]

    def share_memory_(self) -> Self:
        """Refused: there is no memory yet.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(f"this {type(self).__name__} has no memory to share yet: call the module once")

    def materialize(self, shape: Sequence[int], device: Device = None, dtype: DType | None = None) -> None:
        """Become an ordinary tensor of this shape, with memory whose values are arbitrary."""
        wanted = self.__dict__.pop("_wanted")
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        made = empty(extents, device=device or wanted["device"], dtype=dtype or wanted["dtype"])
        final: Any = self
        final._session, final._id, final._form = made._session, made._id, made._form
        del made._session  # it no longer releases the tensor when it is dropped
        final.__class__ = self._FINAL
        if wanted["requires_grad"]:
            final.requires_grad_()


class UninitializedParameter(_Shapeless, Parameter):  # type: ignore[misc]  # it has no gradient
    """A parameter whose shape is not known yet; :meth:`materialize` makes it an ordinary one."""

    __slots__ = ()
    _FINAL = Parameter

    def __new__(cls, requires_grad: bool = True, device: Device = None, dtype: DType | None = None) -> Any:
        made = object.__new__(cls)
        made._node, made._slot, made._base_tensor, made._versions = None, 0, None, None
        made._describe(requires_grad, device, dtype)
        return made

    @property
    def requires_grad(self) -> bool:
        """Whether the parameter will require grad."""
        found: bool = self.__dict__["_wanted"]["requires_grad"]
        return found

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether the parameter will require grad."""
        self.__dict__["_wanted"]["requires_grad"] = requires_grad
        return self


class UninitializedBuffer(_Shapeless, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet; :meth:`materialize` makes it an ordinary tensor."""

    __slots__ = ()
    _FINAL = Tensor
    requires_grad = False

    def __new__(
        cls, requires_grad: bool = False, device: Device = None, dtype: DType | None = None, persistent: bool = True
    ) -> Any:
        made: Any = object.__new__(cls)
        made._node, made._slot, made._base_tensor, made._versions = None, 0, None, None
        made._is_buffer, made.persistent = True, persistent
        made._describe(False, device, dtype)
        return made


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, _Shapeless)


class LazyModuleMixin:
    """Makes a module of parameters without shapes: the first call finds them out, and then the class changes to
    ``cls_to_become``.

    A class that mixes this in, before its module class, makes :class:`UninitializedParameter` in ``__init__`` and
    gives them shapes in ``initialize_parameters``, which is called with the arguments of the first call.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._initialize_hook = module.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _members(self) -> dict[str, Any]:
        module: Any = self
        return {**module._parameters, **module._buffers}

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes. Every class defines its own."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize_parameters()")

    def has_uninitialized_params(self) -> bool:
        """Whether any parameter or buffer of this module has no shape yet."""
        return any(map(is_lazy, self._members().values()))

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise ArgumentError(f"{type(self).__name__}: some parameters have no shape after initialize_parameters()")
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _apply(self, fn: Any) -> Self:
        """Parameters without a shape go to the dtype and device that an empty tensor goes to."""
        module: Any = self
        aside = {name: member for name, member in self._members().items() if is_lazy(member)}
        tables = (module._parameters, module._buffers)
        kept = [dict(table) for table in tables]
        for table in tables:
            table.update({name: None for name in table if name in aside})
        try:
            super()._apply(fn)  # type: ignore[misc]
        finally:
            for table, before in zip(tables, kept, strict=True):
                table.update({name: before[name] for name in table if name in aside})
        for member in aside.values():
            wanted = member.__dict__["_wanted"]
            probe = fn(empty(0, dtype=wanted["dtype"], device=wanted["device"]))
            wanted["dtype"], wanted["device"] = probe.dtype, probe._form.device
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        module: Any = self
        for name, value in module._persistent().items():
            if value is not None:
                destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        module: Any = self
        for name, member in module._persistent().items():
            value = state_dict.get(prefix + name)
            if is_lazy(member) and value is not None and not is_lazy(value):
                member.materialize(tuple(value.shape))
        shapeless = {prefix + name for name, member in module._persistent().items() if is_lazy(member)}
        # What has a shape cannot be loaded from what has none: the base class refuses it.
        given = {k: v for k, v in state_dict.items() if not (k in shapeless and is_lazy(v))}
        lacking = [k for k in state_dict if k not in given]
        missing: list[str] = rest[2]
        super()._load_from_state_dict(given, prefix, *rest)  # type: ignore[misc]
        missing[:] = [name for name in missing if name not in lacking]
