"""The guarantees of the Dockerfiles, read from their text. docker/test.sh builds and runs the image."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradwire_server.settings.settings import PREFIX, Settings, variable
from tests.live_server import ROOT, SOURCES

DOCKER = ROOT / "docker"
IMAGES = ("cpu", "cuda")
USER = "10001:10001"
OF_SETTINGS = {variable(name) for name in Settings.model_fields}


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str


def instructions(image: str) -> list[Instruction]:
    """The instructions of a Dockerfile, each on one line, without comments."""
    text = (DOCKER / f"{image}.Dockerfile").read_text(encoding="utf-8")
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", text)
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def stages(image: str) -> list[list[Instruction]]:
    """The instructions of each stage, its FROM first."""
    found: list[list[Instruction]] = []
    for each in instructions(image):
        if each.word == "FROM":
            found.append([])
        if found:
            found[-1].append(each)
    return found


def only(stage: list[Instruction], word: str) -> str:
    (found,) = [each.rest for each in stage if each.word == word]
    return found


def environment(stage: list[Instruction]) -> dict[str, str]:
    return dict(pair.split("=", 1) for each in stage if each.word == "ENV" for pair in each.rest.split())


@pytest.mark.parametrize("image", IMAGES)
def test_the_base_is_an_argument_and_every_stage_stands_on_it(image) -> None:
    first = instructions(image)[0]
    assert (first.word, first.rest.split("=")[0]) == ("ARG", "BASE_IMAGE")
    assert ":" in first.rest
    assert [stage[0].rest.split()[0] for stage in stages(image)] == ["${BASE_IMAGE}", "base", "base"]


@pytest.mark.parametrize("image", IMAGES)
def test_the_last_stage_runs_as_a_fixed_user_and_installs_nothing(image) -> None:
    last = stages(image)[-1]
    assert only(last, "USER") == USER
    assert not [each for each in last if each.word == "RUN" and re.search(r"apt-get|pip install|pip wheel", each.rest)]
    assert [each.rest for each in last if each.word == "COPY"] == ["--from=build /opt/gradwire /opt/gradwire"]
    words = [each.word for each in last]
    assert "RUN" not in words[words.index("USER") :]


@pytest.mark.parametrize("image", IMAGES)
def test_process_one_is_the_server_without_a_shell(image) -> None:
    last = stages(image)[-1]
    assert json.loads(only(last, "ENTRYPOINT")) == ["gradwire-server"]
    assert only(last, "STOPSIGNAL") == "SIGTERM"
    command = only(last, "HEALTHCHECK").split("CMD", 1)[1]
    assert json.loads(command) == ["python", "-m", "gradwire_server.health", "/readyz"]


@pytest.mark.parametrize("image", IMAGES)
def test_variables_of_an_image_are_settings_with_values_that_hold(image, monkeypatch) -> None:
    given = {name: value for name, value in environment(stages(image)[-1]).items() if name.startswith(PREFIX)}
    assert given.keys() <= OF_SETTINGS
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (settings.host, settings.port, settings.data_dir) == ("0.0.0.0", 8000, Path("/data"))
    assert settings.session_host == "process"
    last = stages(image)[-1]
    assert (only(last, "VOLUME"), only(last, "EXPOSE")) == ("/data", "8000")


def test_both_images_are_made_by_the_same_instructions() -> None:
    """They differ in the base, in what CUDA needs beside it, and in their name."""
    cpu, cuda = ([f"{each.word} {' '.join(each.rest.split())}" for each in instructions(image)[1:]] for image in IMAGES)
    cuda = [line for line in cuda if "apt-get" not in line and not line.startswith("ARG CUDA_HEADERS")]
    extra = "CUPY_CACHE_DIR=/data/cupy NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    changes = (
        ("ARG EXTRAS=cuda12", "ARG EXTRAS=server"), ('"${CUDA_HEADERS}" ', ""), ("gradwire-cuda", "gradwire"),
        (extra, ""),
    )  # fmt: skip
    for there, here in changes:
        assert sum(there in line for line in cuda) == 1
        cuda = [line.replace(there, here).rstrip() for line in cuda]
    assert cuda == cpu


@pytest.mark.parametrize(("image", "extras"), [("cpu", "server"), ("cuda", "cuda12")])
def test_the_extras_are_an_argument_and_exist(image, extras) -> None:
    build = stages(image)[1]
    assert f"EXTRAS={extras}" in [each.rest for each in build if each.word == "ARG"]
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    heads = "".join(line for line in (DOCKER / f"{image}.Dockerfile").read_text(encoding="utf-8").splitlines(True)
                    if line.startswith("#"))  # fmt: skip
    named = {each for value in (extras, *re.findall(r"EXTRAS=([\w,]+)", heads)) for each in value.split(",")}
    assert "cluster" in named
    assert named <= known.keys()


@pytest.mark.parametrize("image", IMAGES)
def test_a_login_shell_finds_the_image_s_commands(image) -> None:
    """KubeRay starts Ray by ``bash -lc``, and /etc/profile sets PATH anew."""
    (made,) = [each.rest for each in stages(image)[-1] if each.word == "RUN"]
    line = re.findall(r"echo '(.*)' >/etc/profile\.d/\w+\.sh", made)
    assert line == ["PATH=/opt/gradwire/bin:$PATH"]


def test_the_builder_is_sent_nothing_but_what_is_named() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    named = {pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")}
    absent = {"docker/wheels"}
    assert all((ROOT / path).exists() for path in named - absent)
    assert named - absent == {
        "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "protocol/gradwire_protocol",
        "engine/gradwire_engine", "server/gradwire_server", "client/gradwire", "client/gradwire_torch",
    }  # fmt: skip


def test_keys_for_a_server_are_printed_once_and_kept_as_hashes(tmp_path) -> None:
    command = [str(DOCKER / "keys.sh"), str(tmp_path / "secrets")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    keys = dict(line.replace(":", "").split() for line in printed.splitlines())
    assert keys.keys() == {"api_keys", "admin_keys"}
    for name, key in keys.items():
        path = tmp_path / "secrets" / name
        assert path.read_text() == f"sha256:{hashlib.sha256(key.encode()).hexdigest()}\n"
        assert path.stat().st_mode & 0o777 == 0o444
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "nothing was changed" in again.stderr


@pytest.mark.parametrize("script", ["test.sh", "keys.sh", "fleet_secrets.sh"])
def test_the_scripts_can_be_read_by_the_shell(script) -> None:
    subprocess.run(["bash", "-n", str(DOCKER / script)], check=True)
    assert (DOCKER / script).stat().st_mode & 0o111


def test_without_an_engine_the_test_of_the_image_says_so_and_is_no_failure(tmp_path) -> None:
    """No engine answers, and none is on this path to be started."""
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/docker.sock", "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [str(DOCKER / "test.sh")], capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, **nowhere, "PYTHON": sys.executable, "PYTHONPATH": SOURCES},
    )  # fmt: skip
    assert done.returncode == 77, done.stdout + done.stderr
    assert "cannot be tested here" in done.stderr
    assert not list(tmp_path.iterdir())
