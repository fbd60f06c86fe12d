"""Examples in the OpenAPI document: bodies that work when they are pasted, by the operation's id.

The first three work in a new session, in this order: a tensor with the id 1, then a frame that squares it, whose
results get the ids that the examples of ``backward`` and ``grad`` name.
"""

from __future__ import annotations

from typing import Any, Final

BODIES: Final[dict[str, Any]] = {
    "createSession": {"device": "cpu", "default_dtype": "float32", "ttl_s": 600, "seed": 0},
    "putTensor": {"values": [[1.0, 2.0], [3.0, 4.0]], "dtype": "float32"},
    "submitFrame": {
        "first": 2,
        "external": [1],
        "structure": {"ops": [["requires_grad_", [-1]], ["pow", [-1, "int"]], ["mean", [0]]], "reads": [1]},
        "scalars": [2],
    },
    "grad": {"outputs": [3], "inputs": [1], "retain_graph": True},
    "backward": {"tensors": [3], "grads_of": [1]},
    "createKey": {"name": "notebook", "scopes": ["session"], "expires_in_s": 86400},
    "createTicket": {"session": "s_3vN0uZ1rWk2yQ8aB"},
}
PARAMETERS: Final[dict[str, Any]] = {
    "session_id": "s_3vN0uZ1rWk2yQ8aB", "tensor_id": 1, "key_id": "k_5f0a1b2c3d4e", "seq": 1,
}  # fmt: skip
"""Of parameters in the path, by name."""


def add(document: dict[str, Any]) -> None:
    """Add the examples to a document.

    Raises:
        ValueError: for an operation with a JSON body but without an example.
    """
    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["example"] = PARAMETERS[parameter["name"]]
                    parameter["schema"].pop("examples", None)
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is None:
                continue
            if operation["operationId"] not in BODIES:
                raise ValueError(f"the body of {operation['operationId']} needs an example")
            body["example"] = BODIES[operation["operationId"]]
