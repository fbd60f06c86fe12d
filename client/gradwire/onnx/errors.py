"""``torch.onnx.errors``: errors of PyTorch's exporter, for ``except``."""


class OnnxExporterError(RuntimeError):
    """An error of the exporter."""


class OnnxExporterWarning(UserWarning):
    """A warning of the exporter."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operation that cannot be exported: never raised, since none is."""


class SymbolicValueError(OnnxExporterError):
    """A value that cannot be exported: never raised, since none is."""
