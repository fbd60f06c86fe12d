"""Names of ``torch.distributed`` that gradwire lacks and that programs import before they know whether they need them.

``_core/surface/stand_ins.py`` says what they are.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

from .._core.surface.stand_ins import stand_in

_SHARDING: Final = "every rank has all parameters: torch.nn.parallel.DistributedDataParallel averages their gradients"
_STATES: Final = (
    "StateDictType", "StateDictConfig", "FullStateDictConfig", "LocalStateDictConfig", "ShardedStateDictConfig",
    "OptimStateDictConfig", "FullOptimStateDictConfig", "LocalOptimStateDictConfig", "ShardedOptimStateDictConfig",
    "StateDictSettings", "ShardingStrategy", "BackwardPrefetch", "MixedPrecision", "CPUOffload",
)  # fmt: skip

_WHOLE: Final = "each rank has the whole state: torch.save it on rank 0"
_LAUNCH: Final = "`gradwire run --nproc N` starts ranks"

REFUSED: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "": (
        ("TCPStore", "FileStore", "DeviceMesh", "init_device_mesh", "split_group",
         "shrink_group", "register_rendezvous_handler", "rendezvous", "breakpoint"),
        "ranks meet on the server, and groups are made by new_group",
    ),
    "_composable": (("contract", "replicate", "fully_shard", "checkpoint"), _SHARDING),
    "_composable.fsdp": (
        ("CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
         "register_fsdp_forward_method"),
        _SHARDING,
    ),
    "_composable.replicate": (("replicate",), _SHARDING),
    "_composable.contract": (("contract",), _SHARDING),
    "_shard": (("shard_module", "shard_parameter"), "a tensor is in one session"),
    "_shard.sharded_tensor": (("ShardedTensor", "Shard", "init_from_local_shards"), "a tensor is in one session"),
    "_shard.sharding_spec": (("ChunkShardingSpec", "ShardingSpec"), "a tensor is in one session"),
    "_shard.checkpoint": (("load_state_dict", "save_state_dict"), "a tensor is in one session"),
    "_sharded_tensor": (("ShardedTensor", "Shard"), "a tensor is in one session"),
    "_tensor": (
        ("DTensor", "DeviceMesh", "distribute_tensor", "distribute_module", "init_device_mesh"),
        "a tensor is in one session",
    ),
    "_tensor.experimental": (("implicit_replication", "local_map"), "a tensor is in one session"),
    "_tensor.device_mesh": (("DeviceMesh", "init_device_mesh"), "groups are made by torch.distributed.new_group"),
    "algorithms": (("Join", "Joinable", "JoinHook"), "all ranks make equally many steps"),
    "algorithms.ddp_comm_hooks": (
        ("DDPCommHookType", "register_ddp_comm_hook"), "gradients are averaged in their own dtype",
    ),
    "algorithms.ddp_comm_hooks.default_hooks": (
        ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "fp16_compress_wrapper",
         "bf16_compress_wrapper"),
        "gradients are averaged in their own dtype",
    ),
    "algorithms.ddp_comm_hooks.powerSGD_hook": (
        ("PowerSGDState", "powerSGD_hook", "batched_powerSGD_hook"), "gradients are averaged in their own dtype",
    ),
    "algorithms.ddp_comm_hooks.post_localSGD_hook": (
        ("PostLocalSGDState", "post_localSGD_hook"), "gradients are averaged after each backward",
    ),
    "algorithms.ddp_comm_hooks.quantization_hooks": (
        ("quantization_perchannel_hook", "quantization_pertensor_hook"), "gradients are averaged in their own dtype",
    ),
    "algorithms.model_averaging": ((), "gradients are averaged after each backward"),
    "algorithms.model_averaging.averagers": (
        ("ModelAverager", "PeriodicModelAverager"), "gradients are averaged after each backward",
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
    "checkpoint.default_planner": (
        ("DefaultLoadPlanner", "DefaultSavePlanner", "_EmptyStateDictLoadPlanner"), _WHOLE,
    ),
    "checkpoint.filesystem": (("FileSystemReader", "FileSystemWriter"), _WHOLE),
    "checkpoint.format_utils": (
        ("BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "_EmptyStateDictLoadPlanner", "_load_state_dict",
         "dcp_to_torch_save", "torch_save_to_dcp"),
        _WHOLE,
    ),
    "checkpoint.hf_storage": (("HuggingFaceStorageReader", "HuggingFaceStorageWriter"), _WHOLE),
    "checkpoint._consolidate_hf_safetensors": (("consolidate_safetensors_files",), _WHOLE),
    "checkpoint.metadata": (("Metadata", "STATE_DICT_TYPE", "TensorStorageMetadata"), _WHOLE),
    "checkpoint.optimizer": (("load_sharded_optimizer_state_dict",), _WHOLE),
    "checkpoint.planner": (("LoadPlan", "LoadPlanner", "SavePlan", "SavePlanner"), _WHOLE),
    "checkpoint.state_dict_loader": (("_load_state_dict", "load", "load_state_dict"), _WHOLE),
    "checkpoint.state_dict_saver": (("_save_state_dict", "async_save", "save", "save_state_dict"), _WHOLE),
    "checkpoint.stateful": (("Stateful",), _WHOLE),
    "checkpoint.storage": (("StorageReader", "StorageWriter"), _WHOLE),
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
         "_or_policy", "enable_wrap", "wrap", "CustomPolicy", "ModuleWrapPolicy"),
        _SHARDING,
    ),
    "fsdp.sharded_grad_scaler": (("ShardedGradScaler",), "torch.amp.GradScaler scales losses of all ranks"),
    "launch": (("launch", "main", "parse_args", "run"), _LAUNCH),
    "launcher": (("LaunchConfig", "elastic_launch"), _LAUNCH),
    "launcher.api": (("LaunchConfig", "elastic_launch", "launch_agent"), _LAUNCH),
    "run": (("config_from_args", "get_args_parser", "main", "parse_args", "run"), _LAUNCH),
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
    "rpc.api": (("_all_gather",), "ranks exchange tensors and plain objects by collectives"),
    "tensor": (
        ("DTensor", "distribute_tensor", "distribute_module"), "a tensor is in one session",
    ),
    "tensor._utils": (
        ("compute_global_tensor_info", "compute_local_shape", "compute_local_shape_and_global_offset"),
        "a tensor is in one session",
    ),
    "tensor.device_mesh": (("DeviceMesh", "init_device_mesh"), "groups are made by torch.distributed.new_group"),
    "tensor.experimental": (
        ("context_parallel", "implicit_replication", "local_map", "register_sharding"), "a tensor is in one session",
    ),
    "tensor.experimental._attention": (("context_parallel", "set_rotate_method"), "a tensor is in one session"),
    "tensor.parallel": (
        ("ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
         "RowwiseParallel", "SequenceParallel", "parallelize_module", "loss_parallel"),
        "a tensor is in one session",
    ),
}  # fmt: skip
"""By submodule of ``torch.distributed``: the names, and what there is instead."""


def fill(module: str) -> None:
    """Put the refused names of a submodule of ``gradwire.distributed`` into it, and those of modules below that have
    no file."""
    part = module.partition(".distributed")[2].lstrip(".")
    names, instead = REFUSED[part]
    place = f"torch.distributed.{part}" if part else "torch.distributed"
    given = vars(sys.modules[module])
    given.update({name: stand_in(f"{place}.{name}", instead, module) for name in names if name not in given})
    for below in REFUSED:
        above, _, name = below.rpartition(".")
        full = f"{module}.{name}"
        if below and above == part and full not in sys.modules:
            if PathFinder.find_spec(full, given.get("__path__", [])) is None:
                made = sys.modules[full] = ModuleType(full, f"``torch.distributed.{below}``: refused names.")
                given.setdefault(name, made)
                made.__spec__ = ModuleSpec(full, None, origin=__file__, is_package=True)
                made.__path__ = []
                fill(full)
