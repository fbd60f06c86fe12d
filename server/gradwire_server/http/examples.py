"""Examples in the OpenAPI document: bodies that work when they are pasted, by the operation's id.

They belong together: ``putTensor`` stores a tensor with the id 1, the compact frame of ``submitFrame`` squares it and
makes results with the ids that ``grad`` and ``backward`` name.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Example(NamedTuple):
    """A body and what it is."""

    summary: str
    value: Any


BODIES: Final[dict[str, dict[str, Example]]] = {
    "createSession": {
        "session": Example(
            "A session on the CPU that expires after ten minutes without use",
            {"device": "cpu", "default_dtype": "float32", "ttl_s": 600, "seed": 0},
        )
    },
    "putTensor": {"matrix": Example("A matrix of two rows", {"values": [[1.0, 2.0], [3.0, 4.0]], "dtype": "float32"})},
    "putNamedTensor": {
        "matrix": Example("A matrix of two rows", {"values": [[1.0, 2.0], [3.0, 4.0]], "dtype": "float32"})
    },
    "submitFrame": {
        "natural": Example(
            "The gradient of the mean of squares, in natural form",
            {
                "ops": [
                    {"op": "upload", "data": [[1, 2], [3, 4]], "dtype": "float32", "as": "x"},
                    {"op": "requires_grad_", "self": "x"},
                    {"op": "pow", "self": "x", "exponent": 2, "as": "squares"},
                    {"op": "mean", "self": "squares", "as": "loss"},
                    {"op": "backward", "tensors": ["loss"]},
                    {"op": "grad_of", "self": "x", "as": "gradient"},
                ],
                "reads": ["loss", "gradient"],
            },
        ),
        "compact": Example(
            "The mean of the squares of tensor 1, in compact form; the results get the ids 2 and 3",
            {
                "first": 2,
                "external": [1],
                "structure": {"ops": [["requires_grad_", [-1]], ["pow", [-1, "int"]], ["mean", [0]]], "reads": [1]},
                "scalars": [2],
            },
        ),
    },
    "grad": {
        "gradient": Example(
            "The gradient of tensor 3 with respect to tensor 1", {"outputs": [3], "inputs": [1], "retain_graph": True}
        )
    },
    "backward": {
        "backward": Example("Backward from tensor 3; read the gradient of tensor 1", {"tensors": [3], "grads_of": [1]})
    },
    "openGroup": {
        "alone": Example(
            "A group of one rank, which needs no other session",
            {"group": "world", "rank": 0, "world_size": 1, "timeout_s": 60.0},
        )
    },
    "createCheckpoint": {"checkpoint": Example("A checkpoint", {"name": "before"})},
    "rewindSession": {"rewind": Example("Return to the checkpoint", {"checkpoint": "before"})},
    "forkSession": {"fork": Example("A fork of the present", {"ttl_s": 600})},
    "openPast": {"past": Example("The state after the first frame", {"frame": 1})},
    "movePast": {"past": Example("The state after the second frame, in a session of openPast", {"frame": 2})},
    "createKey": {
        "key": Example(
            "A key for one day, of a new tenant", {"name": "notebook", "scopes": ["session"], "expires_in_s": 86400}
        )
    },
    "profileSession": {"second": Example("Record one second", {"seconds": 1.0})},
    "createTicket": {"ticket": Example("A ticket for a session", {"session": "s_3vN0uZ1rWk2yQ8aB"})},
}
PARAMETERS: Final[dict[str, Any]] = {
    "session_id": "s_3vN0uZ1rWk2yQ8aB", "tensor_id": 1, "name": "weights", "key_id": "k_5f0a1b2c3d4e", "seq": 1,
    "group": "world", "node": "10.0.0.5", "worker": "5f0a1b2c3d4e5f60",
}  # fmt: skip
"""Of parameters in the path, by name."""


def add(document: dict[str, Any]) -> None:
    """Add the examples to a document.

    Raises:
        KeyError: for an operation with a JSON body, or a parameter in a path, without an example.
    """
    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["example"] = PARAMETERS[parameter["name"]]
                    parameter["schema"].pop("examples", None)
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                examples = BODIES[operation["operationId"]]
                body["examples"] = {name: example._asdict() for name, example in examples.items()}
