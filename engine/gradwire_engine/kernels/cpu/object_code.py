"""Kernels from their object code alone. Imports Numba.

Numba loads a kernel from its cache together with the LLVM module that other kernels could be linked with. It parses
that module and walks over its values several times, which takes 9 ms, and before the first one it imports everything
that it can compile, SciPy's linear algebra among it, which takes 0.6 s. A call needs the object code only, which LLVM
places in memory within a millisecond.

So the process that compiles a module (:mod:`.toolchain`) leaves the object code of its kernels in a folder
``objects``, one file per kernel and dtype. What is in a file is not Numba's public interface and LLVM ends a process
that it cannot place object code in. Therefore a forked child tries all of them first, and the folder appears only if
that went well. Without it, or where a file cannot be used, a kernel is loaded as Numba does it. What may be missing in
another Numba is imported where it is used, so that only this way fails there.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import llvmlite.binding
import msgspec
import numba
import numpy as np
from numba.core.typing.templates import Signature

Kernel = Callable[..., Any]

log = logging.getLogger("gradwire.compiled")

_FOLDER: Final = "objects"


class EnvironmentFacts(msgspec.Struct, array_like=True, frozen=True):
    """An environment: an object of Numba that machine code has a pointer to.

    Attributes:
        module: whose globals it has.
        name: of the pointer in the code.
        dtypes: the names of its constants, which are dtypes.
    """

    module: str
    name: str
    dtypes: tuple[str, ...]


class Code(msgspec.Struct, array_like=True, frozen=True):
    """What is in a file.

    Attributes:
        data: an object file.
        entry: its function that is called.
        environments: what the code has pointers to, the entry's own first.
        called: object files of functions that it calls.
    """

    data: bytes
    entry: str
    environments: tuple[EnvironmentFacts, ...]
    called: tuple[bytes, ...] = ()


_decoder: Final = msgspec.msgpack.Decoder(Code)


class Compiled(NamedTuple):
    """A kernel that this process has compiled, for one dtype."""

    key: str
    code: Callable[[], Code]


_compiled: list[Compiled] | None = None
_engine: Any = None


# Keeping


@contextmanager
def noting() -> Iterator[list[Compiled]]:
    """The list of all kernels that are compiled meanwhile."""
    global _compiled
    _compiled = []
    try:
        yield _compiled
    finally:
        _compiled = None


def note(key: str, code: Callable[[], Code]) -> None:
    """A kernel was compiled."""
    if _compiled is not None:
        _compiled.append(Compiled(key, code))


def code_of(result: Any) -> Code:
    """The object code of a kernel that Numba has compiled or loaded (a ``CompileResult``).

    Raises:
        ValueError: when the code would not do by itself.
    """
    (_, kind, (data, _)), description, own, _, in_python, lifted, _, initial, others = result._reduce()
    if kind != "object" or in_python or lifted or initial:
        raise ValueError(f"{description.qualname} needs more than its object code")
    # An environment without constants is not looked at: nothing in it is needed.
    environments = [own, *(each for each in others if each.consts and each is not own)]
    return Code(data, description.llvm_cpython_wrapper_name, tuple([_facts(each) for each in environments]))


def _facts(environment: Any) -> EnvironmentFacts:
    module, constants, name = environment.globals["__name__"], environment.consts, environment.env_name
    if not all(isinstance(constant, np.dtype) for constant in constants):
        raise ValueError(f"{name} has constants that are not dtypes")
    return EnvironmentFacts(module, name, tuple([constant.str for constant in constants]))


def loop_of(ufunc: Any, signature: Signature) -> Code:
    """The object code of a loop of a ufunc that Numba has compiled."""
    from numba.np.ufunc.wrappers import build_ufunc_wrapper

    result = ufunc._dispatcher.overloads[signature]
    context, description = result.target_context, result.fndesc
    build: Any = build_ufunc_wrapper
    built = build(result.library, context, description.llvm_func_name, signature, False, result)
    data = context.codegen()._tm.emit_object(built.library._final_module)
    (_, _, (function, _)), *_ = result._reduce()
    return Code(data, built.name, (_facts(result.environment),), (function,))


def keep(place: Path, compiled: Sequence[Compiled]) -> None:
    """Leave the object code of kernels in the folder of their module, if all of it can be used by itself."""
    made = place / f"{_FOLDER}.{os.getpid()}"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    try:
        for key, code in compiled:
            (made / key).write_bytes(msgspec.msgpack.encode(code()))
        if _can_be_placed(made):
            made.rename(place / _FOLDER)
    except Exception as error:  # of another Numba, of any kind: its own way remains
        log.info("kernels of %s are kept without their object code: %r", place.name, error)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _can_be_placed(folder: Path) -> bool:
    """Whether LLVM can place all code of a folder; tried by a child, since it ends the process if not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other threads: the child does not need what they might hold
        child = os.fork()
    if child == 0:
        status = 1
        try:
            for file in folder.iterdir():
                _placed(file)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


# Loading


def kept(place: Path) -> Path | None:
    """The folder of the object code of a module, if there is one."""
    folder = place / _FOLDER
    return folder if folder.is_dir() else None


def dispatcher(file: Path, function: Kernel, signature: Signature, options: dict[str, Any]) -> Any:
    """A kernel as Numba's dispatcher with one signature, which checks the arguments of calls.

    Raises:
        Exception: of any kind, when the file cannot be used.
    """
    from numba import _dynfunc  # type: ignore[attr-defined]
    from numba.core.compiler import compile_result

    result: Any = compile_result
    address, environments = _placed(file)
    own = environments[0]
    module = sys.modules[function.__module__]
    name, keeps = function.__name__, (_engine, environments)
    entry = _dynfunc.make_function(module, name, f"compiled {name}", address, own, keeps)
    made = numba.njit(**options)(function)
    made.add_overload(result(entry_point=entry, signature=signature, objectmode=False, environment=own))
    made.disable_compile()
    return made


def ufunc(file: Path, function: Kernel, dtype: np.dtype[Any], operands: int) -> Any:
    """A function of so many numbers as NumPy's ufunc with one loop.

    Raises:
        Exception: of any kind, when the file cannot be used.
    """
    from numba.np.ufunc import _internal  # type: ignore[attr-defined]

    address, environments = _placed(file)
    name, keeps = function.__name__, [(_engine, environments)]
    dtypes = [dtype.num] * (operands + 1)
    return _internal.fromfunc(
        name, f"compiled {name}", [address], [dtypes], operands, 1, [None], keeps, _internal.PyUFunc_None
    )


def _placed(file: Path) -> tuple[int, list[Any]]:
    """Place a file's code in memory. Returns the address of its entry, and the environments."""
    global _engine
    if _engine is None:
        _engine = _new_engine()
    code = _decoder.decode(file.read_bytes())
    for data in (*code.called, code.data):
        _engine.add_object_file(llvmlite.binding.ObjectFileRef.from_data(data))
    _engine.finalize_object()
    address = _engine.get_function_address(code.entry)
    if not address:
        raise LookupError(code.entry)
    environments = []
    for facts in code.environments:
        environment = _environment(facts)
        environments.append(environment)
        place = _engine.get_global_value_address(facts.name)
        if place:
            ctypes.c_void_p.from_address(place).value = id(environment)
    return int(address), environments


def _environment(facts: EnvironmentFacts) -> Any:
    from numba.core.environment import Environment, lookup_environment

    find: Any = lookup_environment
    found = find(facts.name)
    if found is None:
        found = Environment(import_module(facts.module).__dict__)
        found.consts[:] = [np.dtype(name) for name in facts.dtypes]
        found.env_name = facts.name
    return found


def _new_engine() -> Any:
    """An engine of LLVM beside Numba's own, of which the names are then not mixed with these."""
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys  # type: ignore[attr-defined]

    rtsys.initialize(cpu_target.target_context)  # tells LLVM where functions are that the code calls
    machine = llvmlite.binding.Target.from_default_triple().create_target_machine(jit=True)
    return llvmlite.binding.create_mcjit_compiler(llvmlite.binding.parse_assembly(""), machine)
