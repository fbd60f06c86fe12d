"""The classifier of examples/languages in TypeScript: the losses of the Python program, one round trip per step."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradwire as torch
from tests.live_server import ROOT, SOURCES, server_process

from .node import PACKAGE, build, environment, needs_node, node, run, tool

pytestmark = needs_node

PROGRAM = ROOT / "examples" / "languages" / "mlp.ts"
STEPS = 5 * 21
BESIDE = 2
"""Round trips beside the steps: the accuracy, and the end."""


def losses(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"^epoch \d+  loss ([\d.]+)$", output, re.MULTILINE)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the program and the built package, as ``npm install gradwire`` leaves it."""
    build()
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "gradwire").symlink_to(PACKAGE)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(PROGRAM, tmp_path / "mlp.ts")
    data = [sys.executable, str(ROOT / "examples" / "digits_data.py"), str(tmp_path / "digits.json")]
    subprocess.run(data, check=True, timeout=120)
    return tmp_path


def test_it_learns_as_the_python_program_does(project: Path) -> None:
    counted = project / "counted.ts"
    end = "\nconsole.log(`round trips ${session.stats().roundTrips}`);\n"
    counted.write_text((project / "mlp.ts").read_text() + end)
    with server_process() as server:
        where = {"GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
        told = [
            subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, timeout=300, check=True)
            for command, variables in (
                ([str(node()), "counted.ts", "digits.json"], environment(**where)),
                (
                    [sys.executable, str(PROGRAM.with_suffix(".py")), "digits.json"],
                    os.environ | {"PYTHONPATH": SOURCES} | where,
                ),
            )
        ]
        mine, python = (each.stdout for each in told)
        assert len(losses(mine)) == 5
        assert losses(mine) == pytest.approx(losses(python), rel=1e-6)
        assert re.search(r"accuracy (.*)", mine)[1] == re.search(r"accuracy (.*)", python)[1]  # type: ignore[index]
        trips = re.search(r"round trips (\d+)", mine)
        assert trips is not None
        assert STEPS < int(trips[1]) <= STEPS + BESIDE
        with server.http() as http:
            assert http.get("/v1/sessions").json()["sessions"] == []


def test_the_page_on_languages_says_what_it_takes() -> None:
    lines = [line.strip() for line in PROGRAM.read_text(encoding="utf-8").splitlines()]
    count = sum(bool(line) and not line.startswith(("/**", "//")) for line in lines)
    assert count < 60
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| TypeScript \| \[mlp.ts\].*\| {count} \| 1\.00 \|$", page, re.MULTILINE)


def test_its_types_are_right(project: Path) -> None:
    options = '{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2022", "noEmit": true}}'
    (project / "tsconfig.json").write_text(options)
    (project / "node_modules" / "@types").symlink_to(PACKAGE / "node_modules" / "@types")
    (project / "node_modules" / "undici-types").symlink_to(PACKAGE / "node_modules" / "undici-types")
    done = run(tool("tsc"), "-p", str(project))
    assert done.returncode == 0, done.stdout


JOINED = """
import * as gw from "gradwire";

const [, , id] = process.argv;
const session = await gw.connect(undefined, { session: id });
const weights = await session.tensor("weights");
console.log(weights.requiresGrad, JSON.stringify(await weights.toArray()));
weights.mul(gw.tensor([10, 100])).sum().named("total");
await session.close();
"""


def test_a_gradient_flows_from_python_through_typescript(project: Path) -> None:
    (project / "joined.ts").write_text(JOINED)
    with server_process() as server, torch.connect(server.url, server.api_key) as session:
        weights = torch.tensor([1.0, 2.0], requires_grad=True)
        weights.set_name("weights")
        session.synchronize()
        variables = environment(GRADWIRE_URL=server.url, GRADWIRE_API_KEY=server.api_key)
        done = subprocess.run(
            [str(node()), "joined.ts", session.id], cwd=project, env=variables, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["true", "[1,2]"]
        total = session.tensor("total")
        total.backward()
        assert total.item() == 210
        assert session.tensor("weights").grad.tolist() == [10, 100]  # type: ignore[union-attr]
