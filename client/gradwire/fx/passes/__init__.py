"""Passes over graphs."""

from . import graph_drawer, operator_support, param_fetch, shape_prop, split_module

__all__ = ["graph_drawer", "operator_support", "param_fetch", "shape_prop", "split_module"]
