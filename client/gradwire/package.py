"""``torch.package``: archives of code and weights, which gradwire neither writes nor reads."""

from ._core.surface import stand_ins

__all__ = ["EmptyMatchError", "ObjMismatchError", "ObjNotFoundError", "PackagingError"]


class PackagingError(Exception):
    """An archive that cannot be written: never raised."""


class EmptyMatchError(Exception):
    """A pattern that matches no module: never raised."""


class ObjNotFoundError(Exception):
    """An object that is not in its module: never raised."""


class ObjMismatchError(Exception):
    """An object that is another one in its module: never raised."""


def is_from_package(obj: object) -> bool:
    """Never."""
    return False


stand_ins.fill(
    __name__,
    ("Directory", "GlobGroup", "Importer", "OrderedImporter", "PackageExporter", "PackageImporter", "sys_importer"),
    "archives of code are neither written nor read; torch.save writes weights",
)
