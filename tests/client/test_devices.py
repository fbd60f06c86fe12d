"""``torch.cuda`` and ``torch.accelerator`` describe the server; a device that it lacks is refused at once."""

from __future__ import annotations

import pytest

import gradwire
from gradwire._core.context.default_device import PLACES
from gradwire._core.surface.server_devices import gpu_index

cuda, accelerator = gradwire.cuda, gradwire.accelerator


@pytest.fixture(autouse=True)
def restored(session):
    yield
    PLACES.entered, PLACES.default, PLACES.cuda = (), None, 0
    gradwire.backends.cuda.matmul.allow_tf32 = False


@pytest.fixture
def without_gpus(session, monkeypatch):
    monkeypatch.setattr(session.link, "devices", ["cpu"])


@pytest.fixture
def two_gpus(session, monkeypatch):
    """A server that says it has two GPUs. Nothing is computed on them here."""
    monkeypatch.setattr(session.link, "devices", ["cpu", "cuda:0", "cuda:1"])
    row = {
        "name": "cuda:0", "model": "A GPU", "total_bytes": 1 << 34, "free_bytes": 1 << 33, "capability": [9, 0],
        "multiprocessors": 132,
    }  # fmt: skip
    rows = {"devices": [row, row | {"name": "cuda:1", "model": "Another"}]}
    get = session.rest.get
    monkeypatch.setattr(session.rest, "get", lambda path: rows if path == "/v1/devices" else get(path))


@pytest.mark.usefixtures("without_gpus")
def test_without_a_gpu_questions_are_answered():
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized()
    assert not accelerator.is_available() and accelerator.current_accelerator() is None
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    assert not cuda.is_bf16_supported() and cuda.get_rng_state_all() == []
    cuda.empty_cache(), cuda.manual_seed(0), cuda.manual_seed_all(0), cuda.reset_peak_memory_stats()
    with cuda.device(None), cuda.stream(None):
        pass


NEED_ONE = [
    lambda: gradwire.ones(2, device="cuda"), lambda: gradwire.ones(2).cuda(), lambda: gradwire.ones(2).to("cuda:1"),
    lambda: gradwire.nn.Linear(2, 2).cuda(), lambda: gradwire.nn.Linear(2, 2, device="cuda"), cuda.synchronize,
    cuda.current_device, cuda.get_device_name, lambda: cuda.get_device_capability(0), cuda.Stream, cuda.Event,
    lambda: cuda.set_device(0), accelerator.current_device_index, cuda.mem_get_info, lambda: cuda.device(0),
    lambda: gradwire.tril_indices(3, 3, device="cuda"),
]  # fmt: skip


@pytest.mark.usefixtures("without_gpus")
@pytest.mark.parametrize("attempt", NEED_ONE)
def test_without_a_gpu_what_needs_one_is_refused_at_once(attempt, round_trips):
    round_trips()
    with pytest.raises(gradwire.DeviceError, match=r"the server has no (device cuda:\d|GPU)") as caught:
        attempt()
    assert isinstance(caught.value, RuntimeError)
    assert round_trips() == 0


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_is_described_as_the_server_describes_it():
    assert cuda.is_available() and cuda.device_count() == accelerator.device_count() == 2
    assert accelerator.current_accelerator() == gradwire.device("cuda")
    assert cuda.get_device_name(0) == "A GPU" and cuda.get_device_name("cuda:1") == "Another"
    assert cuda.get_device_capability() == (9, 0) and cuda.is_bf16_supported()
    properties = cuda.get_device_properties(1)
    assert (properties.name, properties.major, properties.multi_processor_count) == ("Another", 9, 132)
    assert properties.total_memory == 1 << 34 and cuda.mem_get_info() == (1 << 33, 1 << 34)
    with pytest.raises(gradwire.DeviceError, match="no GPU 2: the server has 2 GPUs"):
        cuda.set_device(2)


@pytest.mark.usefixtures("two_gpus")
def test_the_current_gpu_is_what_cuda_means():
    assert cuda.current_device() == 0 and gradwire.device("cuda").wire == "cuda:0"
    cuda.set_device("cuda:1")
    assert cuda.current_device() == accelerator.current_device_index() == 1
    assert gradwire.device("cuda").wire == "cuda:1" and gradwire.device("cuda:0").wire == "cuda:0"
    with cuda.device(0):
        assert cuda.current_device() == gpu_index("cuda") == 0
        with cuda.stream(cuda.Stream(device=1)):
            assert cuda.current_device() == 1
        with accelerator.device_index(1):
            assert cuda.current_device() == 1
    assert cuda.current_device() == 1


@pytest.mark.usefixtures("two_gpus")
def test_memory_is_the_sessions():
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    kept = gradwire.ones(1000)
    assert cuda.memory_allocated() - before == 4000
    assert cuda.max_memory_allocated() >= before + 4000 and cuda.memory_reserved() >= before + 4000
    assert "allocated_bytes.all.current" in cuda.memory_stats() and "bytes" in cuda.memory_summary()
    del kept
    cuda.empty_cache()
    assert cuda.memory_allocated() == before
    with pytest.raises(NotImplementedError, match="GRADWIRE_MAX_SESSION_BYTES"):
        cuda.set_per_process_memory_fraction(0.5)


@pytest.mark.usefixtures("two_gpus")
def test_events_measure_and_streams_keep_the_order():
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    stream = cuda.current_stream()
    start.record(stream)
    gradwire.ones(3) * 2
    stream.wait_stream(cuda.Stream())
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0 and end.query() and stream.query()
    plain = stream.record_event()
    plain.wait(), plain.synchronize()
    with pytest.raises(RuntimeError, match="enable_timing"):
        plain.elapsed_time(end)
    assert cuda.Stream(1) == cuda.Stream(1) != cuda.Stream(0)


def test_new_tensors_live_on_the_default_device():
    assert gradwire.get_default_device() == gradwire.device("cpu")
    gradwire.set_default_device("cpu")
    assert gradwire.ones(1).device == gradwire.get_default_device() == gradwire.device("cpu")
    gradwire.set_default_device("cuda:5")
    with pytest.raises(gradwire.DeviceError, match="no device cuda:5"):
        gradwire.ones(1)
    with pytest.raises(gradwire.DeviceError):
        gradwire.tril_indices(2, 2)
    with gradwire.device("cpu") as inside:
        assert gradwire.tensor([1.0]).device == inside and gradwire.tril_indices(2, 2).device == inside
    gradwire.set_default_device(None)
    assert gradwire.ones(1).device.type == "cpu"


def test_the_cpu_is_a_device_module_too():
    assert gradwire.cpu.is_available() and gradwire.cpu.device_count() == 1
    gradwire.cpu.synchronize()
    assert gradwire.get_device_module("cuda") is cuda and gradwire.get_device_module() is gradwire.cpu
    assert not gradwire.mps.is_available() and not gradwire.xpu.is_available()


def test_backends_keep_their_switches_and_say_what_there_is():
    backends = gradwire.backends
    assert not backends.cudnn.is_available() and backends.cudnn.version() is None and backends.cuda.is_built()
    backends.cudnn.benchmark = True
    with backends.cudnn.flags(benchmark=False):
        assert backends.cudnn.benchmark is False
    assert backends.cudnn.benchmark is True
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.allow_tf32 and backends.cuda.math_sdp_enabled()
    assert not backends.mps.is_available() and not backends.mkl.is_available()


def test_the_server_describes_its_devices(session):
    rows = session.rest.get("/v1/devices")["devices"]
    assert rows[0]["name"] == "cpu" and rows[0]["multiprocessors"] >= 1
    assert [row["name"] for row in rows] == session.link.devices
