"""Names of ``torch.distributed`` that gradwire lacks and that programs import before they know whether they need them.

``_core/surface/stand_ins.py`` says what they are.
"""

from __future__ import annotations

import sys
from typing import Final

from .._core.surface.stand_ins import stand_in

_SHARDING: Final = "every rank has all parameters: torch.nn.parallel.DistributedDataParallel averages their gradients"
_STATES: Final = (
    "StateDictType", "StateDictConfig", "FullStateDictConfig", "LocalStateDictConfig", "ShardedStateDictConfig",
    "OptimStateDictConfig", "FullOptimStateDictConfig", "LocalOptimStateDictConfig", "ShardedOptimStateDictConfig",
    "StateDictSettings", "ShardingStrategy", "BackwardPrefetch", "MixedPrecision", "CPUOffload",
)  # fmt: skip

REFUSED: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "": (
        ("TCPStore", "FileStore", "HashStore", "PrefixStore", "Store", "DeviceMesh", "init_device_mesh", "split_group",
         "shrink_group", "register_rendezvous_handler", "rendezvous", "breakpoint"),
        "ranks meet on the server, and groups are made by new_group",
    ),
    "algorithms": (("Join", "Joinable", "JoinHook"), "all ranks make equally many steps"),
    "algorithms.ddp_comm_hooks": (
        ("DDPCommHookType", "register_ddp_comm_hook"), "gradients are averaged in their own dtype",
    ),
    "algorithms.ddp_comm_hooks.default_hooks": (
        ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "fp16_compress_wrapper",
         "bf16_compress_wrapper"),
        "gradients are averaged in their own dtype",
    ),
    "checkpoint": (
        ("FileSystemReader", "FileSystemWriter", "StorageReader", "StorageWriter", "LoadPlanner", "SavePlanner",
         "DefaultLoadPlanner", "DefaultSavePlanner", "async_save", "load", "save", "load_state_dict",
         "save_state_dict"),
        "each rank has the whole state: torch.save it on rank 0",
    ),
    "checkpoint.state_dict": (
        ("StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
         "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"),
        "each rank has the whole state: use state_dict() and load_state_dict()",
    ),
    "device_mesh": (("DeviceMesh", "init_device_mesh"), "groups are made by torch.distributed.new_group"),
    "elastic.multiprocessing": (
        ("start_processes", "MultiprocessContext", "PContext", "RunProcsResult", "SignalException", "Std",
         "DefaultLogsSpecs", "SubprocessContext"),
        "`gradwire run --nproc N` starts ranks",
    ),
    "fsdp": (
        (*_STATES, "FullyShardedDataParallel", "OptimStateKeyType", "CPUOffloadPolicy", "FSDPModule", "fully_shard",
         "MixedPrecisionPolicy", "OffloadPolicy", "register_fsdp_forward_method", "UnshardHandle"),
        _SHARDING,
    ),
    "fsdp.api": (_STATES, _SHARDING),
    "fsdp.fully_sharded_data_parallel": ((*_STATES, "FullyShardedDataParallel", "OptimStateKeyType"), _SHARDING),
    "fsdp.wrap": (
        ("always_wrap_policy", "lambda_auto_wrap_policy", "transformer_auto_wrap_policy", "size_based_auto_wrap_policy",
         "enable_wrap", "wrap", "CustomPolicy", "ModuleWrapPolicy"),
        _SHARDING,
    ),
    "optim": (
        ("DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim"),
        "each rank has the whole state of its optimizer",
    ),
    "pipelining": (
        ("Pipe", "pipe_split", "SplitPoint", "pipeline", "PipelineStage", "build_stage", "Schedule1F1B",
         "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS", "ScheduleInterleavedZeroBubble"),
        "send and recv move tensors between ranks",
    ),
    "rpc": (
        ("init_rpc", "BackendType", "TensorPipeRpcBackendOptions", "shutdown", "get_worker_info", "remote", "rpc_sync",
         "rpc_async", "RRef"),
        "ranks exchange tensors and plain objects by collectives",
    ),
    "tensor": (
        ("DTensor", "distribute_tensor", "distribute_module", "Shard", "Replicate", "Partial", "Placement"),
        "a tensor is in one session",
    ),
    "tensor.parallel": (
        ("ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
         "RowwiseParallel", "SequenceParallel", "parallelize_module", "loss_parallel"),
        "a tensor is in one session",
    ),
}  # fmt: skip
"""By submodule of ``torch.distributed``: the names, and what there is instead."""


def fill(module: str) -> None:
    """Put the refused names of a submodule of ``gradwire.distributed`` into it."""
    part = module.partition(".distributed")[2].lstrip(".")
    names, instead = REFUSED[part]
    place = f"torch.distributed.{part}" if part else "torch.distributed"
    given = vars(sys.modules[module])
    given.update({name: stand_in(name, f"{place}.{name}", instead) for name in names if name not in given})
