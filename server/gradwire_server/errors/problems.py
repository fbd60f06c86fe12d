"""Error responses: RFC 9457 problem documents with a stable ``code``.

A document has the standard members ``type``, ``title``, ``status``, ``detail`` and ``instance``, and

* ``code``: from the error vocabulary, to branch on;
* ``request_id``: the id of the request in the server's log;
* ``retryable``: whether the same request may succeed later;
* ``op``, ``seq``, ``index``: the failed op and its frame, if an op failed;
* ``extra``: further details, such as the ``setting`` and ``limit`` of a limit.

``code``, ``detail``, ``op``, ``seq``, ``index``, ``retryable`` and ``extra`` are the same as in a stream's ``Problem``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gradwire_protocol.errors import (
    BY_CODE,
    GradwireError,
    InternalError,
    InvalidRequest,
    LimitExceeded,
    MalformedFrame,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    Unauthorized,
)

from .error_mapping import PLACE, particulars

PROBLEM_JSON: Final = "application/problem+json"

RETRY_AFTER_S: Final = 1

log = structlog.get_logger("gradwire.problems")


def title(code: str) -> str:
    """The title of all problems with this code: the first sentence of the error's docstring."""
    text = " ".join((BY_CODE.get(code, InternalError).__doc__ or code).split())
    return text.split(". ")[0].rstrip(".")


def request_id(scope: Scope) -> str:
    """The id of this request in the log."""
    return str(scope.get("state", {}).get("request_id", ""))


def document(error: GradwireError, scope: Scope) -> dict[str, Any]:
    """The problem document of an error as JSON data."""
    code = error.details.get("code", error.code)
    facts: dict[str, Any] = {
        "type": f"urn:gradwire:problem:{code}",
        "title": title(code),
        "status": error.status,
        "detail": error.message,
        "instance": scope.get("path", ""),
        "code": code,
        "request_id": request_id(scope),
        "retryable": bool(error.details.get("retryable", error.retryable)),
    }
    facts |= {name: error.details[name] for name in PLACE if name in error.details}
    return facts | {"extra": particulars(error)}


def response(error: GradwireError, scope: Scope, headers: Mapping[str, str] | None = None) -> Response:
    """The problem as a response. Also stores its code for the request's log line and metrics."""
    facts = document(error, scope)
    scope.setdefault("state", {}).update(problem=facts["code"], setting=str(error.details.get("setting", "")))
    extra = dict(headers or {})
    if isinstance(error, Unauthorized):
        extra["WWW-Authenticate"] = "Bearer"
    if facts["retryable"] and error.status in (429, 503, 507):
        extra["Retry-After"] = str(max(RETRY_AFTER_S, math.ceil(error.details.get("retry_after_s", 0))))
    # Details may be any object; repr() keeps this function from failing on one.
    body = json.dumps(facts, default=repr).encode()
    return Response(body, error.status, extra, media_type=PROBLEM_JSON)


def defect(error: BaseException, scope: Scope) -> InternalError:
    """Log an unexpected error with its traceback, and return an error without internals for the client."""
    log.error("unhandled error", request_id=request_id(scope), path=scope.get("path", ""), exc_info=error)
    return InternalError("internal server error; the server's log has details under this request id")


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GradwireError)
    return response(error, request.scope)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [
        {"loc": [str(part) for part in each["loc"]], "msg": str(each["msg"]), "type": str(each["type"])}
        for each in error.errors()
    ]
    first = f"{'.'.join(found[0]['loc'])}: {found[0]['msg']}" if found else "the request is invalid"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return response(InvalidRequest(first + more, errors=found), request.scope)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    scope, headers = request.scope, error.headers
    if isinstance(error, BodyTooLarge):
        return response(error.cause, scope, headers)
    if error.status_code == 404:
        return response(NotFound(f"{scope['path']} does not exist"), scope, headers)
    if error.status_code == 405:
        return response(MethodNotAllowed(f"{scope['path']} does not support {request.method}"), scope, headers)
    if error.status_code == 400:
        return response(InvalidRequest(str(error.detail)), scope, headers)
    return response(InternalError(str(error.detail)), scope, headers)


class BodyTooLarge(HTTPException):
    """The body exceeds the limit while it is read. FastAPI propagates only HTTPExceptions there."""

    def __init__(self, cause: LimitExceeded | TooManyRequests) -> None:
        super().__init__(cause.status, cause.message, {"Connection": "close"})
        self.cause = cause


def malformed(error: Exception) -> MalformedFrame:
    """The error for a body that does not decode."""
    return MalformedFrame(f"the body is invalid: {error}")


def install(app: FastAPI) -> None:
    """Turn every error of the routes into a problem document."""
    app.add_exception_handler(GradwireError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
