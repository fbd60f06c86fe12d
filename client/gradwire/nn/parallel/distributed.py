"""``DistributedDataParallel``: a module of which each rank has a copy, trained on a share of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from gradwire_protocol.errors import ArgumentError, ArgumentValueError, Unsupported

from ..._core.context.argument_types import Device
from ..._core.context.modes import MODES, is_grad_enabled
from ..._core.context.pytree import tree_map
from ..._core.modules.module import Module
from ..._core.tensor.tensor import Tensor
from ...distributed.collectives import run
from ...distributed.process_group import ProcessGroup, default_group, member
from .gradient_average import GradientAverage

BUCKET_MB: Final = 25.0
BROADCAST_BYTES: Final = 250 << 20
"""How much is broadcast at once."""


class DistributedDataParallel(Module):
    """Calls ``module``, and averages its gradients over the ranks of a group. Names get ``module.`` before them.

    All ranks begin with the parameters and buffers of rank 0. After a backward, each bucket of gradients is averaged by
    one record, so that a step still costs one round trip at most, whatever the number of ranks.

    Args:
        device_ids: the one device of the module, or None.
        process_group: the ranks; all of them by default.
        broadcast_buffers: whether ranks take over the buffers of rank 0 before each forward that trains.
        bucket_cap_mb: the size of the pieces in which gradients are averaged, 25 by default.
        find_unused_parameters: whether a loss may leave parameters out. Such a one has the mean over the ranks that
            used it, and keeps its gradient if none has.
        static_graph: one backward follows each forward, and uses the same parameters each time.
        init_sync: whether parameters and buffers of rank 0 are taken over at first.
        gradient_as_bucket_view, check_reduction, batched_grad_copy: accepted without effect.

    Raises:
        ArgumentError: for a module without parameters that require grad.
        Unsupported: for more than one device, and for options that gradwire lacks.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Device = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None, mixed_precision: Any = None,
        device_mesh: Any = None, skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _refuse(
            delay_all_reduce_named_params=delay_all_reduce_named_params, bucket_cap_mb_list=bucket_cap_mb_list,
            param_to_hook_all_reduce=param_to_hook_all_reduce, mixed_precision=mixed_precision, device_mesh=device_mesh,
        )  # fmt: skip
        if not any(param.requires_grad for param in module.parameters()):
            raise ArgumentError(
                "DistributedDataParallel is for a module with parameters that require grad: it has none"
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ArgumentValueError(f"a rank has its module on one device, not on {list(device_ids)}")
        if bucket_cap_mb is not None and bucket_cap_mb <= 0:
            raise ArgumentValueError(f"bucket_cap_mb is above 0, not {bucket_cap_mb}")
        group = default_group() if process_group is None else member(process_group, "DistributedDataParallel")
        if group is None:
            raise ArgumentValueError("DistributedDataParallel: this rank is not in process_group")
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        self.dim: int = dim
        self.module: Module = module
        self.process_group: ProcessGroup = group
        self.parameters_to_ignore: set[str] = set(ignored)
        devices = sorted({str(param._form.device) for param in module.parameters()})
        self.is_multi_device_module: bool = len(devices) > 1
        on_gpu = device_ids is not None and devices != ["cpu"]
        self.device_ids: list[Any] | None = list(device_ids) if on_gpu and device_ids else None
        self.output_device: Device = output_device
        self.device: Any = next(iter(module.parameters())).device
        self.broadcast_buffers: bool = next(
            (b for b in (broadcast_buffers, forward_sync_buffers) if b is not None), True
        )
        self.find_unused_parameters: bool = find_unused_parameters
        self.static_graph: bool = static_graph
        self.gradient_as_bucket_view: bool = gradient_as_bucket_view
        self.bucket_bytes_cap: int = int((BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.require_backward_grad_sync: bool = True
        self.require_forward_param_sync: bool = True
        if init_sync:
            self._broadcast([*self._considered(module.named_parameters()), *self._considered(module.named_buffers())])
        self._average: GradientAverage | None = None
        self._begin()

    def _begin(self) -> None:
        """Average from now on."""
        if self.process_group.size() == 1:
            return
        named = [
            (name, param) for name, param in self.module.named_parameters()
            if param.requires_grad and name not in self.parameters_to_ignore
        ]  # fmt: skip
        self._average = GradientAverage(
            [name for name, _ in named], [param for _, param in named], self.process_group, self.bucket_bytes_cap,
            self.find_unused_parameters, self.static_graph,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("process_group", "_average")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group, self._average = default_group(), None
        self._begin()

    def _considered(self, named: Iterator[tuple[str, Any]]) -> list[Tensor]:
        return [tensor for name, tensor in named if name not in self.parameters_to_ignore]

    def _broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Take over the values that rank 0 has of these."""
        if self.process_group.size() == 1:
            return
        pieces: dict[Any, list[list[Tensor]]] = {}
        held: dict[Any, int] = {}
        for tensor in tensors:
            kind, size = (tensor.dtype, tensor._form.device), tensor.numel() * tensor.dtype.itemsize
            lists = pieces.setdefault(kind, [])
            if not lists or held[kind] + size > BROADCAST_BYTES:
                lists.append([])
                held[kind] = 0
            lists[-1].append(tensor)
            held[kind] += size
        for lists in pieces.values():
            for some in lists:
                run("broadcast_each", self.process_group, some, 0)
                for tensor in some:
                    tensor._bump()

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward begins with the buffers of rank 0."""
        return self.require_forward_param_sync and self.broadcast_buffers and any(True for _ in self.module.buffers())

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives for its arguments. The backward that follows averages gradients, unless it is told not
        to by :meth:`no_sync`, or grad mode is off."""
        averages = is_grad_enabled() and self.require_backward_grad_sync
        average = self._average
        if average is not None and MODES.capture is not None:
            MODES.capture.refuse("gradients are averaged over the ranks of a process group")
        if average is not None and averages:
            average.check_finished()
        if self.will_sync_module_buffers():
            self._broadcast(self._considered(self.module.named_buffers()))
        if self.device_ids:
            place = self.device_ids[0]
            place = f"cuda:{place}" if isinstance(place, int) else place
            inputs, kwargs = tree_map(lambda x: x.to(place) if isinstance(x, Tensor) else x, (inputs, kwargs))
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = averages
        if average is not None and averages:
            found: list[Tensor] = []
            if self.find_unused_parameters:
                tree_map(lambda x: found.append(x) if isinstance(x, Tensor) else None, output)
            average.prepare(found)
        return output

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """In its extent, forwards whose backwards only add to this rank's gradients. The first backward after that
        averages what has come together."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Any:
        """Not available, except with ``enable=False`` or one rank: all ranks make equally many steps.

        Raises:
            Unsupported: otherwise.
        """
        if enable and self.process_group.size() > 1:
            raise Unsupported(
                "DistributedDataParallel.join() is not supported: give all ranks equally many batches, as "
                "DistributedSampler does"
            )
        return _nothing()

    def register_comm_hook(self, state: Any, hook: Any) -> NoReturn:
        """Not available: gradients are averaged on the server.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(
            "DistributedDataParallel.register_comm_hook() is not supported: the server averages gradients"
        )

    def _set_static_graph(self) -> None:
        """As ``static_graph=True`` at construction."""
        self.static_graph, self._average = True, None
        self._begin()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Sequence[str]
    ) -> None:
        """Leave out parameters and buffers of these names."""
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)


def _refuse(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise Unsupported(f"DistributedDataParallel({name}=) is not supported")


@contextmanager
def _nothing() -> Iterator[None]:
    yield


__all__ = ["DistributedDataParallel"]
