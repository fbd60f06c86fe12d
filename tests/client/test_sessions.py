"""Sessions: several at once, from several threads, joined by name, awaited; and the end of the embedded server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

import gradwire
from gradwire._core.session import current_session


@pytest.fixture(autouse=True)
def restore_session():
    before = current_session._current
    yield
    current_session._current = before


def test_tensors_of_two_sessions_do_not_mix():
    here = gradwire.ones(2)
    other = gradwire.connect()
    there = gradwire.ones(2)
    with pytest.raises(RuntimeError, match="different sessions"):
        here + there
    assert (there * 2).tolist() == [2.0, 2.0]
    other.close()
    assert (here * 2).tolist() == [2.0, 2.0]


def test_two_clients_share_a_session_by_name():
    first = gradwire.connect()
    (gradwire.ones(2, 3) * 7).set_name("weights")
    first.flush()
    joined = gradwire.open_session(first.url, first.rest.clients.headers["Authorization"][7:], session=first.id)
    found = joined.tensor("weights")
    assert found.shape == (2, 3) and found.sum().item() == 42.0
    with pytest.raises(LookupError, match="nothing"):
        joined.tensor("nothing")
    joined.close()
    first.close()


def test_a_tensor_is_found_among_more_than_a_page_of_the_list():
    with gradwire.connect() as session:
        kept = [gradwire.ones(()) for _ in range(1005)]
        last = (gradwire.ones(2, 3) * 7).requires_grad_()
        last.set_name("last")
        found = session.tensor("last")
        assert (found.shape, found.requires_grad, found.tolist()) == (last.shape, True, [[7.0] * 3] * 2)
        constant = gradwire.ones(2)  # beyond the first page of ids, too
        with pytest.raises(RuntimeError, match="strict"):
            gradwire.autograd.functional.jacobian(lambda x: constant.clone(), gradwire.ones(2), strict=True)
        assert len(session.rows([t._id for t in kept])) == len(kept)


def test_threads_record_into_one_session():
    session = gradwire.connect()
    results, errors = {}, []

    def work(number: int) -> None:
        try:
            x = gradwire.full((4,), float(number), requires_grad=True)
            y = x
            for _ in range(200):
                y = y + 1
            y.sum().backward()
            results[number] = (y.tolist(), x.grad.tolist())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert results == {n: ([n + 200.0] * 4, [1.0] * 4) for n in range(6)}
    session.close()


async def test_values_are_awaited():
    async with gradwire.AsyncSession() as session:
        x = gradwire.tensor(3.0)
        value, _ = await session.fetch(x * x, x)
        assert value == 9.0
        assert await (x + 1).item_async() == 4.0


def test_what_was_recorded_is_sent_when_the_program_is_quiet():
    session = gradwire.connect()
    before = session.frames
    kept = gradwire.ones(3) + 1
    deadline = time.monotonic() + 120
    while session.frames == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.frames > before
    assert kept.tolist() == [2.0, 2.0, 2.0]
    session.close()


def test_a_wrong_key_and_a_missing_server_are_typed_errors():
    url = gradwire.current_session().url
    with pytest.raises(gradwire.Unauthorized):
        gradwire.open_session(url, "wrong")
    with pytest.raises(gradwire.Unavailable):
        gradwire.open_session("http://127.0.0.1:9", "any")


def test_a_deleted_session_is_a_typed_error():
    session = gradwire.connect()
    x = gradwire.ones(2)
    x.tolist()
    session.rest.delete(f"/v1/sessions/{session.id}")
    with pytest.raises(gradwire.GradwireError) as caught:
        for _ in range(3):
            (x + 1).tolist()
    assert caught.value.code in ("session_gone", "not_found")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize("ending", ["", "import os; os._exit(1)", "os.kill(os.getpid(), 9)"])
def test_the_embedded_server_ends_with_its_program(ending):
    program = (
        "import os, gradwire; gradwire.ones(1).tolist();"
        "from gradwire._core.wire.embedded_server import embedded_server;"
        "print(embedded_server()._process.pid, flush=True);" + ending
    )
    environment = {k: v for k, v in os.environ.items() if k != "GRADWIRE_URL"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=400)
    pid = int(run.stdout)
    deadline = time.monotonic() + 120
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def test_the_embedded_server_has_nothing_of_another_server_s(tmp_path):
    """A shell that is set up for a server in earnest: its directory is locked, its certificate somewhere else."""
    earnest = {
        "DATA_DIR": str(tmp_path / "data"), "DURABILITY": "durable", "AUDIT_LOG": str(tmp_path / "audit.log"),
        "TLS_CERT": "/absent", "ADMIN_KEYS_FILE": "/absent", "ROOT_PATH": "/gradwire", "DRAIN_GRACE_S": "3000",
        "MAX_KEY_SESSIONS": "1", "MAX_TENSORS": "77", "PORT": "1",
    }  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")}
    environment |= {f"GRADWIRE_{name}": value for name, value in earnest.items()}
    program = (
        "import gradwire; first, second = gradwire.connect(), gradwire.connect();"
        "facts = first.rest.get(f'/v1/sessions/{first.id}');"
        "print(facts['durability'], facts['limits']['max_tensors'], '/gradwire' in first.url)"
    )
    began = time.monotonic()
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=400)
    assert run.stdout.split() == ["none", "77", "False"], run.stderr  # its limits are as they are set
    assert time.monotonic() - began < 300
    assert not any(tmp_path.iterdir())


def test_the_client_imports_neither_server_nor_engine():
    heavy = ("gradwire_engine", "gradwire_server", "fastapi", "scipy", "cupy", "torch")
    program = f"import sys, gradwire; print([m for m in sys.modules if m.split('.')[0] in {heavy}])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=True)
    assert run.stdout.strip() == "[]"


def test_a_long_loop_holds_no_more_than_a_short_one():
    session = gradwire.connect()
    model = gradwire.nn.Sequential(gradwire.nn.Linear(8, 16), gradwire.nn.ReLU(), gradwire.nn.Linear(16, 3))
    optimizer = gradwire.optim.AdamW(model.parameters(), lr=1e-3)
    held = []
    for step in range(301):
        x, target = gradwire.randn(4, 8), gradwire.randint(0, 3, (4,))
        optimizer.zero_grad()
        loss = gradwire.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        if step in (100, 300):
            loss.item()
            contents = session.describe()["contents"]
            held.append((contents["tensors"], contents["memory"]["live_bytes"], contents["graph_nodes"]))
    assert held[0] == held[1]
    session.close()
