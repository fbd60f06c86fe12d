"""Versions that are not supported, servers that cannot be reached, and keys that they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live_server import SOURCES, LiveServer, live_server


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program with this environment, in which PyTorch does not register the device by itself."""
    environment = {
        "PYTHONPATH": SOURCES, "GRADWIRE_COMPILED_KERNELS": "off", "PATH": os.environ["PATH"],
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables,
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as found:
        yield found


HINDRANCES = {
    "needs PyTorch 2.13; this is 2.14.1": 'torch.__version__ = torch.torch_version.TorchVersion("2.14.1")',
    "one device of its kind at a time, which is other": 'torch.utils.rename_privateuse1_backend("other")',
}


@pytest.mark.parametrize("text", HINDRANCES)
def test_where_it_cannot_be_a_device_it_warns_and_there_is_none(text: str) -> None:
    done = run(f"""
import torch, warnings
{HINDRANCES[text]}
import gradwire_torch
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    gradwire_torch.register()
assert [one.category for one in found] == [RuntimeWarning]
assert {text!r} in str(found[0].message), found[0].message
try:
    torch.ones(2, device="gradwire")
except RuntimeError as error:
    assert "gradwire" in str(error)
else:
    raise AssertionError("the device exists")
assert not hasattr(torch, "gradwire") and torch.ones(2).sum() == 2
""")
    assert done.returncode == 0, done.stderr


def test_importing_pytorch_warns_and_goes_on_without_the_device(tmp_path: Path) -> None:
    """As at ``import torch``, which finds the entry point; it is taken here from a folder of metadata."""
    found = tmp_path / "gradwire_faked-1.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: gradwire-faked\nVersion: 1\n")
    (found / "entry_points.txt").write_text("[torch.backends]\ngradwire_faked = gradwire_torch:register\n")
    done = run(
        """
import warnings
import gradwire_torch
gradwire_torch.SUPPORTED = "1.0"
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    import torch
assert any("needs PyTorch 1.0" in str(one.message) for one in found), found
assert torch.ones(2).sum() == 2 and not hasattr(torch, "gradwire")
""",
        PYTHONPATH=os.pathsep.join((str(tmp_path), SOURCES)), TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_server_that_cannot_be_reached_is_a_typed_error() -> None:
    done = run(
        """
import torch, gradwire_torch
gradwire_torch.register()
assert torch.ones(2).sum() == 2
for _ in range(2):
    try:
        torch.randn(3, device="gradwire")
    except Exception as error:
        import gradwire
        assert type(error) is gradwire.Unavailable, repr(error)
        assert "127.0.0.1:1" in str(error), error
    else:
        raise AssertionError("there is a server")
""",
        GRADWIRE_URL="http://127.0.0.1:1",
        GRADWIRE_API_KEY="key",
    )
    assert done.returncode == 0, done.stderr


def test_a_key_that_the_server_refuses_is_a_typed_error(server: LiveServer) -> None:
    done = run(
        """
import torch, gradwire_torch
gradwire_torch.register()
try:
    torch.nn.Linear(2, 2).to("gradwire")
except Exception as error:
    import gradwire
    assert type(error) is gradwire.Unauthorized, repr(error)
else:
    raise AssertionError("the key was accepted")
""",
        GRADWIRE_URL=server.url,
        GRADWIRE_API_KEY="gw_wrong",
    )
    assert done.returncode == 0, done.stderr


def test_a_program_reaches_the_server_of_its_variables(server: LiveServer) -> None:
    done = run(
        """
import torch, gradwire_torch
gradwire_torch.register()
x = torch.ones(2, device="gradwire")
assert (x + x).tolist() == [2, 2]
import gradwire, httpx, os
where = os.environ["GRADWIRE_URL"] + "/v1/sessions/" + gradwire.current_session().id
found = httpx.get(where, headers={"Authorization": "Bearer " + os.environ["GRADWIRE_API_KEY"]})
assert found.json()["contents"]["frames_applied"] >= 1
""",
        GRADWIRE_URL=server.url,
        GRADWIRE_API_KEY=server.api_key,
    )
    assert done.returncode == 0, done.stderr
