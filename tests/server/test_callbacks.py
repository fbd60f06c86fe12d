"""A backward with callbacks in plain JSON: what any language can do with custom derivatives, hooks and checkpoints."""

from __future__ import annotations

import httpx
import pytest

from gradwire_protocol.ops.callbacks import AFTER, BEFORE, INSTEAD

from .exchange import frame, post

LEAF = [["upload", ["payload", "float32", [2]]], ["requires_grad_", [0]]]
TWO = [{"values": [1.0, 2.0]}]


def values(reply: dict, at: int = 0) -> list[float]:
    return reply["values"][at]["values"]


def test_a_derivative_of_the_clients_own(http: httpx.Client, session: str) -> None:
    ops = [
        *LEAF,
        ["set_mode", [0]],
        ["mul", [0, 0]],  # 1: the forward, of which nothing is recorded
        ["set_mode", [1]],
        ["attach_function", ["SquareBackward", [0], [1], [0]]],  # 2: its place
        ["sum", [1]],  # 3
        ["begin_backward", [[3], [None], None, [2], [INSTEAD]]],  # 4
        ["advance", [4, 0, [], 1], 1],  # 5: the gradient that arrived
        ["mul", [5, 0]],  # 6
        ["mul", [6, "float"]],  # 7
        ["finish_backward", [4, 1, [7]], 0],
        ["grad_of", [0]],  # 8
    ]
    reply = post(http, session, frame(ops, reads=[5, 8], payloads=TWO, scalars=[2.0]))
    assert values(reply) == [1.0, 1.0]
    assert values(reply, 1) == [2.0, 4.0]


def test_a_hook_before_and_after_a_node(http: httpx.Client, session: str) -> None:
    ops = [
        *LEAF,
        ["exp", [0]],  # 1
        ["place_of", [1]],  # 2
        ["sum", [1]],  # 3
        ["begin_backward", [[3], [None], [0], [2, 2], [BEFORE, AFTER], False, False, False]],  # 4
        ["advance", [4, 0, [], 1], 1],  # 5
        ["mul", [5, "float"]],  # 6
        ["advance", [4, 1, [6], 2], 2],  # 7, 8: the gradient for the operand, and what arrived
        ["zeros_like", [7]],  # 9
        ["finish_backward", [4, 2, [9]], 1],  # 10
    ]
    reply = post(http, session, frame(ops, reads=[8, 7, 10], payloads=TWO, scalars=[3.0]))
    assert values(reply) == [3.0, 3.0]
    assert values(reply, 1) == pytest.approx([3 * 2.7182817, 3 * 7.3890562])
    assert values(reply, 2) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (["advance", [4, 1, [], 1], 1], "graph_error"),  # not the step it stands at
        (["finish_backward", [4, 0, []], 0], "graph_error"),  # there is a pause before the end
        (["advance", [3, 0, [], 1], 1], "graph_error"),  # not a backward
        (["finish_backward", [4, 0, [0]], 0], "invalid_argument"),  # nothing is asked for yet
        (["advance", [4, 0, [], 1, [3]], 1], "invalid_argument"),  # nothing is there to remove
        (["hand_over", [2]], "invalid_argument"),  # not a region
        (["next_place", [2, 7]], "invalid_argument"),
        (["let_go", [2, ["self"], [0, 1]]], "invalid_argument"),
        (["bring_back", [2, 0, "other"]], "invalid_argument"),
        (["rejoin", [0, 2, 5]], "invalid_argument"),
        (["place_of", [6]], "graph_error"),  # no history
        (["attach_function", ["F", [0], [1], [3]]], "invalid_argument"),
        (["begin_backward", [[3], [None], None, [2], [9]]], "invalid_argument"),
        (["attach_function", ["F" * 1001, [0], [1], [0]]], "invalid_argument"),
    ],
)
def test_misuse_is_an_error_and_the_session_goes_on(http: httpx.Client, session: str, wrong: list, code: str) -> None:
    ops = [
        *LEAF, ["exp", [0]], ["place_of", [1]], ["sum", [1]],
        ["begin_backward", [[3], [None], None, [2], [BEFORE]]], ["ones", [[2]]], ["ones", [[2]]], wrong,
    ]  # fmt: skip
    response = http.post(f"{session}/frames", json=frame(ops, payloads=TWO))
    assert response.status_code == 200, response.text
    assert response.json()["errors"][0]["code"] == code, response.json()
    assert values(post(http, session, frame([["ones", [[1]]]], reads=[0]))) == [1.0]


@pytest.mark.parametrize(("made", "kept"), [(["mul", [0, 0]], "self"), (["exp", [0]], "result")])
def test_what_a_client_took_and_did_not_bring_back_is_missed(
    http: httpx.Client, session: str, made: list, kept: str
) -> None:
    ops = [
        *LEAF,
        made,
        ["place_of", [1]],
        ["sum", [1]],
        ["let_go", [2, [kept], [-1]], 0],
        ["backward", [[3], [None]], 0],
    ]
    reply = http.post(f"{session}/frames", json=frame(ops, payloads=TWO)).json()
    assert [error["code"] for error in reply["errors"]] == ["graph_error"], reply


def test_a_backward_given_up_leaves_the_graph_usable(http: httpx.Client, session: str) -> None:
    ops = [
        *LEAF,
        ["exp", [0]],
        ["place_of", [1]],
        ["sum", [1]],
        ["begin_backward", [[3], [None], None, [2], [BEFORE]]],
        ["advance", [4, 0, [], 1], 1],
        ["abandon_backward", [4]],
        ["backward", [[3], [None]]],
        ["grad_of", [0]],
    ]
    reply = post(http, session, frame(ops, reads=[6], payloads=TWO))
    assert values(reply) == pytest.approx([2.7182817, 7.3890562])
