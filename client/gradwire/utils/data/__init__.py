"""``torch.utils.data``: data sets, samplers, and the loader that batches them."""

from importlib import import_module as _import_module
from typing import Any

from .collate import default_collate, default_convert
from .dataloader import DataLoader, _DatasetKind
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .workers import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "WorkerInfo", "_DatasetKind", "default_collate", "default_convert", "get_worker_info",
    "random_split",
]  # fmt: skip

_PIPES = ("DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe")
_REFUSED = (
    "DFIterDataPipe argument_validation guaranteed_datapipes_determinism non_deterministic runtime_validation "
    "runtime_validation_disabled"
)
_MODULES = ("_utils", "datapipes", "graph", "graph_settings")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name in _PIPES:
        return getattr(_import_module(f"{__name__}.datapipes.datapipe"), name)
    if name in _REFUSED.split():
        from ..._core.surface.stand_ins import stand_ins

        return stand_ins(__name__, name, "streams are put together by IterDataPipe")[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
