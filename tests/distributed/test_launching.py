"""``gradwire run --nproc``: what ranks find, how their output is shown, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from gradwire.cli.running.command import WrongUsage, parse
from gradwire.cli.running.launching import Job
from tests.live_server import SOURCES

from .conftest import inherited


def test_options_describe_a_job():
    wanted = parse(["--nproc", "4", "--max-restarts=2", "train.py", "--nproc", "9"])
    assert wanted.program == ["train.py", "--nproc", "9"]
    assert Job(**wanted.ranks) == Job(4, max_restarts=2)
    of_torchrun = ["--nnodes=2", "--nproc_per_node=2", "--node_rank=1", "--rdzv_id=x", "--url=http://x", "a.py"]
    job = Job(**parse(of_torchrun).ranks)
    assert job == Job(2, nnodes=2, node_rank=1, run_id="x")
    found = job.environment(1, 0)
    assert {name: found[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")} == {
        "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--nproc", "x", "a.py"], "requires a number, not 'x'"),
        (["--nproc", "0", "a.py"], "at least 1"),
        (["--nproc"], "requires a value"),
        (["--nnodes", "2", "--node-rank", "2", "a.py"], "--node-rank is below --nnodes 2"),
        (["--nnodes", "2", "--node-rank", "1", "a.py"], "--url or GRADWIRE_URL is needed"),
        (["--nnodes", "2", "--url", "x", "a.py"], "needs --node-rank"),
        (["--nnodes", "2", "--node-rank", "1", "--url", "x", "a.py"], "needs --run-id"),
        (["--nproc", "2", "-"], "cannot read the program"),
    ],
)
def test_wrong_options_are_refused(monkeypatch, arguments, text):
    monkeypatch.delenv("GRADWIRE_URL", raising=False)
    with pytest.raises(WrongUsage, match=text):
        parse(arguments)


SHOWN = """
import os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RESTART_COUNT")
print(*[os.environ[n] for n in names], os.environ["MASTER_PORT"].isdigit(), sys.argv[1:], "torch" in sys.modules)
print("an error", file=sys.stderr)
"""


def test_ranks_find_what_torchrun_gives_them_and_their_lines_are_told_apart(launch):
    done = launch("--nproc", "2", "-c", SHOWN, "--lr", "1")
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [
        f"[rank {i}] {i} {i} 2 2 127.0.0.1 0 True ['--lr', '1'] False" for i in range(2)
    ]
    assert sorted(done.stderr.splitlines()) == ["[rank 0] an error", "[rank 1] an error"]


RESTARTED = """
import os, sys, time
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("attempt", attempt)
if attempt == 0:
    if os.environ["RANK"] == "1":
        sys.exit(7)
    time.sleep(60)
"""


def test_all_ranks_are_started_again_when_one_fails(launch):
    started = time.monotonic()
    done = launch("--nproc", "2", "--max-restarts", "1", "-c", RESTARTED)
    assert done.returncode == 0
    assert sorted(set(done.stdout.splitlines())) == [f"[rank {i}] attempt {n}" for i in range(2) for n in range(2)]
    assert "rank 1 failed first, with exit code 7" in done.stderr
    assert "gradwire run: restart 1 of 1" in done.stderr
    assert time.monotonic() - started < 50
    assert launch("--nproc", "2", "-c", RESTARTED).returncode == 7


WAITING = """
import time
try:
    print("ready", flush=True)
    for _ in range(1200):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_all_ranks(server, number):
    known = {"PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    command = [sys.executable, "-m", "gradwire", "run", "--nproc", "2", "-c", WAITING]
    started = subprocess.Popen(command, env=inherited() | known, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        lines = [started.stdout.readline() for _ in range(2)]
        assert sorted(lines) == ["[rank 0] ready\n", "[rank 1] ready\n"]
        os.kill(started.pid, number)
        rest, _ = started.communicate(timeout=60)
    finally:
        started.kill()
        started.wait()
    assert started.returncode == 130
    assert sorted(rest.splitlines()) == ["[rank 0] interrupted", "[rank 1] interrupted"]


TOGETHER = """
import torch, torch.distributed as dist
dist.init_process_group()
x = torch.ones(1)
dist.all_reduce(x)
print(x.item())
"""


def test_without_a_url_all_ranks_share_one_embedded_server():
    command = [sys.executable, "-m", "gradwire", "run", "--nproc", "2", "-c", TOGETHER]
    done = subprocess.run(
        command, env=inherited() | {"PYTHONPATH": SOURCES}, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[rank 0] 2.0", "[rank 1] 2.0"]
