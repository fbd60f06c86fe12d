"""The tutorials that need two machines, a container or a package work as they say, block by block.

What stands behind ``no-run`` in a block's fence names it. The tests run the blocks in the order of the page, with the
ports and folders of the test, and a test fails if a named block is not run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.documents import REPOSITORY, blocks

from tests.docs.blocks import Expectation, expectations
from tests.live_server import SOURCES, server_process
from tests.typescript.node import build, needs_node, node

TUTORIALS = REPOSITORY / "docs" / "tutorials"
FENCE = re.compile(r"^```(\w+) (no-run (\S+)|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"\bgw_[\w-]{20,}")


@dataclass
class Named:
    """A block: the name in its fence, and the output that follows it, if there is one."""

    name: str
    code: str
    output: str | None = None


def named(page: str) -> list[Named]:
    """The named blocks of a tutorial, in order."""
    found: list[Named] = []
    for fence in FENCE.finditer((TUTORIALS / page).read_text(encoding="utf-8")):
        if fence[2] == "output":
            found[-1].output = fence[4]
        else:
            found.append(Named(fence[3], fence[4]))
    return found


def environment(home: Path, **more: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    path = os.pathsep.join([str(home / "bin"), str(Path(sys.executable).parent), ours.get("PATH", "")])
    return ours | {"HOME": str(home), "PATH": path, "PYTHONPATH": SOURCES} | more


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def command(home: Path, name: str, text: str) -> None:
    """Put a command first on the path of a test's home."""
    path = home / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def shell(code: str, folder: Path, where: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euc", code], cwd=folder, env=where, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@contextmanager
def running(code: str, folder: Path, where: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A block that does not end by itself."""
    log = (folder / "running.log").open("ab")
    process = subprocess.Popen(
        ["bash", "-euc", code], cwd=folder, env=where, stdout=log, stderr=log, start_new_session=True
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        log.close()


def wait_until_ready(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    end = time.monotonic() + 180
    while True:
        assert time.monotonic() < end, "nothing answers"
        assert process is None or process.poll() is None, "the process ended"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except OSError:
            time.sleep(0.3)


# A laptop and a remote GPU: a real SSH server on loopback stands for the other machine.

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
needs_ssh = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="ssh and sshd (Debian: openssh-server) are not installed"
)


def _wait_until_listening(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while True:
        assert server.poll() is None and time.monotonic() < end, "the SSH server does not listen"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            time.sleep(0.05)


@contextmanager
def other_machine(folder: Path, home: Path) -> Iterator[None]:
    """An SSH server that the name gpu-box leads to, by the configuration of the home's ``ssh``."""
    assert SSHD is not None
    port = free_port()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "authorized").chmod(0o600)
    (folder / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"PidFile {folder}/sshd.pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
    )
    user = subprocess.check_output(["id", "-un"], text=True).strip()
    (folder / "ssh.conf").write_text(
        f"Host gpu-box\n HostName 127.0.0.1\n Port {port}\n User {user}\n IdentityFile {folder}/user\n"
        f" IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
    )
    command(home, "ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh.conf "$@"\n')
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd.conf")], stderr=subprocess.PIPE)
    try:
        _wait_until_listening(port, server)
        yield
    finally:
        server.terminate()
        server.wait(30)


@needs_ssh
def test_a_laptop_computes_on_the_other_end_of_an_ssh_tunnel(tmp_path: Path) -> None:
    page = named("remote-gpu.md")
    assert [block.name for block in page] == [
        "server-setup", "server-keys", "server", "tunnel", "laptop-setup", "laptop", "train", "laptop", "laptop"
    ]  # fmt: skip
    setup, keys, server, tunnel, thin, connect, train, first, second = page
    home, folder, ssh = tmp_path / "home", tmp_path / "laptop", tmp_path / "ssh"
    for each in (home, folder, ssh):
        each.mkdir()
    extras = set(re.findall(r"\.\[(\w+)\]", setup.code))
    assert extras and all(f"\n{extra} = [" in (REPOSITORY / "pyproject.toml").read_text() for extra in extras)
    assert thin.code == "pip install .\n"
    far, near = free_port(), free_port()
    here = environment(home, GRADWIRE_PORT=str(far), GRADWIRE_COMPILED_KERNELS="off")
    key = KEY.findall(shell(keys.code, folder, here))[0]
    assert tunnel.code.count("8000") == 2
    through = tunnel.code.replace("-L 8000:127.0.0.1:8000", f"-L {near}:127.0.0.1:{far}")
    with (
        other_machine(ssh, home),
        running(f"exec env {server.code}", folder, here) as process,
        running(f"exec {through}", folder, environment(home)),
    ):
        wait_until_ready(far, process)
        wait_until_ready(near)
        named_server = connect.code.replace("8000", str(near)).replace("gw_...", key)
        laptop = environment(home)
        told = shell(named_server, folder, laptop)
        assert told.strip().splitlines()[-1] in ("True", "False")
        (folder / "train.py").write_text(train.code)
        export = named_server.splitlines()[0] + "\n"
        printed = shell(export + first.code, folder, laptop)
        assert first.output is not None
        assert Expectation(1, 1, first.output).agrees(printed), printed
        assert (folder / "model.pt").stat().st_size > 0
        told = shell(export + second.code, folder, laptop)
        assert re.search(r"loss 2\S* to 0", told) and "round_trips=" in told, told


# JavaScript and TypeScript


@needs_node
def test_the_typescript_of_a_page_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    page = TUTORIALS / "typescript.md"
    built = build()
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "gradwire").symlink_to(built.parent)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    program = "".join(block.code for block in blocks(page, "ts"))
    (tmp_path / "first.ts").write_text(program)
    wanted = re.findall(r"^console\.log\(.*\); // (.*)$", program, re.MULTILINE)
    assert len(wanted) == 4
    with server_process() as server:
        where = environment(tmp_path, GRADWIRE_URL=server.url, GRADWIRE_API_KEY=server.api_key)
        done = subprocess.run(
            [str(node()), "--preserve-symlinks", "first.ts"], cwd=tmp_path, env=where, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == " ".join(wanted).split()


# A server in a container: where no engine runs, a command in Docker's place reads the same arguments and starts the
# same entry point, with the volumes as folders.

DOCKER = """\
#!{python}
import json, os, signal, subprocess, sys
from pathlib import Path

STATE = Path({state!r})
WITH_VALUE = {{"--name", "-p", "-v", "-e", "--tmpfs", "--cap-drop", "--security-opt", "--memory", "--pids-limit",
              "--stop-timeout"}}
FLAGS = {{"-d", "--read-only"}}


def start(variables):
    log = (STATE / "container.log").open("ab")
    process = subprocess.Popen(["gradwire-server"], env={{**os.environ, **variables}}, stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    (STATE / "pid").write_text(str(process.pid))


word, *rest = sys.argv[1:]
if word == "build":
    assert rest[0] == "-f" and Path(rest[1]).is_file() and rest[2:] == ["-t", "gradwire:cpu", "."], rest
elif word == "run":
    options, arguments = {{}}, iter(rest)
    for each in arguments:
        if each in WITH_VALUE:
            options.setdefault(each, []).append(next(arguments))
        elif each not in FLAGS:
            assert each == "gradwire:cpu", each
    (published,) = options["-p"]
    assert published == "127.0.0.1:{port}:8000", published
    folders = {{}}
    for volume in options["-v"]:
        source, target = volume.split(":")[:2]
        folders[target] = source if source.startswith("/") else str(STATE / source)
    variables = {{"GRADWIRE_PORT": "{port}", "GRADWIRE_DATA_DIR": folders["/data"], "GRADWIRE_SESSION_HOST": "process"}}
    for text in options["-e"]:
        name, value = text.split("=", 1)
        for target, source in folders.items():
            value = value.replace(target + "/", source + "/")
        variables[name] = value
    (STATE / "variables").write_text(json.dumps(variables))
    start(variables)
elif word == "stop":
    pid = int((STATE / "pid").read_text())
    os.kill(pid, signal.SIGTERM)
    while Path(f"/proc/{{pid}}").exists() and Path(f"/proc/{{pid}}/stat").read_text().split()[2] != "Z":
        pass
elif word == "start":
    start(json.loads((STATE / "variables").read_text()))
else:
    sys.exit(f"no such command: {{word}}")
"""


def test_an_operator_runs_a_server_in_a_container(tmp_path: Path) -> None:
    page = {block.name: block for block in named("operator.md")}
    assert list(page) == ["keys", "build", "start", "health", "user", "metrics", "stop"]
    home, state, tree = tmp_path / "home", tmp_path / "state", tmp_path / "tree"
    state.mkdir()
    shutil.copytree(REPOSITORY / "docker", tree / "docker", ignore=shutil.ignore_patterns("secrets", "wheels"))
    port = free_port()
    command(home, "docker", DOCKER.format(python=sys.executable, state=str(state), port=port))
    command(home, "make", f'#!/bin/sh\n[ "$1" = manual ] && grep -q "^manual:" {REPOSITORY}/Makefile\n')
    where = environment(home, GRADWIRE_COMPILED_KERNELS="off")

    def run(name: str, before: str = "") -> str:
        return shell(before + page[name].code.replace("127.0.0.1:8000", f"127.0.0.1:{port}"), tree, where)

    keys = dict(line.split() for line in run("keys").splitlines())
    run("build")
    run("start")
    try:
        wait_until_ready(port)
        ready = json.loads(run("health"))
        said = page["health"].output
        assert said is not None and Expectation(1, 1, said).agrees(json.dumps(ready, separators=(",", ":")))
        page["user"].code = page["user"].code.replace("gw_...", keys["admin_keys:"])
        made = run("user")
        assert "alice" in made and KEY.search(made)
        export = page["user"].code.splitlines()[0].split("#")[0].replace("8000", str(port)) + "\n"
        assert int(run("metrics", export)) > 20
        session = shell(SESSION, tree, where | session_variables(port, keys["api_keys:"]))
        run("stop")
        wait_until_ready(port)
        again = shell(
            RETURN.format(session=session.split()[-1]), tree, where | session_variables(port, keys["api_keys:"])
        )
        assert again.strip() == "[1.0, 2.0]", again
    finally:
        os.kill(int((state / "pid").read_text()), signal.SIGTERM)


def session_variables(port: int, key: str) -> dict[str, str]:
    return {"GRADWIRE_URL": f"http://127.0.0.1:{port}", "GRADWIRE_API_KEY": key}


SESSION = """\
python - <<'END'
import gradwire as torch
session = torch.connect(keep=True)
torch.tensor([1.0, 2.0]).set_name("x")
torch.zeros(()).item()
print(session.id)
END
"""
RETURN = """\
python - <<'END'
import gradwire as torch
print(torch.connect(session={session!r}).tensor("x").tolist())
END
"""


# Notebooks, and the convention


def test_the_notebook_page_is_a_notebook_that_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="a notebook needs nbformat, nbclient and ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="a notebook needs nbformat, nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="a notebook needs nbformat, nbclient and ipykernel")
    cells = blocks(TUTORIALS / "notebook.md", "python")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.code) for cell in cells])
    with server_process() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADWIRE_URL", server.url)
        patch.setenv("GRADWIRE_API_KEY", server.api_key)
        patch.setenv("PYTHONPATH", SOURCES)
        nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    printed = ["".join(output["text"] for output in cell.outputs if "text" in output) for cell in book.cells]
    for cell, text in zip(cells, printed, strict=True):
        told = [line.split("# ", 1)[1] for line in cell.code.splitlines() if line.startswith("print(") and "# " in line]
        assert text.split() == " ".join(told).split()


def test_another_kernel_gives_gradwire_for_torch(tmp_path: Path) -> None:
    (replace,) = [block for block in named("notebook.md") if block.name == "replace"]
    code = replace.code + "import torch\nassert torch.zeros is gradwire.zeros\n"
    done = subprocess.run([sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_named_block_belongs_to_a_test() -> None:
    told = {page.name: {block.name for block in named(page.name)} for page in TUTORIALS.glob("*.md")}
    assert {name for name, found in told.items() if found} == {"remote-gpu.md", "operator.md", "notebook.md"}
    assert all(expectations(block.code) is not None for block in blocks(TUTORIALS / "first-steps.md", "python"))
