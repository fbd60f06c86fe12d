"""``torch.utils.backend_registration``: devices from outside of PyTorch, which gradwire does not have."""

from .._core.surface import stand_ins

stand_ins.fill(
    __name__, ("generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"),
    "the server's devices are cpu and cuda",
)  # fmt: skip
