"""The live autograd graph as JSON or Graphviz DOT."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Response

from gradwire_protocol.drawing.svg import Theme
from gradwire_protocol.frames import MAX_ID

from ..http import graph_drawing
from ..http.models import GraphView
from ..http.openapi import PROBLEMS
from ..http.state import Server, TheServer, TheSession
from ..http.tensor_formats import JSON, negotiate
from ..sessions.session import Session
from .bodies import as_json

DOT: Final = "text/vnd.graphviz"
SVG: Final = "image/svg+xml"

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["graph"], responses=PROBLEMS)


@router.get(
    "/graph",
    operation_id="getGraph",
    summary="Get the autograd graph",
    response_model=GraphView,
    responses={200: {"content": {form: {"schema": {"type": "string"}} for form in (DOT, SVG)}}},
)
async def get(
    server: TheServer,
    session: TheSession,
    tensor: Annotated[
        list[Annotated[int, Query(ge=1, le=MAX_ID)]] | None,
        Query(max_length=1000, description="Only the graph of these tensors."),
    ] = None,
    format: Annotated[Literal["json", "dot", "svg"] | None, Query(description="Overrides the Accept header.")] = None,
    theme: Annotated[Literal["auto", "light", "dark"], Query(description="The colours of the SVG drawing.")] = "auto",
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Get the nodes and edges of the graph that backward would traverse, or a drawing of at most 500 nodes."""
    form = {"json": JSON, "dot": DOT, "svg": SVG}[format] if format is not None else negotiate(accept, (JSON, DOT, SVG))
    if form == SVG:
        return await _drawing(server, session, tensor, theme)
    graph = await session.host.graph(tensor, server.settings.max_graph_export)
    if form == DOT:
        return Response(to_dot(graph), media_type=f"{DOT}; charset=utf-8", headers={"Vary": "Accept"})
    return as_json(graph, headers={"Vary": "Accept"})


async def _drawing(server: Server, session: Session, tensors: list[int] | None, theme: Theme) -> Response:
    graph = await session.host.graph(tensors, min(graph_drawing.MAX_NODES, server.settings.max_graph_export))
    rows = await session.host.tensors(among=[each for node in graph["nodes"] for each in node["tensors"]])
    names = {row["id"]: row["name"] for row in rows if row["name"]}
    svg = await asyncio.to_thread(graph_drawing.draw, graph, names, theme)
    headers = {"Vary": "Accept", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return Response(svg, media_type=f"{SVG}; charset=utf-8", headers=headers)


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
