"""Which nodes a program's own backend supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..node import Node, qualified_name_of_call


class OperatorSupportBase:
    """Says of nodes whether they are supported. Subclasses decide."""

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether a node is."""
        raise NotImplementedError(f"{type(self).__name__} defines no is_node_supported()")


class OperatorSupport(OperatorSupportBase):
    """Supports the calls whose target is in a table.

    Args:
        support_dict: dtypes of arguments by the target's name, or None for any.
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        return qualified_name_of_call(submodules, node) in self._support_dict


class _Decides(OperatorSupportBase):
    def __init__(self, decide: Callable[[Mapping[str, Any], Node], bool]) -> None:
        self._decide = decide

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        return self._decide(submodules, node)


def create_op_support(is_node_supported: Callable[[Mapping[str, Any], Node], bool]) -> OperatorSupportBase:
    """What a function decides."""
    return _Decides(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of them support."""
    return _Decides(lambda modules, node: all(x.is_node_supported(modules, node) for x in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of them supports."""
    return _Decides(lambda modules, node: any(x.is_node_supported(modules, node) for x in op_support))


__all__ = ["OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]
