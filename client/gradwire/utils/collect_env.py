"""``torch.utils.collect_env``: what a program runs on, for a report; also as a command."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import distributions
from typing import NamedTuple

from .._core.context.version import __version__


class SystemEnv(NamedTuple):
    """What a program runs on. Fields that say something of a build of PyTorch are None or N/A."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    pip_version: str | None
    pip_packages: str
    cpu_info: str


def get_env_info() -> SystemEnv:
    """What this program runs on, and whether the server has a GPU."""
    from .. import cuda

    named = {str(found.metadata["Name"]).lower(): found.version for found in distributions() if found.metadata["Name"]}
    shown = ("gradwire", "numpy", "safetensors", "torch", "torchaudio", "torchvision", "torchmetrics", "lightning")
    pip = named.get("pip")
    return SystemEnv(
        torch_version=f"gradwire {__version__}", is_debug_build="False", cuda_compiled_version="None",
        gcc_version=None, clang_version=None, cmake_version=None, os=platform.platform(),
        libc_version="-".join(part for part in platform.libc_ver() if part) or "N/A",
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", ""),
        python_platform=platform.platform(), is_cuda_available=str(cuda.is_available()),
        pip_version=f"pip {pip}" if pip else None,
        pip_packages="\n".join(f"[pip3] {name}=={named[name]}" for name in shown if name in named),
        cpu_info=f"{platform.machine()} {platform.processor()}".strip(),
    )  # fmt: skip


def get_pretty_env_info() -> str:
    """What this program runs on, as text."""
    info = get_env_info()
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in info._asdict().items() if name != "pip_packages"]
    return "\n".join([*lines, "", "Versions of relevant libraries:", info.pip_packages or "none"])


def main() -> None:
    """Print what this program runs on."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
