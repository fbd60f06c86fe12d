"""``torch.export``: PyTorch's exporter of graphs, which gradwire lacks. Its names can be imported and mentioned."""

from __future__ import annotations

from ._core.surface import stand_ins

__all__ = ["register_dataclass"]


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Without effect: nothing is exported."""


stand_ins.fill(
    __name__,
    ("AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature",
     "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection",
     "UnflattenedModule", "default_decompositions", "dims", "draft_export", "export", "load", "save", "unflatten"),
    "programs are not exported; torch.save writes weights",
)  # fmt: skip
