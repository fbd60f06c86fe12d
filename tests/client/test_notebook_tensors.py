"""A tensor in a notebook: HTML and text from one round trip, with a summary that NumPy and PyTorch confirm."""

from __future__ import annotations

import base64
import re
import struct
import subprocess
import sys
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
import torch as oracle
from tests.live_server import live_server
from tests.strict_backend import StrictBackend
from tests.well_formed_html import Element, parsed

import gradwire as torch
from gradwire._core.surface import html_representation
from gradwire._core.tensor import pictures
from gradwire.autograd import forward_ad
from gradwire_engine.runtime import backends
from gradwire_protocol.dtypes import BY_NAME

NAN, INF = float("nan"), float("inf")


def bundle(tensor: Any) -> dict[str, str]:
    found: dict[str, str] = tensor._repr_mimebundle_()
    return found


def page(tensor: Any) -> Element:
    return parsed(bundle(tensor)["text/html"])


def number(page: Element, name: str) -> float:
    (words,) = [each.text for each in page.all("div") if each.attributes.get("class") == "gradwire-words"]
    found = re.search(rf"\b{name} (\S+)", words)
    assert found is not None, words
    return float(found[1].replace(",", ""))


def bars(page: Element) -> list[int]:
    """The counts of a histogram's bars that are not empty."""
    return [int(title.text.rpartition(": ")[2].replace(",", "")) for title in page.all("title")]


def pixels(page: Element) -> np.ndarray[Any, Any]:
    """The numbers of an image's colours, as a decoder that knows only this kind of PNG reads them."""
    (image,) = page.all("img")
    data = base64.b64decode(image.attributes["src"].partition(",")[2], validate=True)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(name + body),)
        parts[name], at = body, at + 12 + length
    columns, rows, depth, colours, *_ = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert (depth, colours, len(parts[b"PLTE"])) == (8, 3, 256 * 3)
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(rows, columns + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


CASES: dict[str, Any] = {
    "vector": lambda: torch.randn(50),
    "matrix": lambda: torch.randn(20, 30),
    "large": lambda: torch.randn(300, 400),
    "four dimensions": lambda: torch.randn(2, 3, 4, 5),
    "number": lambda: torch.tensor(3.5),
    "one element": lambda: torch.tensor([[2.0]]),
    "bool": lambda: torch.tensor([True, False, True] * 7),
    "bool matrix": lambda: torch.rand(9, 9) > 0.5,
    "int": lambda: torch.arange(-10, 30),
    "uint8": lambda: torch.arange(40).to(torch.uint8).reshape(5, 8),
    "uint64": lambda: torch.arange(20).to(torch.uint64),
    "far apart": lambda: torch.tensor([2**63 - 1, -(2**63), 5]),
    "half": lambda: torch.randn(30).half(),
    "bfloat16": lambda: torch.randn(6, 7).bfloat16(),
    "float8": lambda: torch.randn(20).to(torch.float8_e4m3fn),
    "complex": lambda: torch.randn(12, 12, dtype=torch.complex64),
    "not finite": lambda: torch.tensor([1.0, NAN, INF, -INF, 2.0] * 4),
    "only NaN": lambda: torch.full((15,), NAN),
    "only infinite": lambda: torch.full((4, 4), -INF),
    "constant": lambda: torch.full((5, 5), 2.0),
    "huge numbers": lambda: torch.tensor([1.7e308, -1.7e308] * 10, dtype=torch.float64).reshape(4, 5),
    "history": lambda: torch.randn(4, 4, requires_grad=True) * 2,
    "leaf": lambda: torch.randn(4, requires_grad=True),
    "view": lambda: torch.randn(30, 20).t()[::2, 3:],
    "expanded": lambda: torch.tensor([1.0, 2.0]).expand(1000, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_a_display_is_one_round_trip_for_html_and_the_text_of_repr(name, round_trips) -> None:
    tensor = CASES[name]()
    round_trips()
    found = bundle(tensor)
    assert round_trips() == 1
    assert found["text/plain"] == repr(tensor)
    seen = page(tensor)
    assert f"[{', '.join(map(str, tensor.shape))}]" in seen.text
    assert tensor.dtype.name in seen.text and "cpu" in seen.text
    assert len(found["text/html"]) < 40_000


@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4)])
@pytest.mark.parametrize("name", BY_NAME)
def test_every_dtype_has_a_summary(name, shape) -> None:
    tensor = torch.arange(24).to(BY_NAME[name]).reshape(shape)
    seen = page(tensor)
    assert bundle(tensor)["text/plain"] == repr(tensor)
    if name == "bool":
        assert "23 elements are True (95.8 %)" in seen.text
    else:
        values = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).numpy()
        assert number(seen, "mean") == pytest.approx(abs(values).mean(), rel=1e-3)
        assert number(seen, "zeros") == 1
    assert len(seen.all("img")) == (len(shape) == 2)


@pytest.mark.parametrize(
    "make", [lambda: torch.empty(0), lambda: torch.empty(3, 0, 2), lambda: torch.empty(5, 6, device="meta")]
)
def test_what_has_no_values_costs_no_round_trip(make, round_trips) -> None:
    tensor = make()
    round_trips()
    found = bundle(tensor)
    assert round_trips() == 0
    assert found["text/plain"] == repr(tensor)
    assert not parsed(found["text/html"]).all("svg")


def test_the_facts_of_a_tensor_are_told() -> None:
    assert "requires grad" in page(torch.ones(2, requires_grad=True)).text
    computed = page(torch.ones(2, requires_grad=True) * 3).text
    assert "grad_fn MulBackward0" in computed and "requires grad" not in computed
    assert page(torch.nn.Parameter(torch.ones(2))).text.startswith("Parameter")
    assert "meta" in page(torch.empty(2, device="meta")).text
    assert "1.5 KB" in page(torch.ones(384)).text


def test_a_parameter_has_its_own_text() -> None:
    assert bundle(torch.nn.Parameter(torch.ones(2)))["text/plain"].startswith("Parameter containing:\n")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8"])
def test_moments_are_those_of_pytorch(dtype) -> None:
    values = (np.random.default_rng(3).normal(5, 40, 500)).clip(0, 120)
    theirs = oracle.tensor(values).to(getattr(oracle, dtype))
    seen = page(torch.tensor(values).to(getattr(torch, dtype)))
    wanted = theirs.double()
    assert number(seen, "min") == pytest.approx(wanted.min().item(), rel=1e-3)
    assert number(seen, "max") == pytest.approx(wanted.max().item(), rel=1e-3)
    assert number(seen, "mean") == pytest.approx(wanted.mean().item(), rel=1e-3)
    assert number(seen, "std") == pytest.approx(wanted.std().item(), rel=1e-3)
    assert number(seen, "zeros") == (theirs == 0).sum().item() > 0


def test_integers_beyond_floats_are_exact() -> None:
    seen = page(torch.tensor([2**63 - 1, -(2**63), 7]))
    assert "min -9223372036854775808" in seen.text and "max 9223372036854775807" in seen.text


def test_what_is_not_finite_is_counted_and_left_out_of_the_rest() -> None:
    seen = page(torch.tensor([NAN, 1.0, 3.0, INF, -INF, NAN, NAN] * 3))
    assert "9 NaN" in seen.text and "6 infinite" in seen.text
    assert (number(seen, "min"), number(seen, "max"), number(seen, "mean")) == (1, 3, 2)


@pytest.mark.parametrize("values", [np.random.default_rng(1).normal(size=1000), np.arange(100.0), [0.0, 1.0] * 20])
def test_the_histogram_is_numpys(values) -> None:
    array = np.asarray(values)
    counts, _ = np.histogram(array, bins=pictures.BARS)
    seen = page(torch.tensor(array))
    assert bars(seen) == [count for count in counts.tolist() if count]


def test_the_histogram_of_complex_numbers_is_of_their_magnitudes() -> None:
    array = np.random.default_rng(2).normal(size=(200, 2)).view(np.complex128)[:, 0]
    counts, _ = np.histogram(abs(array), bins=pictures.BARS)
    assert bars(page(torch.tensor(array))) == [count for count in counts.tolist() if count]


def test_the_image_of_a_small_matrix_has_a_pixel_for_each_element() -> None:
    matrix = torch.arange(12.0).reshape(3, 4)
    assert pixels(page(matrix)).tolist() == np.rint(np.arange(12).reshape(3, 4) / 11 * 254).tolist()


def test_the_image_of_a_large_matrix_is_of_means() -> None:
    array = np.random.default_rng(0).uniform(0, 1, (480, 960))
    shrunk = array.reshape(48, 10, 96, 10).mean(axis=(1, 3))
    low, high = shrunk.min(), shrunk.max()
    seen = page(torch.tensor(array))
    assert "each pixel is the mean" in seen.all("img")[0].attributes["alt"]
    found = pixels(seen).astype(int)
    assert found.shape == (48, 96)
    assert np.abs(found - (shrunk - low) / (high - low) * 254).max() <= 1


def test_colours_of_numbers_of_both_signs_are_symmetric_and_nan_has_its_own() -> None:
    found = pixels(page(torch.tensor([[0.0, -1.0, 4.0], [NAN, INF, -INF]] * 3)))
    assert found[:2].tolist() == [[127, 95, 254], [255, 254, 95]]


def test_a_pixel_of_a_large_matrix_is_pink_where_an_element_is_nan_and_nowhere_else() -> None:
    array = np.random.default_rng(0).normal(size=(100, 250))
    array[50:53, 200] = NAN
    array[0, 0] = INF
    found = pixels(page(torch.tensor(array))) == 255
    theirs = oracle.nn.functional.adaptive_avg_pool2d(oracle.tensor(np.isnan(array))[None].double(), (48, 96))[0] > 0
    assert found.tolist() == theirs.tolist() and 0 < found.sum() < 10


def test_a_vector_has_no_image_and_bools_no_histogram() -> None:
    assert not page(torch.randn(20)).all("img")
    assert not page(torch.rand(6, 6) > 0.5).all("svg")
    assert "True (" in page(torch.tensor([True] * 3 + [False])).text


def test_a_large_tensor_is_summarised_by_a_sample_of_bounded_size(monkeypatch, round_trips) -> None:
    monkeypatch.setattr(html_representation, "SAMPLE", 1000)
    matrix = torch.arange(10_000.0).reshape(100, 100)
    round_trips()
    seen = page(matrix)
    assert round_trips() == 1
    sample = np.arange(10_000.0).reshape(100, 100)[::4, ::4]
    assert f"of a sample of {sample.size:,} elements" in seen.text
    assert number(seen, "mean") == pytest.approx(sample.mean(), rel=1e-3)
    assert sum(bars(seen)) == sample.size


def test_a_display_of_a_huge_tensor_takes_little_memory_of_the_session(alone) -> None:
    big = torch.zeros(1 << 26, dtype=torch.uint8)
    alone.synchronize()
    alone.reset_peak_memory()
    bundle(big)
    assert alone.memory()["peak_bytes"] - big.nbytes < 200 << 20
    assert alone.memory()["live_bytes"] == big.nbytes


def test_many_dimensions_show_a_bounded_number_of_values(round_trips) -> None:
    tensor = torch.ones([2] * 16)
    round_trips()
    found = bundle(tensor)
    assert round_trips() == 1
    assert max(map(len, found.values())) < 10_000
    assert number(parsed(found["text/html"]), "mean") == 1


def test_print_options_hold_in_notebooks_too_within_bounds() -> None:
    try:
        torch.set_printoptions(threshold=INF, precision=2)
        assert "..." not in page(torch.arange(2000.0)).text
        assert "..." in page(torch.arange(20_000.0)).text
        assert "0.33]" in page(torch.tensor([1 / 3])).text
    finally:
        torch.set_printoptions(profile="default")


# Unusual tensors


def test_a_tensor_inside_of_vmap_is_shown_as_its_text() -> None:
    seen: list[Any] = []
    torch.vmap(lambda row: seen.append((bundle(row), repr(row))) or row)(torch.arange(6.0).reshape(3, 2))
    found, text = seen[0]
    assert found["text/plain"] == text
    assert "BatchedTensor" in parsed(found["text/html"]).text and "mapped by 1 vmap" in parsed(found["text/html"]).text


def test_an_unmapped_tensor_can_be_shown_inside_of_vmap() -> None:
    outside = torch.arange(20.0)
    seen: list[Any] = []
    torch.vmap(lambda row: seen.append(bundle(outside)) or row)(torch.ones(3, 2))
    assert number(parsed(seen[0]["text/html"]), "mean") == 9.5


def test_a_dual_tensor_is_shown_with_its_tangent() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
        assert "tangent=tensor([3., 3.])" in page(dual).text


def test_a_shape_that_depends_on_data_is_found_out() -> None:
    assert "[3]" in page(torch.tensor([1.0, 0.0, 2.0, 3.0]).masked_select(torch.tensor([True, False, True, True]))).text


def test_a_class_that_overrides_functions_is_not_asked() -> None:
    called: list[str] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            called.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.randn(5, 5).as_subclass(Logged)
    called.clear()
    seen = page(tensor)
    assert called == []
    assert seen.text.startswith("Logged") and seen.all("img")


def test_a_class_with_its_own_repr_is_shown_by_that() -> None:
    class Quiet(torch.Tensor):
        def __repr__(self) -> str:
            return "quiet"

    assert bundle(torch.ones(3).as_subclass(Quiet)) == {}


def test_a_name_with_markup_is_escaped() -> None:
    kind = type("<script>alert(1)</script>", (torch.Tensor,), {})
    found = bundle(torch.ones(3).as_subclass(kind))["text/html"]
    assert "<script" not in found and "<script>" in parsed(found).text


def test_a_display_records_nothing_into_the_graph_and_changes_no_mode() -> None:
    leaf = torch.randn(3, 3, requires_grad=True)
    bundle(leaf)
    assert torch.is_grad_enabled() and leaf._version == 0 and leaf.grad is None
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [[2.0] * 3] * 3


# Errors


def test_a_failed_tensor_leaves_its_error_to_repr(session) -> None:
    failed = torch.linalg.inv(torch.zeros(3, 3)) + 1
    assert bundle(failed) == {}
    with pytest.raises(torch.KernelError, match="singular"):
        repr(failed)


def test_an_earlier_error_that_a_display_meets_is_raised(session) -> None:
    fine = torch.ones(3)
    torch.linalg.inv(torch.zeros(3, 3))
    with pytest.raises(torch.KernelError, match="singular"):
        bundle(fine)
    assert "1." in bundle(fine)["text/plain"]


def test_a_summary_beyond_a_limit_leaves_the_text() -> None:
    with live_server(max_session_bytes=3 << 20) as server, torch.connect(server.url, server.api_key) as small:
        tensor = torch.ones(400_000, dtype=torch.uint8, device=small.device)
        found = bundle(tensor)
        assert set(found) == {"text/plain"}
        assert found["text/plain"] == repr(tensor)
        assert tensor._repr_html_() is None


def test_a_closed_session_leaves_its_error_to_repr() -> None:
    with torch.connect() as ended:
        tensor = torch.ones(3, device=ended.device)
    assert bundle(tensor) == {}


def test_the_parts_that_are_asked_for_come() -> None:
    tensor = torch.ones(3)
    assert set(tensor._repr_mimebundle_(include=["text/html"])) == {"text/html"}
    assert set(tensor._repr_mimebundle_(exclude=["text/plain"])) == {"text/html"}
    assert tensor._repr_mimebundle_(include=["text/plain"]) == {}  # repr() makes it
    assert tensor._repr_html_() == bundle(tensor)["text/html"]


def test_programs_without_a_notebook_load_nothing_for_one() -> None:
    program = """
import sys, gradwire as torch
x = torch.ones(3)
print(x, torch.nn.Linear(2, 2), torch.current_session())
torch.current_session().stats(); torch.current_session().memory()
loaded = [name for name in sys.modules if "html" in name.split(".")[-1] and name.startswith("gradwire")]
assert loaded == [], loaded
assert "gradwire._core.tensor.pictures" not in sys.modules
assert "IPython" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


def test_no_warning_comes_with_a_display() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in CASES.values():
            bundle(make())


def test_a_summary_computes_on_arrays_of_a_gpu_as_well(monkeypatch) -> None:
    """On those of a stand-in for CuPy."""
    begin = backends.Backends.__init__

    def strict(self: Any, cpu: Any = None, pool: Any = None) -> None:
        begin(self, StrictBackend() if cpu is None else cpu, pool)

    monkeypatch.setattr(backends.Backends, "__init__", strict)
    with live_server() as server, torch.connect(server.url, server.api_key):
        for make in CASES.values():
            assert set(bundle(make())) == {"text/html", "text/plain"}
