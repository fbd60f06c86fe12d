"""``gradwire run`` runs a program that says ``import torch`` as Python does, with gradwire in place of torch."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.live_server import SOURCES, live_server

import gradwire
from gradwire.cli.running.command import WrongUsage, parse
from gradwire.cli.running.names import ELSEWHERE, counterpart


@pytest.fixture(scope="module")
def server():
    with live_server() as running:
        yield running


@pytest.fixture
def start(server, tmp_path):
    """A function that runs ``python -m gradwire run`` in an empty folder, with files put there before."""

    def run(*arguments: str, files: dict[str, str] | None = None, **environment: str):
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(textwrap.dedent(text))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("GRADWIRE_", "PYTHON"))}
        known = {"PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
        command = [sys.executable, "-m", "gradwire", "run", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=inherited | known | environment, capture_output=True, text=True, timeout=400,
            check=False,
        )  # fmt: skip

    return run


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# What the program sees

IDENTITY = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim.lr_scheduler
import torch.utils.checkpoint
from torch import Tensor, optim
from torch.nn.modules.batchnorm import BatchNorm2d
from torch.nn.modules.conv import Conv2d
from torch.nn.parameter import Parameter
from torch.optim import Adam
import gradwire

assert sys.modules["torch.nn"] is gradwire.nn is torch.nn is nn
assert sys.modules["torch.nn.functional"] is F is nn.functional
assert torch.optim is optim and optim.Adam is Adam
assert Tensor is torch.Tensor is gradwire.Tensor and Parameter is nn.Parameter
assert Conv2d is nn.Conv2d and BatchNorm2d is nn.BatchNorm2d
from torch.autograd.gradcheck import gradcheck
import torch.autograd.gradcheck
assert torch.autograd.gradcheck is gradcheck is gradwire.autograd.gradcheck and callable(gradcheck)
assert nn.__spec__.name == "gradwire.nn"
x = torch.tensor([1.0, 2.0], dtype=torch.float32)
assert isinstance(x, torch.Tensor) and isinstance(x.shape, torch.Size) and isinstance(x.dtype, torch.dtype)
assert isinstance(x.device, torch.device) and isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
assert issubclass(nn.Parameter, torch.Tensor) and torch.float is torch.float32
assert torch.Tensor([1, 2]).dtype is torch.float32 and torch.LongTensor([3]).dtype is torch.int64
assert torch.__version__.startswith("2.") and torch.version.__version__ == torch.__version__
assert "nn" in dir(torch) and "tensor" in torch.__all__ and "session" not in dir(torch)
assert "/site-packages/torch" not in str([getattr(m, "__file__", "") for m in list(sys.modules.values())])
print(x)
"""


def test_modules_and_types_are_gradwires_and_the_same_everywhere(start):
    assert printed(start("program.py", files={"program.py": IDENTITY})) == "tensor([1., 2.])\n"


ABSENT = """
import torch

def told(attempt):
    try:
        attempt()
    except NotImplementedError as error:
        print(isinstance(error, (AttributeError, ImportError)), error)

def fails(code):
    told(lambda: exec(code))

x = torch.ones(1)
fails("torch.slice_inverse(x, x)")
fails("torch.nn.Invented()")
fails("torch.nn.functional.invented(x)")
fails("x.slice_inverse(x)")
fails("import torch.utils.benchmark")
fails("from torch import slice_inverse")
fails("from torch.nn import Invented")
fails("from torch.nn.modules.conv import Invented")
fails("torch.jit.invented(fails)")
fails("import torch.session")
assert not hasattr(torch, "invented") and not hasattr(torch.nn, "Invented") and not hasattr(x, "invented")
assert getattr(torch, "invented", 3) == 3 and not hasattr(torch, "session")
assert torch.distributed.is_available() and not torch.backends.mps.is_available()
try:
    import torch.utils.benchmark
except ImportError:
    print("fell back")
"""


def test_what_is_lacking_is_told_by_its_name_and_can_be_asked_for(start):
    lines = printed(start("program.py", files={"program.py": ABSENT})).splitlines()
    names = [
        "torch.slice_inverse", "torch.nn.Invented", "torch.nn.functional.invented", "Tensor.slice_inverse",
        "torch.utils.benchmark", "torch.slice_inverse", "torch.nn.Invented", "torch.nn.modules.conv.Invented",
        "torch.jit.invented", "torch.session",
    ]  # fmt: skip
    for line, name in zip(lines, names, strict=False):
        assert line.startswith(f"True {name} does not exist in gradwire"), line
        assert Path(unquote(urlsplit(re.search(r"file://\S+", line)[0]).path)).is_file(), line
    assert lines[len(names) :] == ["fell back"]


def test_gradwire_itself_tells_what_it_lacks():
    with pytest.raises(NotImplementedError, match="slice_inverse"):
        gradwire.slice_inverse()
    assert not hasattr(gradwire, "slice_inverse")
    assert not hasattr(gradwire.ones(1), "invented")


def test_the_nearest_name_is_suggested():
    for mention, name in {
        lambda: gradwire.softmx: "gradwire.softmax",
        lambda: gradwire.nn.Liner: "gradwire.nn.Linear",
        lambda: gradwire.nn.functional.leaky_rel: "gradwire.nn.functional.leaky_relu",
    }.items():
        with pytest.raises(AttributeError, match=re.escape(f"the nearest name is {name})")):
            mention()
    with pytest.raises(AttributeError) as caught:
        gradwire.nothing_like_it
    assert "nearest" not in str(caught.value)


def test_every_counterpart_in_the_table_exists():
    assert {name for name in ELSEWHERE if counterpart(name) is None} == set()
    for name in ("session", "nn._private", "cli", "_core", "viz", "aio", "nn.invented", "linalg.invented"):
        assert counterpart(name) is None


# As Python runs it


def test_a_script_gets_its_arguments_its_name_and_its_folder(start):
    text = """
        import sys
        print(__name__, __file__, sys.argv, sys.path[0])
        import neighbour
        assert not any("startup" in entry for entry in sys.path)
    """
    done = start("sub/program.py", "--lr", "0.1", "-m", "x", files={"sub/program.py": text, "sub/neighbour.py": ""})
    path = re.escape(os.sep + "sub")
    assert re.fullmatch(
        rf"__main__ \S*sub/program\.py \['sub/program\.py', '--lr', '0\.1', '-m', 'x'\] \S*{path}\n", printed(done)
    )


def test_a_module_of_a_package_is_run_with_its_arguments(start):
    files = {
        "package/__init__.py": "",
        "package/other.py": "value = 7",
        "package/train.py": """
            import sys
            import torch
            from .other import value
            print(__name__, __package__, sys.argv[1:], torch.tensor(value).item())
        """,
    }
    assert printed(start("-m", "package.train", "--steps", "3", files=files)) == (
        "__main__ package ['--steps', '3'] 7\n"
    )


def test_code_is_run(start):
    assert printed(start("-c", "import torch, sys; print(torch.ones(2).sum().item(), sys.argv)", "a")) == (
        "2.0 ['-c', 'a']\n"
    )


def test_a_traceback_begins_with_the_programs_own_lines(start):
    text = """
        import torch
        def broken(x):
            return x @ torch.ones(5)
        broken(torch.ones(2, 3))
    """
    done = start("program.py", files={"program.py": text})
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert re.fullmatch(r'  File "\S*program\.py", line 5, in <module>', lines[1])
    assert 'program.py", line 4, in broken' in done.stderr
    assert lines[-2].startswith("gradwire_protocol.errors.ShapeError") and "GRADWIRE_TRACEBACK=full" in lines[-1]
    own = start("program.py", files={"program.py": "1 / 0"})
    assert own.stderr.count("File ") == 1 and own.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [("raise SystemExit(7)", 7, ""), ("import sys; sys.exit('no data')", 1, "no data\n"), ("exit()", 0, ""),
     ("import os; os._exit(5)", 5, "")],
)  # fmt: skip
def test_exit_codes_are_the_programs(start, code, status, said):
    done = start("program.py", files={"program.py": code})
    assert (done.returncode, done.stderr) == (status, said)


def test_a_syntax_error_and_an_absent_file_are_told_as_python_tells_them(start):
    done = start("program.py", files={"program.py": "x ="})
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "gradwire" not in done.stderr
    done = start("absent.py")
    assert done.returncode == 2 and "can't open file" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_program_as_it_ends_python(server, tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch, time\nx = torch.ones(1)\nprint(x.item(), flush=True)\ntime.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    process = subprocess.Popen(
        [sys.executable, "-m", "gradwire", "run", "program.py"], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "1.0\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert told.splitlines()[-1] == "KeyboardInterrupt" and 'program.py", line 4' in told


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_program_that_catches_an_interrupt_can_still_compute_on_its_own_server(tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch, time\nx = torch.ones(3)\n"
        "try:\n    print(x.sum().item(), flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n"
        "    time.sleep(0.5)\n    print((x * 2).sum().item())\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")} | {"PYTHONPATH": SOURCES}
    process = subprocess.Popen(
        [sys.executable, "-m", "gradwire", "run", "program.py"], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "3.0\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.communicate(timeout=120) == ("6.0\n", "") and process.returncode == 0
    finally:
        process.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_a_forked_child_computes_in_a_session_of_its_own_and_leaves_its_parents_alone(start, end):
    text = f"""
        import os, sys
        import torch
        x = torch.ones(3)
        print(x.sum().item(), flush=True)
        child = os.fork()
        if not child:
            try:
                x + 1
            except RuntimeError:
                print("not mine", flush=True)
            print((torch.ones(4) * 2).sum().item(), flush=True)
            {end}
        assert os.waitpid(child, 0)[1] == 0
        print((x * 5).sum().item())
    """
    for where in ({}, {"GRADWIRE_URL": "", "GRADWIRE_API_KEY": ""}):  # a server elsewhere, and the embedded one
        assert printed(start("program.py", files={"program.py": text}, **where)) == "3.0\nnot mine\n8.0\n15.0\n"


def test_programs_that_it_starts_see_gradwire_too(start):
    text = """
        import subprocess, sys
        code = "import torch, sys; print(torch.__version__); assert 'gradwire' in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)
    """
    assert "+gradwire" in printed(start("program.py", files={"program.py": text}))


def test_the_machines_own_sitecustomize_is_loaded_too(start, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import os\nos.environ['MINE'] = 'yes'\n")
    path = os.pathsep.join([str(tmp_path / "site"), SOURCES])
    code = "import os, sitecustomize, torch; print(os.environ['MINE'], sitecustomize.__file__, torch.ones(1).item())"
    told = printed(start("-c", code, PYTHONPATH=path))
    assert told == f"yes {tmp_path / 'site' / 'sitecustomize.py'} 1.0\n"


def test_a_program_without_torch_does_not_load_gradwire(start):
    assert printed(start("-c", "import sys; print('gradwire' in sys.modules, 'numpy' in sys.modules)")) == (
        "False False\n"
    )


def test_the_interpreters_own_options_stay(server, tmp_path):
    environment = {**os.environ, "PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    command = [sys.executable, "-W", "error", "-m", "gradwire", "run", "-c", "import warnings; warnings.warn('x')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 1 and "UserWarning: x" in done.stderr
    done = subprocess.run(
        [sys.executable, "-S", *command[3:]], env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode != 0


# The program's log


def test_the_log_of_a_program_holds_its_own_lines_alone(start):
    code = (
        "import logging, sys; logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)\n"
        "import torch; logging.info('begins'); x = torch.ones(3); logging.debug('sum %s', x.sum().item())"
    )
    assert printed(start("-c", code)) == "INFO:root:begins\nDEBUG:root:sum 3.0\n"


def test_what_a_program_requests_itself_is_logged(start, server):
    code = (
        "import logging, sys; logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(name)s')\n"
        f"import torch, httpx; torch.ones(3).sum().item(); httpx.get({server.url!r} + '/v1/health')"
    )
    assert printed(start("-c", code)) == "httpx\n"


# The command's own options


def test_the_programs_random_numbers_are_its_own(start):
    code = """
    import random, torch
    random.seed(4)
    torch.ones(2).sum().item()
    found = [random.random() for _ in range(3)]
    random.seed(4)
    print(found == [random.random() for _ in range(3)])
    """
    assert printed(start("program.py", files={"program.py": code})) == "True\n"


def test_stats_tell_what_it_cost_at_the_end(start):
    code = "import torch; x = torch.ones(3); print(x.sum().item()); print((x * 2).sum().item())"
    done = start("--stats", "-c", code)
    assert printed(done) == "3.0\n6.0\n"
    told = dict(pair.split("=") for pair in done.stderr.strip().split("gradwire run: ")[1].split())
    assert int(told["round_trips"]) == 2 and int(told["frames"]) == 2 and int(told["ops"]) == 4
    assert int(told["bytes_sent"]) > 0 and int(told["bytes_received"]) > 0 and float(told["seconds"]) > 0


def test_stats_are_told_once_and_also_when_the_program_fails(start):
    text = "import subprocess, sys, torch\nsubprocess.run([sys.executable, '-c', 'import torch'])\n1 / 0\n"
    done = start("--stats", "program.py", files={"program.py": text})
    assert done.returncode == 1 and done.stderr.count("gradwire run: ops=") == 1
    assert done.stderr.index("ZeroDivisionError") < done.stderr.index("gradwire run:")


def test_a_device_is_chosen_for_new_tensors(start):
    code = "import torch; print(torch.get_default_device(), torch.ones(1).device)"
    assert printed(start("--device", "cpu", "-c", code)) == "cpu cpu\n"
    done = start("--device=cuda", "-c", "import torch; torch.ones(1)")
    assert done.returncode == 1 and "DeviceError: the server has no device cuda:0: it has cpu" in done.stderr


def test_options_end_where_the_program_begins():
    wanted = parse(["--url", "http://x", "--device=cuda", "a.py", "--stats"])
    assert wanted.program == ["a.py", "--stats"]
    assert wanted.variables == {"GRADWIRE_URL": "http://x", "GRADWIRE_RUN_DEVICE": "cuda"}
    assert not wanted.ranks
    assert parse(["-m", "pkg", "--url"]).program == ["-m", "pkg", "--url"]
    assert parse(["--", "a.py"]).program == ["a.py"]
    for wrong in ([], ["-m"], ["--url"], ["--wrong", "a.py"], ["-x", "a.py"], ["--stats"], ["--stats=1", "a.py"]):
        with pytest.raises(WrongUsage):
            parse(wrong)


def test_help_and_wrong_usage(start):
    assert "gradwire run [OPTIONS] program.py" in printed(start("--help"))
    done = start("--wrong", "program.py")
    assert done.returncode == 2 and "unknown option --wrong" in done.stderr


def test_torch_imported_before_is_not_replaced():
    import torch  # noqa: F401

    from gradwire.cli.running import replace_torch

    before = list(sys.meta_path)
    with pytest.raises(RuntimeError, match="already imported"):
        replace_torch()
    assert sys.meta_path == before


def test_the_startup_folder_holds_nothing_but_the_hook():
    folder = Path(sys.modules["gradwire"].__file__).parent / "cli" / "running" / "startup"
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {"sitecustomize.py"}


METADATA = """
import importlib.metadata as metadata
import importlib.util
import sys

assert metadata.version("torch") == metadata.distribution("Torch").version and metadata.requires("torch") is None
assert "torch" in metadata.packages_distributions()["torch"]
assert "torch" in [found.metadata["Name"] for found in metadata.distributions()]
assert not list(metadata.distribution("torch").entry_points)
assert "gradwire" not in sys.modules
assert importlib.util.find_spec("torch").origin.endswith("__init__.py")
import torch
from packaging import version

assert metadata.version("torch") == torch.__version__ == str(torch.version.__version__)
assert version.parse(torch.__version__).base_version == "2.13.0" and torch.__version__ >= (2, 13) > (2, 1)
assert torch.__file__ == torch.__spec__.origin and torch.__spec__.submodule_search_locations == torch.__path__
assert torch.version.cuda is None and torch.version.debug is False and isinstance(torch.version.git_version, str)
assert isinstance(torch.__config__.show(), str)
assert importlib.util.find_spec("torch.nn") is not None and importlib.util.find_spec("torch.nn.invented") is None
"""


def test_torch_looks_like_an_installed_package(start):
    printed(start("program.py", files={"program.py": METADATA}))


def test_a_process_replaces_torch_by_itself(server):
    code = """
        import gradwire
        gradwire.replace_torch()
        gradwire.replace_torch()
        import torch, torch.nn.functional as F
        assert torch.nn is gradwire.nn and F.relu(torch.tensor([-1.0])).item() == 0
    """
    environment = {**os.environ, "PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, check=True, timeout=400)
