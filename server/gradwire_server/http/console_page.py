"""The console's page and its files: the same for everyone, and without data.

The files are derived from ``server/console`` (``npm run build`` there).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from .static_files import Document

FOLDER: Final = Path(__file__).with_name("console")
FILES: Final = {
    "app.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files of the page and their media types."""

# URLs are relative to /console, so they lead to the right place behind a proxy with a prefix.
PAGE: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>gradwire console</title>
<link rel="stylesheet" href="console/app.css">
<link rel="icon" type="image/svg+xml" href="console/icon.svg">
</head>
<body>
<div id="app"><noscript>The console needs JavaScript. GET /v1/activity has the same numbers.</noscript></div>
<script src="console/app.js"></script>
</body>
</html>
"""

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@cache
def page() -> Document:
    """The page."""
    return Document(PAGE, "text/html; charset=utf-8", SECURITY_HEADERS)


@cache
def file(name: str) -> Document:
    """One of the ``FILES`` of the page."""
    return Document((FOLDER / name).read_bytes(), FILES[name], SECURITY_HEADERS)
