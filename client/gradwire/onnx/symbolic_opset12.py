"""``torch.onnx.symbolic_opset12``: how PyTorch's export describes operations, which gradwire lacks."""

from .._core.surface import stand_ins

stand_ins.fill(__name__, ("dropout", "masked_fill", "select", "softmax", "squeeze", "unsqueeze"), "nothing is exported")
