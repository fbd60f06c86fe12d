"""Links of a Markdown page of the repository, as the manual has them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.documents import REPOSITORY

_LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(([^()\s]+)\)")
_CODE: Final = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`(?!\]))", re.MULTILINE | re.DOTALL)


def rewritten(text: str, origin: Path, page: str, pages: Mapping[Path, str], ops: Mapping[str, str]) -> str:
    """A page with its links as they are in the manual.

    Args:
        text: the page.
        origin: its file in the repository.
        page: its path in the manual, without ending.
        pages: the paths in the manual of the repository's files that are pages or data of it.
        ops: the page of each anchor of docs/ops.md.

    A link to a file that the manual does not have becomes the file's path, as code.
    """

    def link(found: re.Match[str]) -> str:
        label, target = found.groups()
        if re.match(r"\w+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        file = Path(os.path.normpath(origin.parent / path))
        if file == REPOSITORY / "docs" / "ops.md":
            to = ops[anchor] + ".md" if anchor else "ops/index.md"
        elif file in pages:
            to = pages[file]
        elif file.exists():
            shown = f"`{file.relative_to(REPOSITORY)}`"
            return shown if file.name in label else f"{label} ({shown})"
        else:
            raise ValueError(f"{origin.relative_to(REPOSITORY)} links to {target}, which does not exist")
        to = os.path.relpath(to, os.path.dirname(page) or ".")
        return f"[{label}]({to}#{anchor})" if anchor else f"[{label}]({to})"

    parts = _CODE.split(text)
    # Code between the parts stays. A link whose label is code is a whole part, by the look-ahead of the expression.
    return "".join(part if i % 2 else _LINK.sub(link, part) for i, part in enumerate(parts))
