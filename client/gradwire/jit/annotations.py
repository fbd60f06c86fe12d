"""``torch.jit.annotations``: types for annotations."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from .._core.surface import stand_ins
from .._jit_internal import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
    Final,
    Future,
    is_dict,
    is_future,
    is_list,
    is_optional,
    is_tuple,
    is_union,
)

__all__ = ["Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4",
           "BroadcastingList5", "BroadcastingList6", "Dict", "Final", "Future", "List", "Optional", "Tuple", "Union",
           "is_dict", "is_future", "is_list", "is_optional", "is_tuple", "is_union"]  # fmt: skip

stand_ins.fill(
    __name__,
    ("AnyType", "ComplexType", "DictType", "FloatType", "IntType", "ListType", "StringType", "TensorType", "TupleType",
     "get_type_line", "EvalEnv", "Module", "ann_to_type", "check_fn", "get_enum_value_type", "get_num_params",
     "get_param_names",
     "get_signature", "parse_type_line", "split_type_line", "try_ann_to_type", "try_real_annotations"),
    "nothing is compiled from Python source",
)  # fmt: skip
