"""The code blocks of README.md and docs/ run and print what the page says. See :mod:`tests.docs.blocks`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.documents import Block, blocks, pages, script

from tests.docs.blocks import Expectation, expectations
from tests.live_server import SOURCES, server_process

END = "-- end of a block --"
NODE = 22


def pages_with(language: str) -> list[Path]:
    return [page for page in pages() if page.exists() and blocks(page, language)]


def environment(**more: str) -> dict[str, str]:
    """The environment without a configured server, and with this Python's commands on the path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", "")])
    return inherited | {"PATH": path, "PYTHONPATH": SOURCES, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"} | more


def check(program: str, folder: Path) -> None:
    """Run a program on an embedded server and compare what it prints with what it says."""
    path, notes = folder / "page.py", folder / "notes.json"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, str(Path(__file__).with_name("listen.py")), str(path), str(notes)]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    heard = json.loads(notes.read_text(encoding="utf-8"))
    for expected in expectations(program):
        printed = "".join(text for line, text in heard if expected.first <= line <= expected.last)
        assert expected.agrees(printed), f"line {expected.first} prints\n{printed}\ninstead of\n{expected.text}"


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_of_a_page_runs_and_prints_what_it_says(page, tmp_path) -> None:
    check(script(blocks(page, "python")), tmp_path)


@pytest.mark.parametrize("page", pages_with("bash"), ids=lambda page: page.name)
def test_commands_of_a_page_run_and_print_what_it_says(page, tmp_path) -> None:
    """One shell a page, in an empty folder, with GRADWIRE_URL and GRADWIRE_API_KEY of a server."""
    found = blocks(page, "bash")
    if any("jq " in block.code for block in found) and shutil.which("jq") is None:
        pytest.skip(f"jq is not installed, so the commands of {page.name} are not run")
    program = "set -euo pipefail\n" + "\n".join(f"{block.code}\necho '{END}'" for block in found)
    with server_process() as server:
        where = environment(GRADWIRE_URL=server.url, GRADWIRE_API_KEY=server.api_key)
        done = subprocess.run(
            ["bash", "-c", program], cwd=tmp_path, env=where, capture_output=True, text=True, timeout=900, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    for block, printed in zip(found, done.stdout.split(END), strict=False):
        check_output(block, printed)


@pytest.mark.parametrize("page", pages_with("js"), ids=lambda page: page.name)
def test_javascript_of_a_page_runs_and_prints_what_it_says(page, tmp_path) -> None:
    """Each block is a program, with ``server`` and ``key``, for browsers and Node."""
    node = shutil.which("node")
    if node is None or int(re.findall(r"\d+", subprocess.check_output([node, "--version"], text=True))[0]) < NODE:
        pytest.skip(f"Node {NODE}, the first with a WebSocket, is not installed")
    with server_process() as server:
        for block in blocks(page, "js"):
            path = tmp_path / "page.mjs"
            path.write_text(
                f"const server = {json.dumps(server.url)}, key = {json.dumps(server.api_key)};\n{block.code}",
                encoding="utf-8",
            )
            done = subprocess.run(
                [node, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            check_output(block, done.stdout)


def check_output(block: Block, printed: str) -> None:
    """Compare what a block printed with the block of output behind it, if there is one."""
    if block.output is not None:
        said = json_lines(block.output)
        expected = Expectation(block.line, block.line, said)
        assert expected.agrees(json_lines(printed)), f"line {block.line} prints\n{printed}\ninstead of\n{block.output}"


def json_lines(text: str) -> str:
    """A text without what JSON does not need: whitespace, and a fraction of 0, which only some versions of jq print."""
    return re.sub(r"(?<=[\[{,:])\s+|\s+(?=[\]}])|(?<=\d)\.0\b", "", text)


@pytest.mark.parametrize("page", pages_with("json"), ids=lambda page: page.name)
def test_frames_of_a_page_are_applied_without_an_error(page) -> None:
    """A block of JSON with a structure or ops is a frame. Those of a page are sent to one session, one after the other,
    so that they find what earlier ones named."""
    frames = [json.loads(block.code) for block in blocks(page, "json")]
    with server_process() as server, server.http() as http:
        session = http.post("/v1/sessions").json()["id"]
        for frame in frames:
            if "structure" in frame or "ops" in frame:
                reply = http.post(f"/v1/sessions/{session}/frames", json=frame)
                assert reply.status_code == 200, reply.text
                assert reply.json().get("errors", []) == []


# The convention itself

PROGRAM = """\
import gradwire as torch
x = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
(x ** 2).mean().backward()
print(x.grad)
# tensor([[0.5000, 1.0000],
#         [1.5000, 2.0000]])
if True:
    print(x.sum().item(), "# no comment")  # 10.0 # no comment
"""


def test_comments_behind_a_print_say_what_it_prints() -> None:
    assert [(e.first, e.text) for e in expectations(PROGRAM)] == [
        (4, "tensor([[0.5000, 1.0000],\n[1.5000, 2.0000]])"),
        (8, "10.0 # no comment"),
    ]


def test_a_program_that_says_the_truth_passes(tmp_path) -> None:
    check(PROGRAM, tmp_path)


def test_one_that_does_not_is_caught(tmp_path) -> None:
    with pytest.raises(AssertionError, match=r"line 2 prints\s+4"):
        check("x = 2\nprint(x + x)  # 5\n", tmp_path)


@pytest.mark.parametrize(
    ("said", "printed", "agrees"),
    [
        ("tensor([1., 2.])", "tensor([1., 2.])\n", True),
        ("a\n   b", "a b\n", True),
        ("a b", "ab\n", False),
        ("loss 0...", "loss 0.123\n", True),
        ("... ops in ... frames", "12 ops in 3 frames\n", True),
        ("loss 0...", "gain 0.123\n", False),
        ("1", "11\n", False),
    ],
)
def test_what_agrees(said, printed, agrees) -> None:
    assert Expectation(1, 1, said).agrees(printed) is agrees


PAGE = """\
```bash
echo '[1, 2.0]'
```

```json output
[1,2]
```

```bash
cat
```

```text
no output
```

```json no-run
{}
```

```text output
of nothing
```
"""


def test_a_block_of_output_belongs_to_the_block_before_it(tmp_path) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    first, second = blocks(tmp_path / "page.md", "bash")
    assert (first.output, second.output) == ("[1,2]", None)
    assert blocks(tmp_path / "page.md", "json") == []
    check_output(first, "[1, 2.0]\n")
    check_output(second, "anything")
    with pytest.raises(AssertionError, match=r"line 2 prints\s+\[1, 3\]"):
        check_output(first, "[1, 3]\n")
