"""Modules of PyTorch's that libraries import, beside PyTorch's: names, hints without effect, refusals at the call."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

import pytest
import torch
from tests.side_by_side import Claims, leaf, name_of, raises, same

import gradwire

claim = Claims()

MODULES = ["_dynamo", "compiler", "export", "futures", "hub", "jit", "jit.annotations", "library", "onnx",
           "onnx.errors", "utils.backend_registration", "utils.cpp_extension", "cuda.nvtx"]  # fmt: skip
LACKING = {
    "_dynamo": {"allow_c_slot", "is_dynamo_disable_recursive", "override_cudagraphs", "override_optimization_hint",
                "reset_recompile_user_contexts", "set_recursion_limit"},
    "cuda.nvtx": {"host_range_register"},
    "onnx": {"ops"},
}  # fmt: skip
"""Names of these modules that gradwire lacks: rarely used ones of PyTorch's compiler and exporter."""


@pytest.mark.parametrize("name", MODULES)
def test_the_public_names_are_there(name: str) -> None:
    theirs, ours = import_module(f"torch.{name}"), import_module(f"gradwire.{name}")
    public = {one for one in getattr(theirs, "__all__", ()) if one not in LACKING.get(name, ())}
    assert {one for one in public if not hasattr(ours, one)} == set()
    assert public <= set(getattr(ours, "__all__", public)) or name in ("jit.annotations", "utils.cpp_extension")


REFUSED = {
    "torch.jit.load": lambda: gradwire.jit.load("x.pt"),
    "torch.jit.save": lambda: gradwire.jit.save(None, "x.pt"),
    "torch.onnx.export": lambda: gradwire.onnx.export(None, (), "x.onnx"),
    "torch.export.export": lambda: gradwire.export.export(None, ()),
    "torch.package.PackageExporter": lambda: gradwire.package.PackageExporter("x"),
    "torch.cuda.graphs.CUDAGraph": lambda: gradwire.cuda.CUDAGraph(),
    "torch.utils.cpp_extension.load": lambda: import_module("gradwire.utils.cpp_extension").load("x", []),
    "torch.library.opcheck": lambda: gradwire.library.opcheck(None),
    "torch._dynamo.explain": lambda: gradwire._dynamo.explain(None),
    "torch._inductor.compile": lambda: gradwire._inductor.compile(None),
    "torch.ao.quantization.prepare": lambda: gradwire.ao.quantization.prepare(None),
    "torch._C.Graph": lambda: gradwire._C.Graph(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_at_the_call(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"{name} is not supported by gradwire: \w"):
        REFUSED[name]()


def test_refused_names_can_be_mentioned() -> None:
    assert not isinstance(1, gradwire.export.ExportedProgram)
    assert gradwire.export.Dim.AUTO is not None and not isinstance(1, gradwire.SymInt)


# torch.jit


@claim
def scripts_are_functions_modules_and_classes(torch: Any) -> Any:
    @torch.jit.script
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)
            torch.nn.init.ones_(self.inner.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.other(self.inner(x) * 0)

        @torch.jit.export
        def other(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        @torch.jit.ignore
        def third(self, x: Any) -> Any:
            return x

        @torch.jit.unused
        def fourth(self, x: Any) -> Any:
            return x

    net = Net()
    x = torch.ones(2)
    return double(x), net(x).detach(), net.third(x), net.fourth(x), torch.jit.is_scripting(), torch.jit.is_tracing()


@claim
def traces_compute_what_was_traced(torch: Any) -> Any:
    net = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(net.weight)
    torch.nn.init.zeros_(net.bias)
    traced = torch.jit.trace(net, torch.ones(1, 2))
    return traced(torch.ones(1, 2)).detach(), list(traced.state_dict()), raises(lambda: torch.jit.trace(net))


@claim
def ignored_functions_are_marked_both_ways(torch: Any) -> Any:
    marked = torch._jit_internal
    one = torch.jit.ignore(lambda x: x + 1)
    two = torch.jit.ignore(drop=True)(lambda x: x + 2)
    return (
        one(1), two(1), marked.get_torchscript_modifier(one), marked.is_ignored_fn(two),
        raises(lambda: torch.jit.ignore("yes")), marked.is_ignored_fn(len),
    )  # fmt: skip


CHECKED = [
    ([1, 2], list[int]), ([1, "a"], list[int]), ({"a": 1}, dict[str, int]), ((1, "a"), tuple[int, str]), (1, dict),
    (3, int | None), (None, int | None), ("a", int | None), (1, (int, str)), ([1], list), (2, int),
    ([[1]], list[list[int]]), ((1,), tuple[int, int]),
]  # fmt: skip


@claim
def isinstance_knows_containers(torch: Any) -> Any:
    return [raises(lambda v=v, t=t: torch.jit.isinstance(v, t)) or torch.jit.isinstance(v, t) for v, t in CHECKED]


@claim
def a_function_is_chosen_by_a_flag(torch: Any) -> Any:
    pick = torch._jit_internal.boolean_dispatch("flag", 1, False, lambda x, flag=False: ("yes", x),
                                                lambda x, flag=False: ("no", x), "module", "pick")  # fmt: skip
    return pick(1), pick(1, True), pick(1, flag=True), pick.__name__


@claim
def what_only_tells_the_compiler_something_has_no_effect(torch: Any) -> Any:
    jit = torch.jit
    with jit.strict_fusion():
        pass
    net = torch.nn.Linear(1, 1)
    return (
        jit.annotate(int, 3), jit.Attribute(1, int).value, jit.wait(jit.fork(lambda x: x + 1, 2)),
        raises(lambda: jit.freeze(net)),
        jit.annotations.BroadcastingList2[int], jit.onednn_fusion_enabled(),
    )  # fmt: skip


@claim
def overloads_of_methods_are_replaced(torch: Any) -> Any:
    class Net(torch.nn.Module):
        @torch.jit._overload_method
        def forward(self, x: int) -> int:
            pass

        def forward(self, x: Any) -> Any:  # noqa: F811
            return x

    return Net()(3)


# torch._dynamo and torch.compiler


@claim
def hints_to_the_compiler_change_nothing(torch: Any) -> Any:
    import_module(f"{torch.__name__}._dynamo")
    dynamo, compiler = torch._dynamo, torch.compiler
    x = torch.ones(2)
    dynamo.mark_dynamic(x, 0)
    dynamo.mark_static_address(x)
    dynamo.graph_break()
    return (
        dynamo.is_compiling(), compiler.is_exporting(), dynamo.disable(lambda: 1)(), compiler.disable()(lambda: 2)(),
        dynamo.allow_in_graph(abs)(-1), compiler.assume_constant_result(lambda x: x)(-2),
        dynamo.external_utils.is_compiling(),
        isinstance(x, dynamo.OptimizedModule), "inductor" in compiler.list_backends(), compiler.get_default_backend(),
        compiler.wrap_numpy(lambda a: a + 1)(x),
    )  # fmt: skip


@claim
def settings_are_stored_and_patched(torch: Any) -> Any:
    config = import_module(f"{torch.__name__}._dynamo.config")
    before = config.suppress_errors
    with config.patch(suppress_errors=True):
        inside = config.suppress_errors
    with config.patch("cache_size_limit", 3):
        limit = config.cache_size_limit

    @config.patch(verbose=True)
    def decorated() -> Any:
        return config.verbose

    inductor = import_module(f"{torch.__name__}._inductor.config")
    with inductor.patch({"triton.cudagraphs": True}):
        nested = inductor.triton.cudagraphs
    return before, inside, config.suppress_errors, limit, decorated(), config.verbose, nested, hasattr(config, "nope")


def test_a_compiled_module_is_an_optimized_module() -> None:
    net = gradwire.nn.Linear(1, 1)
    made = gradwire.compile(net)
    assert isinstance(made, gradwire._dynamo.OptimizedModule) and made._orig_mod is net
    assert gradwire._dynamo.eval_frame.OptimizedModule is gradwire._dynamo.OptimizedModule
    with pytest.raises(RuntimeError, match="is none of default"):
        gradwire.compiler.set_stance("nope")
    with pytest.raises(NotImplementedError, match="fullgraph"):
        gradwire.compiler.set_stance("fail_on_recompile")


# torch._C and torch._utils


@claim
def the_harmless_part_of_c_answers(torch: Any) -> Any:
    c = torch._C
    c._log_api_usage_once("x")
    x = torch.ones(2)
    device, dtype, waiting, _ = c._nn._parse_to("cpu", torch.float64, True)
    with c.DisableTorchFunctionSubclass():
        inside = x + 1
    return (
        c._get_tracing_state(), c.Size([1, 2]), isinstance(x, c.TensorBase), type(torch.Tensor) is c._TensorMeta,
        str(device), repr(dtype), waiting, c._are_functorch_transforms_active(), inside, c._infer_size(torch.Size((2,
        1)), torch.Size((3,))),
        c._len_torch_function_stack(), c._is_torch_function_mode_enabled(), c._nn.gelu(x),
        c._get_accelerator().type, hasattr(c, "nope"), c._get_privateuse1_backend_name(),
        torch.vmap(lambda y: y * c._functorch.is_batchedtensor(y))(x),
    )  # fmt: skip


@claim
def tensors_are_flattened_and_grouped(torch: Any) -> Any:
    u = torch._utils
    parts = [leaf(torch, 2, 2).detach(), leaf(torch, 3).detach(), leaf(torch, 0).detach()]
    flat = u._flatten_dense_tensors(parts)
    grouped = [*parts, torch.ones(2, dtype=torch.float64), torch.ones(4)]
    return (
        flat, u._unflatten_dense_tensors(flat * 2, parts), [len(g) for g in u._take_tensors(grouped, 20)],
        [t.dtype for t in u._reorder_tensors_as(grouped, grouped)], u._element_size(torch.bool),
        u._element_size(torch.complex64), raises(lambda: u._element_size("x")),
    )  # fmt: skip


@claim
def devices_have_numbers(torch: Any) -> Any:
    index = torch._utils._get_device_index
    return (
        index(3), index("cuda:1"), index("cpu", allow_cpu=True), raises(lambda: index("cpu")),
        raises(lambda: index("cuda")), raises(lambda: index(None)),
        raises(lambda: torch._utils._get_device_module("nope")),
    )  # fmt: skip


@claim
def exceptions_come_from_other_threads(torch: Any) -> Any:
    found = []

    def fail(error: Exception) -> None:
        try:
            raise error
        except Exception:
            found.append(torch._utils.ExceptionWrapper(where="in thread 1"))

    for error in (ValueError("a"), KeyError("b"), UnicodeDecodeError("utf-8", b"", 0, 1, "c")):
        thread = threading.Thread(target=fail, args=(error,))
        thread.start()
        thread.join()
    said = []
    for wrapper in found:
        try:
            wrapper.reraise()
        except Exception as error:
            said.append((type(error).__name__, str(error).splitlines()[0]))
    return said


# torch.futures


@claim
def futures_give_values_later(torch: Any) -> Any:
    futures = import_module(f"{torch.__name__}.futures")
    seen: list[Any] = []
    first, second = futures.Future(), futures.Future()
    follow = first.then(lambda done: done.value() + 1)
    first.add_done_callback(lambda done: seen.append(done.wait()))
    both = futures.collect_all([first, second])
    before = first.done(), both.done(), raises(first.value)
    threading.Timer(0.01, lambda: second.set_result(5)).start()
    first.set_result(1)
    values = futures.wait_all([first, second, follow])
    failed = futures.Future()
    chained = failed.then(lambda done: done.wait())
    failed.set_exception(ValueError("x"))
    return (
        before, values, seen, [f.wait() for f in both.wait()], raises(failed.wait), raises(chained.wait),
        raises(lambda: first.set_result(2)), raises(lambda: failed.set_exception("no exception")),
    )  # fmt: skip


# The rest


@claim
def versions_are_compared(torch: Any) -> Any:
    version = import_module(f"{torch.__name__}.torch_version").TorchVersion
    one = version("1.10.0a0+git")
    return [
        one > "1.9", one < "1.10", one >= (1, 10), one < (1, 10, 0), one == "1.10.0a0+git", version("2.0") == (2, 0),
        version("2.0.0") >= version("2.0"), version("parrot") == "parrot", version("2.1.dev3") < "2.1a1",
        version("2.1.post1") > "2.1", version("2.1+cpu") > "2.1", version("2.1rc2") > "2.1b7", one != "1.10", str(one),
        hash(version("1")) == hash("1"),
    ]  # fmt: skip


@claim
def stubs_of_quantization_pass_on(torch: Any) -> Any:
    import_module(f"{torch.__name__}.ao.quantization")
    wrapped = torch.ao.quantization.QuantWrapper(torch.nn.ReLU())
    functional = import_module(f"{torch.__name__}.ao.nn.quantized").FloatFunctional()
    x = torch.tensor([-1.0, 2.0])
    return wrapped(x), functional.add(x, x), functional.cat([x, x]), functional.add_relu(x, x), raises(
        lambda: functional(x)
    )  # fmt: skip


@claim
def numbers_that_a_compiler_does_not_know(torch: Any) -> Any:
    return (
        torch.sym_int(2.7), torch.sym_int(-2.7), torch.sym_float(2), torch.sym_max(1, 2.0), torch.sym_min(1, 2.0),
        torch.sym_not(0), torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2, 3]), isinstance(1, torch.SymInt),
    )  # fmt: skip


@claim
def shapes_are_computed(torch: Any) -> Any:
    prims = import_module(f"{torch.__name__}._prims_common")
    return (
        prims.make_contiguous_strides_for((2, 0, 3)), prims.make_contiguous_strides_for((2, 3, 4), row_major=False),
        prims.canonicalize_dim(3, -1), raises(lambda: prims.canonicalize_dim(3, 3)),
        prims.canonicalize_dims(3, (-1, 0)), prims.compute_required_storage_length((2, 3), (3, 1), 4),
        prims.dtype_to_type(torch.bfloat16),
        prims.is_integer_dtype(torch.bool), prims.type_to_dtype(complex),
        prims.is_contiguous_or_false(torch.ones(2, 2).t()),
        prims.get_computation_dtype(torch.float16), prims.alert_not_deterministic("x"),
    )  # fmt: skip


@claim
def exports_to_onnx_are_only_asked_about(torch: Any) -> Any:
    onnx = import_module(f"{torch.__name__}.onnx")
    operators = import_module(f"{torch.__name__}.onnx.operators")
    helper = import_module(f"{torch.__name__}.onnx.symbolic_helper")
    x = torch.ones(2, 3)
    onnx.register_custom_op_symbolic("mine::op", lambda g: g, 11)
    return (
        onnx.is_in_onnx_export(), operators.shape_as_tensor(x),
        operators.reshape_from_tensor_shape(x, torch.tensor([6])),
        int(onnx.TensorProtoDataType.FLOAT), int(helper.cast_pytorch_to_onnx["Long"]), callable(helper.parse_args("v")),
        issubclass(onnx.errors.UnsupportedOperatorError, onnx.OnnxExporterError),
    )  # fmt: skip


@claim
def nothing_fake_is_met(torch: Any) -> Any:
    fake = import_module(f"{torch.__name__}._subclasses.fake_tensor")
    guards = import_module(f"{torch.__name__}._guards")
    x = torch.ones(1)
    return (
        fake.is_fake(x), isinstance(x, fake.FakeTensor), guards.active_fake_mode(), guards.detect_fake_mode([x]),
        guards.TracingContext.try_get(), raises(guards.TracingContext.get),
    )  # fmt: skip


@claim
def classes_of_compiled_libraries_are_not_there(torch: Any) -> Any:
    classes = torch.classes
    return raises(lambda: classes.nowhere.Thing), torch._tensor._convert([torch.ones(1)], torch.Tensor)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("one", claim, ids=name_of)
def test_as_in_pytorch(one: Any) -> None:
    same(one)
