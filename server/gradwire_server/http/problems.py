"""Every response that is not a success: RFC 9457 problem documents with a stable ``code``.

A document has the members ``type``, ``title``, ``status``, ``detail``, ``instance`` of the standard, and

* ``code``: from the error vocabulary, safe to branch on;
* ``request_id``: finds the request in the server's log;
* ``retryable``: whether the same request may succeed later;
* ``op``, ``seq``, ``index``: which op of which frame failed, where it was one;
* ``extra``: the particulars of the error, such as the ``setting`` and ``limit`` of a limit.

``code``, ``detail``, ``op``, ``seq``, ``index``, ``retryable`` and ``extra`` are those of the ``Problem`` that
travels on a stream.
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

from ..refusals import PLACE, particulars

PROBLEM_JSON: Final = "application/problem+json"

RETRY_AFTER_S: Final = 1

log = structlog.get_logger("gradwire.problems")


def title(code: str) -> str:
    """What all problems of this code have in common: the first sentence of the error's documentation."""
    text = " ".join((BY_CODE.get(code, InternalError).__doc__ or code).split())
    return text.split(". ")[0].rstrip(".")


def request_id(scope: Scope) -> str:
    """The id under which this request is logged."""
    return str(scope.get("state", {}).get("request_id", ""))


def document(error: GradwireError, scope: Scope) -> dict[str, Any]:
    """The problem document of an error, as JSON-ready data."""
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
    """The problem as a response. It is also noted for the request's log line and metrics."""
    facts = document(error, scope)
    scope.setdefault("state", {}).update(problem=facts["code"], setting=str(error.details.get("setting", "")))
    extra = dict(headers or {})
    if isinstance(error, Unauthorized):
        extra["WWW-Authenticate"] = "Bearer"
    if facts["retryable"] and error.status in (429, 503, 507):
        extra["Retry-After"] = str(max(RETRY_AFTER_S, math.ceil(error.details.get("retry_after_s", 0))))
    # Particulars of an error may be anything: what JSON cannot say is described instead of failing here.
    body = json.dumps(facts, default=repr).encode()
    return Response(body, error.status, extra, media_type=PROBLEM_JSON)


def defect(error: BaseException, scope: Scope) -> InternalError:
    """Log an error nobody foresaw, with its traceback, and describe it without giving the server's insides away."""
    log.error("unhandled error", request_id=request_id(scope), path=scope.get("path", ""), exc_info=error)
    return InternalError("the server met an unexpected condition; its log tells more under this request id")


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
        return response(NotFound(f"there is no {scope['path']}"), scope, headers)
    if error.status_code == 405:
        return response(MethodNotAllowed(f"{scope['path']} does not take {request.method}"), scope, headers)
    if error.status_code == 400:
        return response(InvalidRequest(str(error.detail)), scope, headers)
    return response(InternalError(str(error.detail)), scope, headers)


class BodyTooLarge(HTTPException):
    """A body beyond the limit, noticed while it was being read. FastAPI lets only HTTPExceptions pass there."""

    def __init__(self, cause: LimitExceeded | TooManyRequests) -> None:
        super().__init__(cause.status, cause.message, {"Connection": "close"})
        self.cause = cause


def malformed(error: Exception) -> MalformedFrame:
    """The refusal of a body that does not decode."""
    return MalformedFrame(f"the body is not what it should be: {error}")


def install(app: FastAPI) -> None:
    """Let every error that reaches the routes become a problem document."""
    app.add_exception_handler(GradwireError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
