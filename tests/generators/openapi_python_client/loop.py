"""Train an MLP with the client that openapi-python-client made: ``loop.py URL KEY DATA``."""

import json
import sys

from generated import AuthenticatedClient
from generated.api.frames import submit_frame
from generated.api.sessions import create_session, delete_session
from generated.api.tensors import put_tensor
from generated.models import Frame, Reply, SessionRequest, SessionView, Structure, TensorBody, TensorStored

url, key, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    data = json.load(file)
client = AuthenticatedClient(base_url=url, token=key)
session = create_session.sync(client=client, body=SessionRequest())
assert isinstance(session, SessionView), session
for number, values in enumerate([data["x"], data["target"], *data["weights"]], 1):
    stored = put_tensor.sync(
        session.id, number, client=client, body=TensorBody(values=values), requires_grad=number > 2
    )
    assert isinstance(stored, TensorStored), stored

X, TARGET, WEIGHTS = -1, -2, [-3, -4, -5, -6]
step = Frame(
    external=[1, 2, 3, 4, 5, 6],
    structure=Structure(
        ops=[
            ["linear", [X, -3, -4]],
            ["relu", [0]],
            ["linear", [1, -5, -6]],
            ["cross_entropy", [2, TARGET]],
            ["backward", [[3], [None]]],
            ["sgd_step", [WEIGHTS, [None] * 4, "float"]],
            ["zero_grad", [WEIGHTS]],
        ],
        reads=[3],
        drops=[0, 1, 2, 3],
    ),
    scalars=[data["lr"]],
)
losses = []
for _ in range(data["steps"]):
    reply = submit_frame.sync(session.id, client=client, body=step)
    assert isinstance(reply, Reply) and not reply.errors, reply
    losses.append(reply.values[0].values)
delete_session.sync(session.id, client=client)
print(json.dumps(losses))
