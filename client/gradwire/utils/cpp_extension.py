"""``torch.utils.cpp_extension``: building code against PyTorch's C++ library, which gradwire has not."""

from __future__ import annotations

import shutil

from .._core.surface import stand_ins

CUDA_HOME = ROCM_HOME = CUDNN_HOME = SYCL_HOME = HIP_HOME = None
"""The folders of compilers for GPUs: none are used."""
IS_WINDOWS = IS_MACOS = IS_LINUX = IS_HIP_EXTENSION = False
"""What PyTorch's library was built for: there is none."""


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers: none."""
    return []


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: str | None = None
                  ) -> list[str]:  # fmt: skip
    """The folders of libraries: none."""
    return []


def is_ninja_available() -> bool:
    """Whether the build tool ninja is installed."""
    return shutil.which("ninja") is not None


stand_ins.fill(
    __name__,
    ("BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "check_compiler_is_gcc",
     "check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version", "get_cxx_compiler",
     "get_default_build_root", "load", "load_inline", "remove_extension_h_precompiler_headers",
     "verify_ninja_availability"),
    "code that is compiled for PyTorch does not run; torch.library registers Python functions as operations",
)  # fmt: skip
