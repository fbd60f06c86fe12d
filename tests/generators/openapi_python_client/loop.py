"""Train an MLP with the client that openapi-python-client made: ``loop.py URL KEY DATA``."""

import json
import sys

from generated import AuthenticatedClient
from generated.api.frames import submit_frame
from generated.api.sessions import create_session, delete_session
from generated.models import (
    Dtype,
    Frame,
    OpBackward,
    OpCrossEntropy,
    OpLinear,
    OpRelu,
    OpRequiresGradInPlace,
    OpSgdStep,
    OpUpload,
    OpZeroGrad,
    Reply,
    SessionRequest,
    SessionView,
)

url, key, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    data = json.load(file)
client = AuthenticatedClient(base_url=url, token=key)
session = create_session.sync(client=client, body=SessionRequest())
assert isinstance(session, SessionView), session


def submit(*records: object, reads: tuple[str, ...] = ()) -> Reply:
    """Apply a frame."""
    reply = submit_frame.sync(session.id, client=client, body=Frame(ops=[*records], reads=[*reads]))
    assert isinstance(reply, Reply) and not reply.errors, reply
    return reply


submit(
    OpUpload("upload", data["x"], dtype=Dtype.FLOAT32, as_="x"),
    OpUpload("upload", data["target"], dtype=Dtype.INT64, as_="target"),
)
weights = ["w1", "b1", "w2", "b2"]
for name, values in zip(weights, data["weights"], strict=True):
    submit(OpUpload("upload", values, dtype=Dtype.FLOAT32, as_=name), OpRequiresGradInPlace("requires_grad_", name))

losses = []
for _ in range(data["steps"]):
    reply = submit(
        OpLinear("linear", "x", "w1", bias="b1", as_="h"),
        OpRelu("relu", "h", as_="a"),
        OpLinear("linear", "a", "w2", bias="b2", as_="scores"),
        OpCrossEntropy("cross_entropy", "scores", "target", as_="loss"),
        OpBackward("backward", ["loss"]),
        OpSgdStep("sgd_step", weights, data["lr"]),
        OpZeroGrad("zero_grad", weights),
        reads=("loss",),
    )
    losses.append(reply.values[0].values)
delete_session.sync(session.id, client=client)
print(json.dumps(losses))
