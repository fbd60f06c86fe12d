"""Modules and private names that libraries import: beside PyTorch's where both have them."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
import torch

import gradwire as gw

NAMES = {
    "nn.functional": "_Reduction _pair _single _triple _verify_batch_size _verify_spatial_size has_torch_function "
    "has_torch_function_unary has_torch_function_variadic handle_torch_function _list_with_default _canonical_mask "
    "_get_softmax_dim _in_projection _in_projection_packed",
    "nn.init": "_no_grad_uniform_ _no_grad_normal_ _no_grad_trunc_normal_ _no_grad_fill_ _no_grad_zero_ "
    "_calculate_fan_in_and_fan_out _calculate_correct_fan",
    "nn.parameter": "UninitializedTensorMixin _ParameterMeta is_lazy Buffer",
    "nn.modules.module": "_EXTRA_STATE_KEY_SUFFIX _global_parameter_registration_hooks _global_forward_hooks "
    "_global_forward_pre_hooks _global_backward_hooks _has_any_global_hook _forward_unimplemented",
    "nn.modules.conv": "_size_1_t _size_2_t _size_3_t _pair _single _triple _reverse_repeat_tuple _ConvNd",
    "nn.modules.pooling": "_AvgPoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _LPPoolNd _MaxUnpoolNd _size_any_t",
    "nn.modules.padding": "_ConstantPadNd _ReflectionPadNd _ReplicationPadNd _CircularPadNd",
    "nn.common_types": "_size_any_t _size_2_t _ratio_2_t _tensor_list_t _maybe_indices_t _size_6_t",
    "nn.parallel": "gather parallel_apply replicate scatter data_parallel DataParallel DistributedDataParallel",
    "nn.utils.convert_parameters": "parameters_to_vector vector_to_parameters",
    "nn.utils.stateless": "_reparametrize_module functional_call",
    "optim.optimizer": "ParamsT _use_grad_for_differentiable _get_value _default_to_fused_or_foreach _view_as_real "
    "_get_scalar_dtype _get_capturable_supported_devices _to_scalar _stack_if_compiling _foreach_doc _maximize_doc "
    "_disable_dynamo_if_unsupported _device_dtype_check_for_fused",
    "optim.lr_scheduler": "_enable_get_lr_call LRScheduler _LRScheduler _format_param _update_param_group_val",
    "distributions.utils": "_standard_normal _sum_rightmost broadcast_all lazy_property clamp_probs",
    "distributions.transforms": "_InverseTransform Transform identity_transform",
    "distributions.multivariate_normal": "_batch_mahalanobis _batch_mv _precision_to_scale_tril Distribution",
    "distributions.lowrank_multivariate_normal": "_batch_capacitance_tril _batch_lowrank_logdet "
    "_batch_lowrank_mahalanobis",
    "distributions.kl": "_KL_REGISTRY _dispatch_kl",
    "amp.autocast_mode": "_cast _enter_autocast _exit_autocast autocast_decorator",
    "types": "_TensorOrTensors _layout _complex IntLikeType Number Device",
    "autograd.function": "_SingleLevelFunction FunctionMeta BackwardCFunction FunctionCtx",
    "backends.cuda": "SDPAParams can_use_flash_attention can_use_efficient_attention preferred_linalg_library",
    "utils": "set_module swap_tensors",
    "utils.hooks": "BackwardHook unserializable_hook warn_if_has_hooks RemovableHandle",
    "utils.weak": "WeakIdRef WeakIdKeyDictionary WeakTensorKeyDictionary TensorWeakRef",
    "utils._python_dispatch": "TorchDispatchMode is_traceable_wrapper_subclass _get_current_dispatch_mode "
    "return_and_correct_aliasing transform_subclass _disable_current_modes",
    "utils._contextlib": "_DecoratorContextManager _NoParamDecoratorContextManager context_decorator",
    "utils._foreach_utils": "_group_tensors_by_device_and_dtype _has_foreach_support _device_has_foreach_support",
    "utils._triton": "has_triton has_triton_package",
    "utils._device": "DeviceContext set_device device_decorator",
    "utils._import_utils": "_check_module_exists dill_available import_dill",
    "utils.data": "IterDataPipe MapDataPipe functional_datapipe _DatasetKind DataChunk DFIterDataPipe",
    "utils.data.dataloader": "_BaseDataLoaderIter _SingleProcessDataLoaderIter _MultiProcessingDataLoaderIter",
    "utils.data._utils": "collate fetch pin_memory worker MP_STATUS_CHECK_INTERVAL IS_WINDOWS",
    "utils.data._utils.collate": "default_collate_fn_map np_str_obj_array_pattern collate_str_fn collate_float_fn",
    "utils.data._utils.worker": "_generate_state get_worker_info WorkerInfo",
    "utils.data.graph_settings": "apply_shuffle_settings apply_random_seed apply_sharding get_all_graph_pipes",
    "functional": "tensordot einsum split meshgrid cdist unique stft",
    "distributed": "HashStore PrefixStore Store TCPStore _rank_not_in_group DistBackendError DistNetworkError",
    "distributed.distributed_c10d": "_get_default_group _pg_map _world PrefixStore rendezvous _rank_not_in_group",
    "distributed.nn.functional": "all_gather all_reduce broadcast reduce_scatter all_to_all gather scatter reduce",
    "distributed._functional_collectives": "AsyncCollectiveTensor all_reduce all_gather_tensor wait_tensor "
    "reduce_scatter_tensor all_to_all_single permute_tensor",
    "distributed._composable.fsdp": "FSDPModule fully_shard",
    "distributed._tensor": "DTensor distribute_tensor Shard Replicate",
    "distributed.tensor.placement_types": "Shard Replicate Partial _StridedShard",
    "distributed.tensor.experimental": "context_parallel implicit_replication",
    "distributed.checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "distributed.checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "CheckpointImpl CheckpointWrapper checkpoint_wrapper "
    "apply_activation_checkpointing offload_wrapper",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState powerSGD_hook",
    "distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "distributed.launcher.api": "LaunchConfig elastic_launch",
    "distributed.run": "get_args_parser main run",
    "distributed.utils": "_sync_module_states _to_kwargs _apply_to_tensors",
}  # fmt: skip


@pytest.mark.parametrize("module", NAMES)
def test_a_module_has_the_names(module) -> None:
    ours = importlib.import_module(f"gradwire.{module}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = importlib.import_module(f"torch.{module}")
    names = NAMES[module].split()
    assert [name for name in names if not hasattr(theirs, name)] == []
    assert [name for name in names if not hasattr(ours, name)] == []


def test_names_that_gradwire_lacks_are_refused_where_they_are_called() -> None:
    from gradwire.distributed.tensor import DTensor
    from gradwire.utils import _python_dispatch as dispatch
    from gradwire.utils.data.dataloader import _MultiProcessingDataLoaderIter
    from gradwire.utils.data.datapipes.iter import Zipper

    class Logging(dispatch.TorchDispatchMode):
        pass

    for call in (Logging().__enter__, DTensor, Zipper, dispatch.transform_subclass, gw.utils.swap_tensors):
        with pytest.raises(NotImplementedError):
            call(1, 2) if call is gw.utils.swap_tensors else call()
    assert not isinstance(3, (DTensor, _MultiProcessingDataLoaderIter))
    assert dispatch._get_current_dispatch_mode() is None
    assert not dispatch.is_traceable_wrapper_subclass(gw.ones(1))
    assert not gw.utils._triton.has_triton()


def test_contexts_decorate_functions_and_generators() -> None:
    def use(lib):
        seen = []

        class Noted(lib.utils._contextlib._DecoratorContextManager):
            def __enter__(self):
                seen.append("in")

            def __exit__(self, *error):
                seen.append("out")

        @Noted()
        def function(x):
            seen.append(x)
            return x

        @Noted()
        def generator():
            try:
                got = yield 1
                seen.append(got)
            except KeyError:
                seen.append("key")
            yield 2
            return 3

        function(5)
        steps = generator()
        seen.append(next(steps))
        seen.append(steps.throw(KeyError()))
        with pytest.raises(StopIteration) as end:
            next(steps)
        more = generator()
        next(more)
        more.send("sent")
        more.close()
        return seen, end.value.value

    assert use(gw) == use(torch)


def test_lists_of_tensors(session) -> None:
    rng = np.random.default_rng(0)
    shapes = [(2, 3), (4,), ()]
    values = [[np.asarray(rng.uniform(0.5, 2, s), "float32") for s in shapes] for _ in range(3)]
    norms = rng.uniform(0.5, 2, 3).tolist()

    def calls(lib):
        a, b, c = ([lib.tensor(x) for x in row] for row in values)
        f = lib
        made = [
            f._foreach_add(a, b), f._foreach_add(a, b, alpha=2), f._foreach_add(a, 3.0), f._foreach_sub(a, norms),
            f._foreach_mul(a, b), f._foreach_div(a, 2.0), f._foreach_addcmul(a, b, c, 0.5),
            f._foreach_addcdiv(a, b, c, norms), f._foreach_lerp(a, b, 0.3), f._foreach_sqrt(a), f._foreach_neg(a),
            f._foreach_pow(a, 2.0), f._foreach_maximum(a, b), f._foreach_maximum(a, 1.0), f._foreach_minimum(a, b),
            f._foreach_clamp_min(a, 1.0), f._foreach_norm(a), f._foreach_norm(a, 1), f._foreach_reciprocal(a),
        ]  # fmt: skip
        for write in (
            lambda: f._foreach_add_(a, b, alpha=0.5), lambda: f._foreach_mul_(a, 2.0), lambda: f._foreach_sqrt_(a),
            lambda: f._foreach_addcmul_(a, b, c, value=2.0), lambda: f._foreach_lerp_(a, b, 0.2),
            lambda: f._foreach_clamp_min_(a, 0.9), lambda: f._foreach_copy_(c, a), lambda: f._foreach_zero_(b),
        ):  # fmt: skip
            write()
        with pytest.raises(RuntimeError):
            f._foreach_add(a, b[:1])
        return [[x.tolist() for x in row] for row in (*made, a, b, c)]

    for mine, other in zip(calls(gw), calls(torch), strict=True):
        for x, y in zip(mine, other, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)
    with pytest.raises(AttributeError):
        gw._foreach_nonsense


def test_conditions_that_programs_state(session) -> None:
    for lib in (gw, torch):
        lib._assert(True, "no")
        lib._check(True)
        for call, error in (
            (lambda lib=lib: lib._assert(False, "no"), AssertionError),
            (lambda lib=lib: lib._check(False), RuntimeError),
            (lambda lib=lib: lib._check_value(False, lambda: "text"), ValueError),
            (lambda lib=lib: lib._check_index(False), IndexError), (lambda lib=lib: lib._check_type(False), TypeError),
            (lambda lib=lib: lib._check(3), TypeError),
            (lambda lib=lib: lib._check_tensor_all(lib.tensor([True, False])), RuntimeError),
            (lambda lib=lib: lib._assert(lib.tensor(False), "no"), AssertionError),
        ):  # fmt: skip
            with pytest.raises(error):
                call()


def test_scatter_and_gather(session) -> None:
    inputs = ({"a": np.arange(6.0).reshape(3, 2).tolist(), "n": 3}, [[1.0, 2.0, 3.0]])

    def cut(lib):
        from importlib import import_module

        module = import_module(f"{lib.__name__}.nn.parallel.scatter_gather")
        tree = ({"a": lib.tensor(inputs[0]["a"]), "n": 3}, [lib.tensor(inputs[1][0])])
        return module, tree

    module, tree = cut(gw)
    parts, named = module.scatter_kwargs(tree, {"k": tree[1][0]}, [-1, -1])
    assert [part[0]["a"].tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [part["k"].tolist() for part in named] == [[1, 2], [3]]
    assert parts[0][0]["n"] == 3
    joined = module.gather([part[0]["a"] for part in parts], -1)
    assert joined.tolist() == tree[0]["a"].tolist()
    net = gw.nn.Sequential(gw.nn.Linear(2, 2), gw.nn.BatchNorm1d(2))
    copies = gw.nn.parallel.replicate(net, ["cpu", "cpu"])
    outs = gw.nn.parallel.parallel_apply(copies, [gw.ones(3, 2), gw.zeros(2, 2)])
    (outs[0].sum() + outs[1].sum() + copies[0][0].weight.sum()).backward()
    assert net[0].weight.grad is not None
    np.testing.assert_allclose(net[0].weight.grad.numpy(), np.ones((2, 2)), atol=1e-5)


def test_streams_of_steps(session) -> None:
    def use(lib):
        from importlib import import_module

        steps = import_module(f"{lib.__name__}.utils.data.datapipes.iter")
        pipe = steps.IterableWrapper(range(10)).map(lambda x: x + 1).filter(lambda x: x % 2 == 1).batch(2)
        return [list(batch) for batch in pipe], sorted(steps.Shuffler(steps.IterableWrapper(range(20)), buffer_size=5))

    assert use(gw) == use(torch)
    data = gw.utils.data
    pipe = data.datapipes.iter.IterableWrapper([1.0, 2.0, 3.0])
    assert [batch.tolist() for batch in data.DataLoader(pipe, batch_size=2)] == [[1, 2], [3]]
    shuffled = data.graph_settings.apply_shuffle_settings(pipe, True)
    assert type(shuffled).__name__.startswith("Shuffler")
    assert len(data.graph_settings.get_all_graph_pipes(data.graph.traverse_dps(shuffled))) == 2


def test_functions_of_distributions_are_pytorchs(session) -> None:
    rng = np.random.default_rng(2)
    factor = np.tril(rng.standard_normal((3, 3))) + 3 * np.eye(3)
    w, d, x = rng.standard_normal((3, 2)), rng.uniform(1, 2, 3), rng.standard_normal((4, 3))

    def use(lib):
        full, low = lib.distributions.multivariate_normal, lib.distributions.lowrank_multivariate_normal
        t = lib.tensor
        capacitance = low._batch_capacitance_tril(t(w), t(d))
        return [
            full._batch_mahalanobis(t(factor), t(x)), full._batch_mv(t(factor), t(x)), capacitance,
            full._precision_to_scale_tril(t(factor @ factor.T)), low._batch_lowrank_logdet(t(w), t(d), capacitance),
            low._batch_lowrank_mahalanobis(t(w), t(d), t(x), capacitance),
            lib.distributions.utils._sum_rightmost(t(x), 1),
        ]  # fmt: skip

    for mine, other in zip(use(gw), use(torch), strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-9)
    assert gw.distributions.utils._standard_normal((2, 3), gw.float64, "cpu").dtype is gw.float64


def test_small_functions_are_pytorchs() -> None:
    for lib in (gw, torch):
        reduction = importlib.import_module(f"{lib.__name__}.nn._reduction")
        assert reduction.get_enum("mean") == 1
        assert reduction.legacy_get_string(False, None, emit_warning=False) == "sum"
        for wrong in (
            lambda reduction=reduction: reduction.get_enum("x"),
            lambda lib=lib: lib.nn.functional._verify_batch_size([1, 3]),
        ):
            with pytest.raises(ValueError):
                wrong()
        lib.nn.functional._verify_batch_size([2, 3])
        optimizer = importlib.import_module(f"{lib.__name__}.optim.optimizer")
        assert optimizer._get_value(lib.tensor(3.0)) == 3
        assert optimizer._default_to_fused_or_foreach([lib.ones(1)], False) == (False, False)
        assert str(optimizer._get_scalar_dtype()) == "torch.float32"
        assert optimizer._to_scalar(lib.ones(1)).ndim == 0
        cast = lib.amp.autocast_mode._cast({"a": [lib.ones(1), lib.ones(1, dtype=lib.float64), 3]}, "cpu", lib.bfloat16)
        assert [str(x.dtype) for x in cast["a"][:2]] == ["torch.bfloat16", "torch.float64"]
        keys = lib.utils.weak.WeakIdKeyDictionary()
        key = lib.ones(1)
        keys[key] = 5
        assert keys[key] == 5
        assert len(keys) == 1
        del key
        assert len(keys) == 0


def test_functorch_takes_modules_apart(session) -> None:
    import functorch as theirs
    from functorch.einops import rearrange as their_rearrange

    from gradwire import functorch as ours
    from gradwire.functorch.einops import rearrange

    rng = np.random.default_rng(4)
    x = rng.standard_normal((5, 3)).astype("float32")
    weights = [[rng.standard_normal(s).astype("float32") for s in ((2, 3), (2,))] for _ in range(3)]

    def use(lib, f):
        nets = [lib.nn.Linear(3, 2) for _ in weights]
        for net, row in zip(nets, weights, strict=True):
            net.load_state_dict({"weight": lib.tensor(row[0]), "bias": lib.tensor(row[1])})
        alone, params = f.make_functional(nets[0])
        loss = f.grad(lambda p: alone(p, lib.tensor(x)).square().sum())(params)
        joined, stacked, buffers = f.combine_state_for_ensemble(nets)
        outs = f.vmap(joined, (0, 0, None))(stacked, buffers, lib.tensor(x))
        whole, _, buffers = f.make_functional_with_buffers(lib.nn.BatchNorm1d(3).eval())
        for wrong in (lambda: f.make_functional(lib.nn.BatchNorm1d(3)), lambda: f.combine_state_for_ensemble([])):
            with pytest.raises(RuntimeError):
                wrong()
        return [*loss, outs, whole((lib.ones(3), lib.ones(3)), buffers, lib.tensor(x))]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = use(torch, theirs)
    for mine, other in zip(use(gw, ours), expected, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)
    values = np.arange(48.0).reshape(2, 3, 8)
    for pattern, sizes in (
        ("b c (h w) -> b h w c", {"h": 2}), ("a b c -> c (a b)", {}), ("a ... -> ... a", {}),
        ("a b (c d) -> (d a) b c", {"d": 4}), ("a b c -> a b c 1", {}), ("... c -> c ...", {}),
    ):  # fmt: skip
        mine = rearrange(gw.tensor(values), pattern, **sizes)
        assert mine.tolist() == their_rearrange(torch.tensor(values), pattern, **sizes).tolist()
    for pattern in ("a b -> b a", "a b c -> a b", "a b (c -> a b c", "a a c -> a c"):
        with pytest.raises(ValueError):
            rearrange(gw.tensor(values), pattern)
        with pytest.raises(ValueError):
            their_rearrange(torch.tensor(values), pattern)
    with pytest.raises(ValueError, match="all but one are needed"):
        rearrange(gw.tensor(values), "a b (c d) -> a b c d")
    with pytest.raises(NotImplementedError, match="functionalize is not supported"):
        ours.functionalize(abs)
