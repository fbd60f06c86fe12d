"""Names for sparse, nested and quantized tensors: what they answer for strided ones. The rest is refused where it is
called, not where it is imported."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in

import gradwire
from gradwire._core.surface.quantization_names import NAMES
from gradwire_protocol.errors import Unsupported

LIBRARIES = (torch, gradwire)


def outcome(program: Callable[[Any], Any], lib: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program(lib))
        except Exception as error:
            return built_in(error)


def plain(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, gradwire.Tensor)):
        return tuple(value.shape), str(value.dtype), value.tolist()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def matrix(lib: Any) -> Any:
    return lib.arange(12.0).reshape(3, 4) / 5 - 1


REFUSED = "NotImplementedError"
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "to_dense": lambda lib: [
        (x := matrix(lib)).to_dense() is x,
        x.to_dense(lib.float64),
        x.to_dense(dtype=lib.float32) is x,
    ],
    "dimensions": lambda lib: [matrix(lib).dense_dim(), matrix(lib).sparse_dim()],
    "flags": lambda lib: [
        getattr(matrix(lib), name)
        for name in dir(torch.Tensor)
        if name
        in (
            "is_sparse",
            "is_sparse_csr",
            "is_quantized",
            "is_mkldnn",
            "is_nested",
            "is_xla",
            "is_ipu",
            "is_mps",
            "volatile",
        )
    ],
    "dequantize": lambda lib: [matrix(lib).dequantize(), lib.dequantize(matrix(lib).double())],
    "resize": lambda lib: [
        matrix(lib).t().resize(2, 6),
        matrix(lib).resize_as(lib.zeros(6, 2)),
        matrix(lib).requires_grad_().resize(12),
    ],
    "resize to another size": lambda lib: matrix(lib).resize(3),
    "module_load": lambda lib: [
        matrix(lib).module_load(lib.ones(3, 4)),
        matrix(lib).module_load(lib.ones(2), assign=True),
    ],
    "__div__": lambda lib: [matrix(lib).__div__(2), matrix(lib).__idiv__(2), lib.ones(1).__nonzero__()],
    "is_distributed": lambda lib: matrix(lib).is_distributed(),
    "removed": lambda lib: matrix(lib).eig(),
    "reinforce": lambda lib: matrix(lib).reinforce(1),
    "solve": lambda lib: lib.solve(1, 2),
    "sparse products": lambda lib: [
        lib.sparse.mm(matrix(lib), matrix(lib).t()),
        lib.spmm(matrix(lib), matrix(lib).t()),
        lib.dsmm(matrix(lib), matrix(lib).t()),
        lib.sparse.addmm(lib.ones(3, 3), matrix(lib), matrix(lib).t(), beta=0.5),
    ],
    "sparse sum": lambda lib: lib.sparse.sum(matrix(lib)),
    "checks": lambda lib: lib.sparse.check_sparse_tensor_invariants.is_enabled(),
    **{
        name: lambda lib, name=name: getattr(matrix(lib), name)()
        for name in (
            "coalesce",
            "is_coalesced",
            "values",
            "indices",
            "crow_indices",
            "col_indices",
            "ccol_indices",
            "row_indices",
            "_nnz",
            "int_repr",
            "q_scale",
            "qscheme",
            "q_zero_point",
            "_indices",
            "_values",
        )
    },
    **{
        name: lambda lib, name=name: getattr(matrix(lib), name)(matrix(lib))
        for name in ("smm", "sparse_mask", "resize_as_sparse_")
    },
    "quantization": lambda lib: [
        lib.ao.quantization.QuantWrapper(lib.nn.ReLU())(matrix(lib)),
        lib.nn.quantized.FloatFunctional().add_relu(matrix(lib), matrix(lib)),
        lib.nn.intrinsic.ConvReLU2d(lib.nn.Conv2d(1, 1, 1), lib.nn.ReLU())(lib.zeros(1, 1, 2, 2)).shape,
    ],
    "a row of others": lambda lib: lib.nn.intrinsic.LinearReLU(lib.nn.ReLU(), lib.nn.ReLU()),
    "what is installed": lambda lib: [
        lib.is_vulkan_available(),
        lib.compiled_with_cxx11_abi(),
        lib.cudnn_is_acceptable(matrix(lib)),
    ],
    "on tensors": lambda lib: [
        lib._weight_norm(matrix(lib), lib.ones(3, 1), 0),
        lib.detach_copy(matrix(lib)),
        lib.as_strided_(lib.arange(6), (2, 3), (1, 2)),
        lib.cond(lib.tensor(True), lambda x: x + 1, lambda x: x - 1, (matrix(lib),)),
    ],
    "numbered losses": lambda lib: [
        lib.kl_div(matrix(lib), lib.full((3, 4), 2.0)),
        lib.kl_div(matrix(lib), matrix(lib), 0, log_target=True),
        lib.binary_cross_entropy_with_logits(matrix(lib), matrix(lib).sigmoid(), None, None, 2),
        lib.margin_ranking_loss(matrix(lib), matrix(lib).flip(0), lib.ones(3, 4), 0.5),
        lib.hinge_embedding_loss(matrix(lib), lib.ones(3, 4)),
        lib.triplet_margin_loss(matrix(lib), matrix(lib) + 1, matrix(lib) - 1),
        lib.poisson_nll_loss(matrix(lib), matrix(lib).exp(), True, False, 1e-8, 1),
        lib.cosine_embedding_loss(matrix(lib), matrix(lib) + 1, lib.ones(3)),
        lib.grid_sampler_2d(matrix(lib).reshape(1, 1, 3, 4), lib.zeros(1, 1, 1, 2), 0, 0, False),
    ],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_pytorch_answers_for_strided_tensors(name: str) -> None:
    theirs, ours = (outcome(ANSWERS[name], lib) for lib in LIBRARIES)
    assert ours == pytest.approx(theirs) if isinstance(theirs, float) else close(ours, theirs)


def close(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return bool(ours == pytest.approx(theirs, rel=1e-5)) if isinstance(theirs, float) else bool(ours == theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: matrix(lib).to_sparse(),
        lambda lib: matrix(lib).to_sparse_csr(),
        lambda lib: matrix(lib).to_mkldnn(),
        lambda lib: lib.sparse_coo_tensor([[0]], [1.0]),
        lambda lib: lib.nested.nested_tensor([matrix(lib)]),
        lambda lib: lib.nested.as_nested_tensor([matrix(lib)]),
        lambda lib: lib.quantize_per_tensor(matrix(lib), 0.1, 0, None),
        lambda lib: lib.quantization.quantize_dynamic(lib.nn.Linear(2, 2)),
        lambda lib: lib.nn.quantized.Linear(2, 2),
        lambda lib: lib.ao.nn.qat.Linear(2, 2),
        lambda lib: lib.sparse.spdiags(matrix(lib), None, (4, 4)),
    ],
)
def test_what_has_no_meaning_here_is_refused_by_name_at_the_call(call: Callable[[Any], Any]) -> None:
    with pytest.raises(Unsupported, match=r"torch\.[\w.]+ is not supported by gradwire: "):
        call(gradwire)


@pytest.mark.parametrize("module", sorted(NAMES))
def test_the_names_of_quantization_are_those_of_pytorch(module: str) -> None:
    theirs, ours = (importlib.import_module(f"{lib}.{module}") for lib in ("torch", "gradwire"))
    wanted = {
        name
        for name, value in vars(theirs).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and "torch.ao" in (getattr(value, "__module__", None) or "")
    }
    assert wanted <= set(dir(ours)), wanted - set(dir(ours))
    assert all(hasattr(theirs, name) for name in NAMES[module].split())


def test_a_program_imports_them_as_torch() -> None:
    program = """
from torch.ao.quantization import QuantStub, DeQuantStub, get_default_qconfig, fuse_modules
from torch.quantization import quantize_dynamic
import torch.nn.quantized.dynamic as nnqd, torch.nn.qat, torch.nn.quantizable, torch.ao.nn.intrinsic.qat
import torch.nested, torch.sparse
import torch
assert not isinstance(torch.nn.Linear(2, 2), nnqd.Linear)
print(type(DeQuantStub()(QuantStub()(torch.ones(2)))).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-m", "gradwire", "run", "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "Tensor\n", done.stderr
