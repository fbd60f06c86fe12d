"""Finds circles of imports in the five packages: ``python -m tools.import_circles`` lists them.

A circle is a strongly connected component of the graph of imports. Function-local and ``TYPE_CHECKING`` imports
count like all others, because a reader of the file has to follow them too. Circles of up to :data:`LARGEST` files are
allowed, circles between folders are not. Between folders count imports from one folder into another of the same
parent; a folder and its own subfolders may import each other, because the ``__init__`` of a public package names its
subpackages. The layers of the larger folders are contracts of import-linter, in ``pyproject.toml``.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[1]

#: the files of the largest circle that may remain
LARGEST: Final = 3

ROOTS: Final = (
    "protocol/gradwire_protocol", "engine/gradwire_engine", "server/gradwire_server", "client/gradwire",
    "client/gradwire_torch",
)  # fmt: skip

Graph = dict[str, set[str]]


@dataclass
class Imports:
    """The imports among the modules of one package."""

    package: str
    files: Graph = field(default_factory=lambda: defaultdict(set))
    folders: Graph = field(default_factory=lambda: defaultdict(set))
    local: int = 0
    typing: int = 0

    @classmethod
    def of(cls, root: Path) -> Imports:
        found = cls(root.name)
        modules = {_module(root, path): path for path in sorted(root.rglob("*.py"))}
        packages = {
            module: module if path.name == "__init__.py" else module.rpartition(".")[0]
            for module, path in modules.items()
        }
        for module, path in modules.items():
            package = packages[module]
            found.files[module] = set()
            found.folders[package] |= set()
            for node, place in _imports(ast.parse(path.read_text())):
                targets = {target for target in _targets(node, package, modules) if target != module}
                found.local += place == "function" and bool(targets)
                found.typing += place == "typing" and bool(targets)
                found.files[module] |= targets
                for target in targets:
                    if apart := _apart(package, packages[target]):
                        found.folders[apart[0]].add(apart[1])
        return found

    def circles(self) -> Iterator[list[str]]:
        """The circles that the rule does not allow."""
        yield from components(self.folders)
        yield from (circle for circle in components(self.files) if len(circle) > LARGEST)

    def __str__(self) -> str:
        files, folders = ([len(circle) for circle in components(graph)] for graph in (self.files, self.folders))
        return (
            f"{self.package}: {len(self.files)} files in {len(self.folders)} folders; circles of files {files}, of "
            f"folders {folders}; imports in functions {self.local}, for types {self.typing}"
        )


def components(graph: Graph) -> list[list[str]]:
    """The strongly connected components of two nodes or more, the largest first (Tarjan's algorithm)."""
    found: list[list[str]] = []
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    for start in sorted(graph):
        if start in number:
            continue
        number[start] = lowest[start] = len(number)
        stack.append(start)
        walk = [(start, iter(sorted(graph[start])))]
        while walk:
            node, successors = walk[-1]
            for successor in successors:
                if successor not in number:
                    number[successor] = lowest[successor] = len(number)
                    stack.append(successor)
                    walk.append((successor, iter(sorted(graph.get(successor, ())))))
                    break
                if successor in stack:
                    lowest[node] = min(lowest[node], number[successor])
            else:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    at = stack.index(node)
                    found.append(sorted(stack[at:]))
                    del stack[at:]
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def _module(root: Path, path: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _apart(one: str, other: str) -> tuple[str, str] | None:
    """The two folders of one parent in which both are, if neither is in the other."""
    ones, others = one.split("."), other.split(".")
    for at, (left, right) in enumerate(zip(ones, others)):
        if left != right:
            return ".".join(ones[: at + 1]), ".".join(others[: at + 1])
    return None


def _imports(node: ast.AST, place: str = "module") -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Each import below ``node``, and whether it stands in the module, in a function, or under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, place
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports(child, "function")
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from _imports(child, "typing")
        else:
            yield from _imports(child, place)


def _targets(node: ast.Import | ast.ImportFrom, package: str, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that an import in ``package`` names: the narrowest that is a file."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
    for alias in node.names:
        name = f"{base}.{alias.name}"
        if name in modules:
            yield name
        elif base in modules:
            yield base


def main(repository: Path = REPOSITORY) -> int:
    wrong = 0
    for root in ROOTS:
        imports = Imports.of(repository / root)
        print(imports)
        for circle in imports.circles():
            print("  circle:", *circle)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
