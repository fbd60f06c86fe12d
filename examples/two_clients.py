"""Two clients of one session: Python names tensors, curl computes with them, Python continues with the result.

Any client that has the key may join a session, in any language, and sees the same tensors and autograd graph. The
gradient at the end flows through curl's computation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import gradwire as torch


def curl(method: str, url: str, key: str, body: object = None) -> dict[str, object]:
    """Send a request with curl and return its JSON answer.

    Raises:
        RuntimeError: with the problem that the server described.
    """
    command = ["curl", "--silent", "--show-error", "--fail-with-body", "--request", method, url]
    command += ["--header", f"Authorization: Bearer {key}", "--header", "Content-Type: application/json"]
    if body is not None:
        command += ["--data", json.dumps(body)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f"{method} failed: {done.stdout or done.stderr}")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main() -> int:
    """Returns 0 if both clients agree."""
    url, key = os.environ.get("GRADWIRE_URL"), os.environ.get("GRADWIRE_API_KEY")
    if url is None:
        server = torch.embedded_server()
        url, key = server.url, server.api_key
    with torch.connect(url, key) as session:
        weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        inputs = torch.tensor([0.5, -1.0])
        weights.set_name("weights")
        inputs.set_name("inputs")
        session.synchronize()
        print(f"python: named weights and inputs in session {session.id}")

        # y = weights @ inputs, under the name "outputs". In a frame, n >= 0 is its n-th result.
        frame = {
            "structure": {
                "ops": [
                    ["by_name", ["weights"]],
                    ["by_name", ["inputs"]],
                    ["matmul", [0, 1]],
                    ["set_name", [2, "outputs"]],
                ],
                "reads": [2],
            }
        }
        reply = curl("POST", f"{url}/v1/sessions/{session.id}/frames", key or "", frame)
        if reply.get("errors"):
            raise RuntimeError(f"curl's frame failed: {reply['errors']}")
        computed = reply["values"][0]["values"]  # type: ignore[index]
        print(f"curl:   outputs = weights @ inputs = {computed}")

        # A tensor that is looked up by name has its whole history: here curl's part of the graph.
        outputs = session.tensor("outputs")
        print(f"python: found {outputs}")
        outputs.sum().backward()
        left = session.tensor("weights").grad
        gradient = None if left is None else left.tolist()
        print(f"python: the gradient that went through it = {gradient}")
        agree = outputs.tolist() == computed == [-1.5, -2.5] and gradient == [[0.5, -1.0], [0.5, -1.0]]
    print("both agree" if agree else "the clients disagree")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
