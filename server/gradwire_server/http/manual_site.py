"""The manual's site, which ``make manual`` builds into this package.

Only names that were found in the folder are served, so no path leads out of it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from .static_files import Document

FOLDER: Final = Path(__file__).with_name("manual")
TYPES: Final = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
"""Media types by ending. Files with other endings are not served."""
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
KEPT: Final = 64
"""Files that are kept in memory, those asked for last."""
NOT_BUILT: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>gradwire: the manual is not built</title>
</head>
<body>
<h1>The manual is not built</h1>
<p>This server runs from a source tree without the built manual. Build it there with</p>
<pre>make manual</pre>
<p>or, with the packages of the extras <code>docs</code>, <code>server</code> and <code>test</code> installed,
<code>python -m tools.manual</code>. Wheels and images contain it if it was built before them. The same pages are in
<code>docs/</code>, and <a href="../docs">/docs</a> shows the HTTP interface.</p>
</body>
</html>
"""


def _names(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.suffix in TYPES and path.is_file() and not path.is_symlink()
    }


class Manual:
    """The files of one folder, as they were when it was first asked for."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._files: dict[str, Path] = {}
        self._read = lru_cache(maxsize=KEPT)(self._document)

    def find(self, name: str) -> Document | None:
        """The file of a name such as ``api/index.html``, a folder's index, or ``None``. Reads from disk.

        A site that is built while the server runs is found.
        """
        if not self._files:
            self._files = _names(self.folder)
        path = self._files.get(name) or self._files.get(f"{name}index.html" if name.endswith("/") or not name else "")
        if path is None:
            return None
        try:
            return self._read(path, path.stat().st_mtime_ns)
        except FileNotFoundError:  # the site was built anew, with other pages
            self._files = {}
            return None

    @property
    def built(self) -> bool:
        """Whether there is a site."""
        return (self.folder / "index.html").is_file()

    @staticmethod
    def _document(path: Path, _changed: int) -> Document:
        return Document(path.read_bytes(), TYPES[path.suffix], SECURITY_HEADERS)
