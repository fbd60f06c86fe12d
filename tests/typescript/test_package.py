"""The tests of client/typescript, and the package as it is published."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live_server import ROOT, LiveServer, server_process

from .node import PACKAGE, build, environment, needs_node, run, tool

pytestmark = needs_node

FILES = sorted(path.name for path in (PACKAGE / "test").glob("*.test.ts"))


@pytest.fixture(scope="module")
def built() -> Path:
    """The package's ``dist`` folder."""
    return build()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of the demo."""
    path = tmp_path_factory.mktemp("digits") / "digits.json"
    subprocess.run([sys.executable, str(ROOT / "examples" / "digits_data.py"), str(path)], check=True, timeout=120)
    return path


@pytest.mark.parametrize("name", FILES)
def test_file(name: str, built: Path, digits: Path) -> None:
    done = run("--test", f"test/{name}", DIGITS_DATA=str(digits))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = re.search(r"pass (\d+)", done.stdout)
    assert passed is not None
    if re.search(r"skipped [1-9]", done.stdout):
        pytest.skip("there is no Chromium on this machine")
    assert int(passed[1]) > 0


def test_what_is_published_has_types_and_runs_without_this_repository(built: Path, tmp_path: Path) -> None:
    listed = run("pack", "--json", "--pack-destination", str(tmp_path), executable=npm())
    assert listed.returncode == 0, listed.stderr
    packed = json.loads(listed.stdout)[0]
    names = {entry["path"] for entry in packed["files"]}
    assert {"dist/index.js", "dist/index.d.ts", "package.json", "README.md"} <= names
    assert not [name for name in names if name.startswith(("src/", "test/"))]
    project = tmp_path / "project"
    installed = project / "node_modules" / "gradwire"
    installed.mkdir(parents=True)
    shutil.unpack_archive(tmp_path / packed["filename"], tmp_path / "unpacked", "gztar")
    shutil.copytree(tmp_path / "unpacked" / "package", installed, dirs_exist_ok=True)
    shutil.copytree(PACKAGE / "node_modules" / "@msgpack", project / "node_modules" / "@msgpack")
    (project / "package.json").write_text('{"type": "module"}')
    (project / "first.ts").write_text(PROGRAM)
    compiler = {"strict": True, "module": "nodenext", "target": "es2022", "noEmit": True, "types": []}
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": compiler}))
    checked = run(tool("tsc"), "-p", str(project))
    assert checked.returncode == 0, checked.stdout
    with server_process() as server:
        for executable in every_node():
            assert gradient(executable, project, server) == "[[0.5,1],[1.5,2]]"
        options: dict[str, Any] = {"entryPoints": [str(project / "first.mjs")], "outfile": str(project / "bundle.mjs")}
        options |= {"bundle": True, "minify": True, "format": "esm"}
        bundle = f'import {{ build }} from "esbuild"; await build({json.dumps(options)});'
        bundled = run("--input-type=module", "--eval", bundle)
        assert bundled.returncode == 0, bundled.stderr
        assert gradient(every_node()[0], project, server, "bundle.mjs") == "[[0.5,1],[1.5,2]]"


PROGRAM = """\
import * as gw from "gradwire";

await using session = await gw.connect();
const x: gw.Tensor = gw.tensor([[1, 2], [3, 4]], { requiresGrad: true });
x.pow(2).mean().backward();
const gradient: gw.Nested = await x.grad!.toArray();
// @ts-expect-error: a string is no operand
const refused = () => x.add("two");
void [session, refused, gradient];
"""


def gradient(executable: str, project: Path, server: LiveServer, file: str = "first.mjs") -> str:
    """What a program in plain JavaScript prints, run by this Node."""
    program = (
        'import * as gw from "gradwire"; const session = await gw.connect();'
        "const x = gw.tensor([[1, 2], [3, 4]], { requiresGrad: true }); x.pow(2).mean().backward();"
        "console.log(JSON.stringify(await x.grad.toArray())); await session.close();"
    )
    (project / "first.mjs").write_text(program)
    variables = environment(GRADWIRE_URL=server.url, GRADWIRE_API_KEY=server.api_key)
    done = subprocess.run(
        [executable, file], cwd=project, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def every_node() -> list[str]:
    """Node of this environment, and the system's, which may be older and know no WebSocket."""
    found = [shutil.which("node", path=environment()["PATH"]), shutil.which("node")]
    version = re.compile(r"v(\d+)")
    usable = []
    for executable in dict.fromkeys(each for each in found if each):
        told = subprocess.run([executable, "--version"], capture_output=True, text=True, check=True).stdout
        matched = version.match(told)
        if matched is not None and int(matched[1]) >= 20:
            usable.append(executable)
    return usable


def npm() -> str:
    """npm, which comes with Node."""
    found = shutil.which("npm", path=environment()["PATH"])
    assert found is not None
    return found
