"""The live autograd graph as JSON or Graphviz DOT."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Response

from gradwire_protocol.frames import MAX_ID

from ..http.models import GraphView
from ..http.openapi import PROBLEMS
from ..http.state import TheServer, TheSession
from ..http.tensor_formats import JSON, negotiate
from .bodies import as_json

DOT: Final = "text/vnd.graphviz"

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["graph"], responses=PROBLEMS)


@router.get(
    "/graph",
    operation_id="getGraph",
    summary="Get the autograd graph",
    response_model=GraphView,
    responses={200: {"content": {DOT: {"schema": {"type": "string"}}}}},
)
async def get(
    server: TheServer,
    session: TheSession,
    tensor: Annotated[
        list[Annotated[int, Query(ge=1, le=MAX_ID)]] | None,
        Query(max_length=1000, description="Only the graph of these tensors."),
    ] = None,
    format: Annotated[Literal["json", "dot"] | None, Query(description="Overrides the Accept header.")] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Get the nodes and edges of the graph that backward would traverse."""
    form = {"json": JSON, "dot": DOT}[format] if format is not None else negotiate(accept, (JSON, DOT))
    graph = await session.host.graph(tensor, server.settings.max_graph_export)
    if form == DOT:
        return Response(to_dot(graph), media_type=f"{DOT}; charset=utf-8", headers={"Vary": "Accept"})
    return as_json(graph, headers={"Vary": "Accept"})


def to_dot(graph: dict[str, Any]) -> str:
    """The graph in the DOT language, with results above leaves."""
    lines = ["digraph autograd {", "  node [shape=box, fontname=monospace];"]
    for node in graph["nodes"]:
        shapes = " ".join(str(list(shape)) for shape in node.get("shapes", ()))
        ids = " ".join(f"#{tensor}" for tensor in node.get("tensors", ()))
        label = "\\n".join(_quoted(part) for part in (node["name"], shapes, ids) if part)
        lines.append(f'  n{node["id"]} [label="{label}"];')
    lines += [f"  n{edge['from']} -> n{edge['to']};" for edge in graph["edges"]]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
