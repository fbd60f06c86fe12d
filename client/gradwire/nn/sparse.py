"""Tables that are looked up by index."""

from __future__ import annotations

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, Unsupported

from .._core.context.argument_types import Device
from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.surface.creation import empty
from .._core.tensor.tensor import Tensor
from . import functional as F
from . import init


class Embedding(Module):
    """A table with a row for each of ``num_embeddings`` integers: ``(...)`` gives ``(..., embedding_dim)``.

    ``weight`` starts standard normal. The row ``padding_idx`` starts at zero and receives no gradient.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Device = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if sparse:
            raise Unsupported("Embedding(sparse=True): sparse gradients are not supported by gradwire")
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"padding_idx {padding_idx} is outside a table of {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.num_embeddings: int = num_embeddings
        self.embedding_dim: int = embedding_dim
        self.padding_idx: int | None = padding_idx
        self.max_norm: float | None = max_norm
        self.norm_type: float = norm_type
        self.scale_grad_by_freq: bool = scale_grad_by_freq
        self.sparse: bool = sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is not None and tuple(_weight.shape) != shape:
            raise ArgumentError(f"the given table has shape {list(_weight.shape)}, not {list(shape)}")
        made = empty(shape, device=device, dtype=dtype) if _weight is None else _weight
        self.weight: Parameter = Parameter(made, requires_grad=not _freeze)
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """A table with the rows of a matrix; not trained unless ``freeze=False``."""
        if embeddings.ndim != 2:
            raise ArgumentError(f"a table is a matrix, the given tensor has shape {list(embeddings.shape)}")
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings,
            _freeze=freeze,
        )  # fmt: skip

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                call("fill_", call("select", self.weight, 0, self.padding_idx), 0)

    def forward(self, input: Tensor) -> Tensor:
        """The rows that integers name: ``(...)`` to ``(..., embedding_dim)``."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, usual in (("padding_idx", None), ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            value = getattr(self, name)
            if value != usual:
                parts.append(f"{name}={value}")
        return ", ".join(parts)


class EmbeddingBag(Module):
    """A table whose rows are looked up several at a time and reduced to one: ``(bags, size)``, or a vector with
    offsets, gives ``(bags, embedding_dim)``.

    ``weight`` starts standard normal. ``mode`` is ``"sum"``, ``"mean"`` or ``"max"``. The row ``padding_idx`` starts
    at zero, counts nothing and receives no gradient.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Device = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if sparse:
            raise Unsupported("EmbeddingBag(sparse=True): sparse gradients are not supported by gradwire")
        self.num_embeddings: int = num_embeddings
        self.embedding_dim: int = embedding_dim
        self.max_norm: float | None = max_norm
        self.norm_type: float = norm_type
        self.scale_grad_by_freq: bool = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"padding_idx {padding_idx} is outside a table of {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.padding_idx: int | None = padding_idx
        shape = (num_embeddings, embedding_dim)
        if _weight is not None and tuple(_weight.shape) != shape:
            raise ArgumentError(f"the given table has shape {list(_weight.shape)}, not {list(shape)}")
        self.weight: Parameter = Parameter(empty(shape, device=device, dtype=dtype) if _weight is None else _weight)
        if _weight is None:
            self.reset_parameters()
        self.mode: str = mode
        self.sparse: bool = sparse
        self.include_last_offset: bool = include_last_offset

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """A table with the rows of a matrix; not trained unless ``freeze=False``."""
        if embeddings.ndim != 2:
            raise ArgumentError(f"a table is a matrix, the given tensor has shape {list(embeddings.shape)}")
        rows, columns = embeddings.shape
        made = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset,
            padding_idx,
        )  # fmt: skip
        made.weight.requires_grad_(not freeze)
        return made

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                call("fill_", call("select", self.weight, 0, self.padding_idx), 0)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """One row for each bag of integers."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, usual in (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            value = getattr(self, name)
            if value != usual:
                parts.append(f"{name}={value}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)
