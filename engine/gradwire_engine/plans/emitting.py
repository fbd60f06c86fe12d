"""From a program to a function: straight-line Python over local variables, compiled once.

The source holds names and numbers of ours only; ops, dtypes and constants are reached through its namespace. Values go
at their last use, what nobody needs is left out, and the objects that outlive the frame are made at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final
from weakref import finalize, ref

import numpy as np

from gradwire_protocol.history import PLAIN
from gradwire_protocol.meta import Meta

from ..autograd.failures import GONE
from ..autograd.inplace import CopySlices
from ..autograd.lazy_nodes import LazyNodes
from ..autograd.operands import lay_out, wrapped_number
from ..autograd.tape import AccumulateGrad, Edge, Node, SavedTensor
from ..autograd.tensor import Storage, Tensor
from ..runtime.arithmetic import BY_THREADS
from ..runtime.arrays import Array, native
from ..runtime.backends import Backend
from ..runtime.memory import MemoryAccount
from . import constants, graph_segments
from .device import dtype_named, elements
from .effects import (
    Effects,
    LeafTemplate,
    NodeTemplate,
    SavedTemplate,
    SlicesTemplate,
    StorageTemplate,
    TensorTemplate,
    Version,
)
from .expressions import FUNCTIONS, THREADED, spell_out
from .fusion import fuse
from .lazy_node_templates import Writer, fold
from .program import (
    At,
    Instruction,
    KernelCall,
    Lay,
    New,
    Number,
    Offset,
    OptimizerStep,
    PlanProgram,
    Thing,
    View,
    Write,
    operands_of,
    outs_of,
    target_of,
)
from .tracing import RANDOM

ARGUMENTS: Final = "o, s, d, p, G, B, engine, account, seq, begin, undo"
"""What the function takes: the objects found, the frame's numbers, the offsets of its places, its payloads, the
session's generator, the backend, the engine, its account, the count of nodes, the position of the first record, and a
list for copies of what is written over; ``None`` in it says that from there on nothing can be undone."""

MUCH_WORK: Final = 20_000_000
"""Steps of work, about a millisecond, after which a plan looks whether its frame was cancelled."""

_DEFAULTS: Final = {
    "requires_grad_flag": False, "retains_grad": False, "inference": False, "slot": 0, "creation": PLAIN, "path": None,
}  # fmt: skip


def _laid(array: Array, out: Meta, backend: Backend, *operands: Array) -> Array:
    return lay_out(array, out, backend, operands)


def _kept(tensor: Tensor, version: int, slot: int, is_result: bool) -> SavedTensor:
    made = object.__new__(SavedTensor)
    made.tensor, made.version, made.slot, made.is_result = tensor, version, slot, is_result
    return made


def _accumulator(leaf: Tensor) -> AccumulateGrad:
    found = leaf.accumulator() if leaf.accumulator is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        leaf.accumulator = ref(found)
    return found


def _slices(
    inner: Node, base: Meta, view: Meta, offset: int, edges: tuple[Edge | None, ...], seq: int, account: MemoryAccount
) -> CopySlices:
    made = object.__new__(CopySlices)
    made.inner, made.base, made.view, made.offset, made.edges, made.seq = inner, base, view, offset, edges, seq
    made.watchers, made.account = None, account
    account.nodes += 1
    return made


def _alias(array: Array, account: MemoryAccount) -> Storage:
    made = object.__new__(Storage)
    made.array, made._memory, made.account, made.nbytes, made.version, made.poison = array, None, account, 0, 0, None
    made.born = account.frame
    return made


def _looks(code: list[Instruction]) -> set[int]:
    """The instructions before which a plan looks whether its frame was cancelled: after much work, and before much."""
    looks: set[int] = set()
    done = 0
    for i, each in enumerate(code):
        steps = each.steps if type(each) is KernelCall else 0
        if done and done + steps > MUCH_WORK:
            looks.add(i)
            done = 0
        done += steps
    return looks


class PlanEmitter:
    """Writes the source of one program."""

    def __init__(
        self, program: PlanProgram, effects: Effects, backend: Backend, separators: graph_segments.Separators
    ) -> None:
        self.owner = graph_segments.SegmentOwner(separators)
        self.program = program
        self.effects = effects
        self.backend = backend
        self.host = backend.xp is np
        self.names: dict[str, Any] = {
            "np": np, "ndarray": np.ndarray, "empty": np.empty, "asarray": np.asarray, "lay": _laid, "kept": _kept,
            "Tensor": Tensor, "Storage": Storage, "Node": Node, "LazyNodes": LazyNodes, "accumulator": _accumulator,
            "slices": _slices, "alias": _alias, "ref": ref, "wrapped": wrapped_number, "GONE": GONE,
            "inf": float("inf"), "nan": float("nan"), **{name: getattr(np, name) for name in FUNCTIONS},
            **{THREADED + name: function for name, function in BY_THREADS.items()},
        }  # fmt: skip
        self._constants: dict[int, str] = {}
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.indent = " "
        self._loaded: set[int] = set()
        self.logged = False  # it may be cancelled where its own copies do not lead back any more
        self.known: set[int] = set()  # made already, see constants
        self._made: set[int] = set()
        self._stored: set[int] = set()

    def function(self) -> Callable[..., list[Any]]:
        """The function; see :data:`ARGUMENTS`. It returns the results of the frame."""
        program, effects = self.program, self.effects
        if self.host:
            spell_out(program)
        kept = self._needed()
        code = [instruction for instruction, needed in zip(program.code, kept, strict=True) if needed]
        runs: dict[int, graph_segments.GraphSegment] = {}
        if self.backend.graphs is not None:
            code = graph_segments.hoisted(program, code)
        elif self.host:
            code = constants.without(self, code)
            self._loaded.clear()  # what is made already is nobody's to let go of
            code = fuse(program, code, self.kept_values())
        program.code = code
        last = self._last_uses(code)
        if self.backend.graphs is not None:
            runs = graph_segments.stretches(program, code, last, self.kept_values(), RANDOM, self.owner.separators)
            self.names["OWNER"] = self.owner
        for thing in sorted({*effects.versions, *self._versions_of()}):
            self.line(f"v{thing} = o[{thing}].storage.version")
        for number, at in program.payloads:
            self.line(f"a{number} = p[{at}]")
            self._loaded.add(number)
        looks = _looks(code)
        for begin, run in runs.items():  # its launches are one
            looks.difference_update(range(begin + 1, run.end))
        risky = max((i for i, each in enumerate(code) if type(each) is KernelCall and not each.total), default=-1)
        risky = max(risky, max(looks, default=-1))
        copied: set[int] = set()
        dirty, done = False, 0
        for i, instruction in enumerate(code):
            if i in looks:
                self.logged |= dirty
                self.line("if engine.clock.cancelled: engine.clock.stop('a plan')")
            if i in runs:
                for written in graph_segments.written_before(program, code[i : runs[i].end]):
                    dirty = self._undoable(written, i < risky, dirty, copied)
                graph_segments.write(self, code, i, runs[i], last)
                done = runs[i].end
            if i < done:
                continue
            target = target_of(instruction)
            if type(instruction) is OptimizerStep:
                if not dirty:
                    self.line("undo.append(None)")
                dirty = True
            elif target is not None and program.memory[target] in program.old:
                dirty = self._undoable(target, i < risky, dirty, copied)
            self.instruction(instruction)
            gone = [f"a{value}" for value in last.get(i, ()) if value in self._loaded]
            if gone:
                self.line(f"del {', '.join(gone)}")
        if not dirty:
            self.line("undo.append(None)")
        self._leave()
        source = "\n".join([*self.functions, f"def plan({ARGUMENTS}):", *self.lines, ""])
        exec(compile(source, graph_segments.SOURCE, "exec"), self.names)  # noqa: S102  (the source is ours to the last character)
        self.source = source
        function: Callable[..., list[Any]] = self.names.pop("plan")  # which goes with its plan, and not in a cycle
        if runs and self.backend.graphs is not None:
            self.owner.lines = source.splitlines()
            finalize(function, self.backend.graphs.forget, self.owner).atexit = False
        return function

    def _undoable(self, target: int, risky: bool, dirty: bool, copied: set[int]) -> bool:
        """Before memory that was there before the frame is written to through this value: keep what it holds, if what
        is still to come may fail. Returns whether the frame cannot be undone from here on."""
        if dirty:
            return True
        if risky and target not in copied:
            copied.add(target)
            self.load(target)
            self.line(f"undo.append((a{target}, a{target}.copy()))")
        elif not risky:
            self.line("undo.append(None)")
        return not risky

    # What is needed, and until when

    def kept_values(self) -> set[int]:
        """The values that outlive the frame."""
        values = {t.value for t in self.effects.templates if type(t) is TensorTemplate}
        return values | {storage.value for storage in self.effects.storages}

    def _needed(self) -> list[bool]:
        """Per instruction, whether anybody can tell that it ran."""
        memory = self.program.memory
        values = self.kept_values()
        owners = {memory[value] for value in values} | {memory[value] for value in self.program.old}
        kept = [False] * len(self.program.code)
        for i in range(len(self.program.code) - 1, -1, -1):
            instruction = self.program.code[i]
            target = target_of(instruction)
            if target is not None:
                kept[i] = memory[target] in owners
            else:
                kept[i] = any(out in values for out in outs_of(instruction))
            if type(instruction) is OptimizerStep or (type(instruction) is KernelCall and not instruction.pure):
                kept[i] = True
            if kept[i]:
                for value in operands_of(instruction):
                    values.add(value)
                    owners.add(memory[value])
        return kept

    def _last_uses(self, code: list[Instruction]) -> dict[int, list[int]]:
        """The values that go after each instruction."""
        ending: dict[int, list[int]] = {}
        seen = self.kept_values()
        for i in range(len(code) - 1, -1, -1):
            for value in {*operands_of(code[i]), *outs_of(code[i])}:
                if value not in seen:
                    seen.add(value)
                    ending.setdefault(i, []).append(value)
        return ending

    def _versions_of(self) -> Iterable[int]:
        for template in self.effects.templates:
            if type(template) is TensorTemplate and template.seen.thing is not None:
                yield template.seen.thing
            elif type(template) is NodeTemplate:
                for entry in (template.saved or {}).values():
                    for each in entry if type(entry) is list else (entry,):
                        if type(each) is SavedTemplate and each.version.thing is not None:
                            yield each.version.thing
        for _, _, value in self.effects.changes:
            if type(value) is Version and value.thing is not None:
                yield value.thing

    # Spelling

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def _constant(self, value: object) -> str:
        kind = type(value)
        if value is None or kind is bool or kind is int:
            return repr(value)
        if value is RANDOM:
            return "G"
        if value is np:
            return "np"
        if value is self.backend:
            return "B"
        name = self._constants.get(id(value))
        if name is None:
            name = self._constants[id(value)] = f"k{len(self._constants)}"
            self.names[name] = value
        return name

    def _spell(self, value: Any) -> str:
        kind = type(value)
        if kind is At:
            self.load(value.value)
            return f"a{value.value}"
        if kind is Number:
            number = f"s[{value.place}]"
            return number if value.compute is None else f"wrapped({number}, {self._constant(value.compute)})"
        if kind is Thing:
            return f"o[{value.number}]"
        if kind is New:
            return f"t{value.number}"
        if kind is list:
            return f"[{', '.join([self._spell(each) for each in value])}]"
        if kind is Version:
            return str(value.count) if value.thing is None else f"v{value.thing} + {value.count}"
        return self._constant(value)

    def beginning(self, offset: int | Offset) -> str:
        if type(offset) is int:
            return str(offset)
        terms = [f"d[{place}][{i}]" if place >= 0 else f"o[{i}].offset" for place, i in offset.terms]  # type: ignore[union-attr]
        return " + ".join([str(offset.constant), *terms])  # type: ignore[union-attr]

    def load(self, value: int) -> None:
        if value in self._loaded or value in self.known:
            return
        found = self.program.inputs.get(value)
        if found is not None:
            self._loaded.add(value)
            shown = f"o[{found.thing}]"
            self.line(f"a{value} = {shown}.storage.memory(B)" if found.whole else f"a{value} = {shown}.array")

    # Instructions

    def instruction(self, instruction: Instruction) -> None:
        kind = type(instruction)
        self._loaded.update(outs_of(instruction))
        if kind is KernelCall:
            self._call(instruction)  # type: ignore[arg-type]
        elif kind is View:
            self._view(instruction)  # type: ignore[arg-type]
        elif kind is Lay:
            self._lay(instruction)  # type: ignore[arg-type]
        elif kind is Write:
            self._write(instruction)  # type: ignore[arg-type]
        else:
            self._step(instruction)  # type: ignore[arg-type]

    def _call(self, call: KernelCall) -> None:
        args = ", ".join([self._spell(arg) for arg in call.args])
        outs = ", ".join([f"a{out}" for out in call.outs]) + ("," if call.several else "")
        function = self._constant(call.function)
        self.owner.named[function] = call.name
        plain = f"{function}({args})"
        if call.expression:
            self.line(f"{outs} = {call.expression.format(*[self._spell(arg) for arg in call.args[1:]])}")
            return
        if call.compiled is None:
            self.line(f"{outs} = {plain}" if call.outs else plain)
            return
        self.line(f"r = {self._constant(call.compiled)}({args})")
        self.line(f"if r is NotImplemented: r = {plain}")
        if call.outs:
            self.line(f"{outs} = r")
        self.line("del r")

    def _view(self, view: View) -> None:
        if not self.host:
            self._view_on_device(view)
            return
        dtype, shape = self._constant(view.dtype), self._constant(view.shape)
        if 0 in view.shape:
            self.line(f"a{view.out} = empty({shape}, {dtype})")
            return
        if view.source is not None:
            self.line(f"a{view.out} = {self._spell(At(view.source))}{view.way}")
            return
        memory = self._spell(At(view.memory))
        if not view.ordered:
            memory = f"B.memory_of({memory})"
        begin = str(view.offset) if type(view.offset) is int else f"({self.beginning(view.offset)}) * {view.size}"
        strides = self._constant(view.strides)
        self.line(f"a{view.out} = ndarray({shape}, {dtype}, {memory}, {begin}, {strides})")

    def _view_on_device(self, view: View) -> None:
        memory = self._spell(At(view.memory))
        if not view.ordered:
            memory = f"B.memory_of({memory})"
        begin = str(view.offset // view.size) if type(view.offset) is int else self.beginning(view.offset)
        shape, strides = self._constant(view.shape), self._constant(elements(view.strides, view.size))
        dtype = self._constant(dtype_named(view.dtype))
        self.line(f"a{view.out} = B.view({memory}, {shape}, {strides}, {begin}, {dtype})")

    def _lay(self, lay: Lay) -> None:
        raw = self._spell(At(lay.raw))
        if lay.scalar:
            self.line(f"a{lay.out} = asarray({raw}, {self._constant(native(lay.meta.dtype))})")
            return
        operands = "".join([", " + self._spell(At(value)) for value in lay.operands])
        self.line(f"a{lay.out} = lay({raw}, {self._constant(lay.meta)}, B{operands})")

    def _write(self, write: Write) -> None:
        target, raw = self._spell(At(write.target)), self._spell(At(write.raw))
        self.line(f"{target}[...] = {raw}.astype({target}.dtype)" if write.cast else f"{target}[...] = {raw}")

    def _step(self, step: OptimizerStep) -> None:
        for each in step.given:
            grad = each.grad
            if type(grad) is int:
                number = self.effects.early[grad]
                self._template_of_tensor(number)
                grad = New(number)
            self.line(f"o[{each.param}].grad = {self._spell(grad)}")
        self.line(f"engine.grad_enabled = {step.grad_enabled}")
        args = ", ".join([self._spell(arg) for arg in step.args])
        self.line(f"{self._constant(step.function)}(engine, {args})")

    # What outlives the frame

    def _storage(self, storage: Thing | New) -> str:
        if type(storage) is Thing:
            return f"o[{storage.number}].storage"
        if storage.number not in self._stored:
            self._stored.add(storage.number)
            template: StorageTemplate = self.effects.storages[storage.number]
            array = self._spell(At(template.value))
            found = self.program.inputs.get(template.value)
            if found is not None:
                self.line(f"m{storage.number} = o[{found.thing}].storage.unversioned()")
            else:
                self.line(f"m{storage.number} = {'alias' if template.alias else 'Storage'}({array}, account)")
            if template.version:
                self.line(f"m{storage.number}.version = {template.version}")
        return f"m{storage.number}"

    def _template_of_tensor(self, number: int) -> None:
        if number in self._made:
            return
        self._made.add(number)
        template: TensorTemplate = self.effects.templates[number]
        storage, array = self._storage(template.storage), self._spell(At(template.value))
        offset = self.beginning(template.offset)
        self.line(f"t{number} = Tensor(engine, {array}, {self._constant(template.meta)}, {storage}, {offset})")
        defaults = _DEFAULTS | {"grad_dtype": template.meta.dtype}
        for name, value in template.plain.items():
            if value != defaults[name]:
                self.line(f"t{number}.{name} = {self._constant(value)}")
        if template.seen != Version(None, 0):
            self.line(f"t{number}.seen_version = {self._spell(template.seen)}")

    def _leave(self) -> None:
        templates, effects = self.effects.templates, self.effects
        for number, template in enumerate(templates):
            if type(template) is TensorTemplate:
                self._template_of_tensor(number)
        folds = fold(effects)
        nodes = [
            (t.seq, n, t)
            for n, t in enumerate(templates)
            if type(t) in (NodeTemplate, SlicesTemplate) and n not in folds.at
        ]
        for number in sorted(self._leaves_of([template for _, _, template in nodes])):
            self.line(f"t{number} = accumulator({self._spell(templates[number].leaf)})")
        for _, number, template in sorted(nodes, key=lambda each: each[0]):
            edges = "".join(
                ["None, " if edge is None else f"({self._spell(edge[0])}, {edge[1]}), " for edge in template.edges]
            )
            if type(template) is SlicesTemplate:
                self.line(
                    f"t{number} = slices({self._spell(template.inner)}, {self._constant(template.base)}, "
                    f"{self._constant(template.view)}, {template.offset}, ({edges}), seq + {template.seq}, account)"
                )
                continue
            position = "0" if template.index is None else f"begin + {template.index}"
            self.line(
                f"t{number} = Node({self._constant(template.name)}, {self._constant(template.row)}, "
                f"{self._spell(list(template.values))}, ({edges}), {self._constant(template.outs)}, "
                f"seq + {template.seq}, account, {position})"
            )
        for group in range(len(folds.groups)):
            lines, made = Writer(templates, folds, group, self._spell, self._constant).write()
            self.functions.extend(lines)
            self.line(f"f{group} = {made}")
        for _, number, template in nodes:
            if type(template) is NodeTemplate and template.saved is not None:
                saved = ", ".join([f"{self._constant(n)}: {self._saved(e)}" for n, e in template.saved.items()])
                self.line(f"t{number}.saved = {{{saved}}}")
            if template.watchers is not None:
                self.line(f"t{number}.watchers = {self._watchers(template.watchers)}")
        for number, template in enumerate(templates):
            if type(template) is TensorTemplate:
                for name, value in template.referring.items():
                    there = folds.at.get(value.number) if type(value) is New and name == "_grad_fn" else None
                    if there is not None:
                        self.line(f"t{number}.history = (f{there[0]}, {there[1]})")
                    elif value is not None:
                        attribute = "history" if name == "_grad_fn" else name
                        self.line(f"t{number}.{attribute} = {self._spell(value)}")
        for thing, name, value in effects.changes:
            if name == "watchers":
                self.line(f"o[{thing}].watchers = {self._watchers(value)}")
            else:
                self.line(f"o[{thing}].{name} = {self._spell(value)}")
        for thing, count in effects.versions.items():
            self.line(f"o[{thing}].storage.version = v{thing} + {count}")
        made = ", ".join(["GONE" if each is GONE else self._spell(each) for each in effects.made])
        self.line(f"return [{made}]")

    def _leaves_of(self, nodes: list[Any]) -> set[int]:
        """The templates of new accumulators that these, or changes, refer to."""
        refs = [edge[0] for template in nodes for edge in template.edges if edge is not None]
        refs += [template.inner for template in nodes if type(template) is SlicesTemplate]
        refs += [value for _, _, value in self.effects.changes]
        refs += [t.referring["_grad_fn"] for t in self.effects.templates if type(t) is TensorTemplate]
        found = {ref.number for ref in refs if type(ref) is New}
        return {number for number in found if type(self.effects.templates[number]) is LeafTemplate}

    def _saved(self, entry: Any) -> str:
        if type(entry) is SavedTemplate:
            tensor, version = self._spell(entry.tensor), self._spell(entry.version)
            return f"kept({tensor}, {version}, {entry.slot}, {entry.is_result})"
        if type(entry) is list:
            return f"[{', '.join([self._saved(each) for each in entry])}]"
        return self._spell(entry)

    def _watchers(self, watchers: dict[int, Any] | None) -> str:
        if watchers is None:
            return "None"
        return "{" + ", ".join([f"{slot}: ref({self._spell(t)})" for slot, t in watchers.items()]) + "}"
