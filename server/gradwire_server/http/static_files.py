"""Documents that are the same for everyone: the page of the interface, its files, and the OpenAPI document."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

FOLDER: Final = Path(__file__).with_name("swagger_ui")
FILES: Final = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "favicon-32x32.png": "image/png",
}
"""The files of the page and their media types."""

# URLs are relative to /docs, so they lead to the right place behind a proxy with a prefix. Swagger UI is slow with
# hundreds of schemas of ops.
PAGE: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gradwire</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui" data-document="openapi.json?ops=false"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""

SECURITY_HEADERS: Final = {
    # Swagger UI sets styles of elements and has its icons in data URLs.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True)
class Document:
    """A document with its media type, also compressed."""

    body: bytes
    media_type: str
    security: Mapping[str, str] = field(default_factory=lambda: SECURITY_HEADERS)
    compressed: bytes = field(init=False, repr=False)
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compressed", gzip.compress(self.body, mtime=0))
        object.__setattr__(self, "tag", f'"{hashlib.blake2b(self.body, digest_size=12).hexdigest()}"')

    def response(self, request: Request) -> Response:
        """The document, or 304 to a client that has it."""
        headers = {**self.security, "ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", "") and len(self.compressed) < len(self.body):
            return Response(
                self.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type
            )
        return Response(self.body, headers=headers, media_type=self.media_type)


@cache
def page() -> Document:
    """The page that describes the interface."""
    return Document(PAGE, "text/html; charset=utf-8")


@cache
def file(name: str) -> Document:
    """One of the ``FILES`` of the page."""
    return Document((FOLDER / name).read_bytes(), FILES[name])
