"""``torch._subclasses.meta_utils``: PyTorch's converter to tensors without values."""

from .._core.surface import stand_ins

stand_ins.fill(__name__, ("MetaConverter", "MetaTensorDescriber", "assert_metadata_eq"), 'x.to("meta") has no values')
