"""``torch._dynamo.exc``: errors of PyTorch's compiler, for ``except``. None is raised here."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """An error of PyTorch's compiler."""


class Unsupported(TorchDynamoException):
    """What PyTorch's compiler cannot compile."""


class InternalTorchDynamoError(TorchDynamoException):
    """A defect of PyTorch's compiler."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend that failed."""


class TorchRuntimeError(TorchDynamoException):
    """An operation that fails while it is compiled."""


class UserError(Unsupported):
    """A program that cannot be compiled."""


class RecompileError(TorchDynamoException):
    """A function that would be compiled again where that is forbidden."""


class RecompileLimitExceeded(Unsupported):
    """A function that was compiled too often."""


class RestartAnalysis(TorchDynamoException):
    """The compiler begins again."""


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """The compiler begins again, with numbers as tensors."""


class SkipFrame(TorchDynamoException):
    """A function that is not compiled."""


class ResetRequired(TorchDynamoException):
    """The compiler needs ``torch._dynamo.reset()``."""
