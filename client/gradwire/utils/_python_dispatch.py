"""``torch.utils._python_dispatch``: there is no dispatcher below ops, so that nothing is in a mode of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Self

from gradwire_protocol.errors import Unsupported

from .._core.surface.stand_ins import stand_ins as _stand_ins

_INSTEAD = "ops run on the server; torch.overrides.TorchFunctionMode sees each call"


class TorchDispatchMode:
    """Can be subclassed. Entering one raises an error: there is no dispatcher below ops."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_dispatch__")

    def __enter__(self) -> Self:
        """Not available.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"TorchDispatchMode ({type(self).__name__}) is not supported by gradwire: {_INSTEAD}")

    def __exit__(self, *error: object) -> None:
        pass


class BaseTorchDispatchMode(TorchDispatchMode):
    """Can be subclassed, as its base."""


def is_traceable_wrapper_subclass(t: object) -> bool:
    """No: a tensor of another class has its values in itself."""
    return False


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """No: a tensor of another class has its values in itself."""
    return False


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """No: there are none."""
    return False


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """No: there are none."""
    return False


def any_torch_dispatch_mode_on_stack() -> bool:
    """No: there are none."""
    return False


def _get_current_dispatch_mode() -> None:
    return None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return []


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    yield []


def _push_mode(mode: TorchDispatchMode) -> NoReturn:
    raise Unsupported(f"TorchDispatchMode ({type(mode).__name__}) is not supported by gradwire: {_INSTEAD}")


globals().update(
    _stand_ins(
        __name__, "AliasInfo SchemaInfo _pop_mode autograd_would_have_decomposed get_alias_info "
        "return_and_correct_aliasing transform_subclass", _INSTEAD,
    )
)  # fmt: skip
