"""Every action of the socket, walked: what a stranger, a key of another scope and a dead sign-in get."""

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from accounts.scopes import READING, Scope
from conversations.consumers import _ACTIONS
from tests.conversations.test_socket import Page, page
from tests.product import Person, Product


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """Of somebody else, by product; made once."""
    return {}


def actions_on(product: Product, rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Each action, on what belongs to somebody else."""
    if not rows:
        owner = product.person()
        code = f"import json; from tests.fuzz_rows import rows_of; print(json.dumps(rows_of({owner.id})))"
        rows |= json.loads(product.manage("shell", "--no-imports", "-c", code))
    a = {name: values[0] for name, values in rows.items()}
    return [
        {"type": "send", "conversation": a["conversation"], "content": "Hello"},
        {"type": "send", "content": "Hello", "attachments": [a["attachment"]]},
        {"type": "recall", "message": a["unread"]},
        {"type": "cancel", "run": a["run"]},
        {"type": "retry", "run": a["ended_run"]},
        {"type": "decide", "approval": a["approval"], "decision": "approve"},
        {"type": "decide", "approval": a["approval"], "decision": "withdraw"},
        {"type": "resolve", "run": a["doubtful_run"], "call": "react/1/tool/0", "outcome": "done"},
        {"type": "answer", "run": a["asking_run"], "request": a["question"], "value": {"city": "Rome"}},
        {"type": "watch", "conversation": a["conversation"]},
        {"type": "unwatch", "conversation": a["conversation"]},
    ]


def told(client: Page, action: dict[str, Any]) -> str:
    """The code of the refusal; empty when the action was not refused."""
    client.send(**action)
    client.send(type="nonsense")
    code = str(client.until(lambda b: b.get("type") == "error")["code"])
    if code == "bad_request":
        return ""
    client.until(lambda b: b.get("code") == "bad_request")
    return code


STATE = """
SELECT (SELECT count(*) FROM conversations_message), (SELECT count(*) FROM conversations_run),
       (SELECT string_agg(state, ',' ORDER BY id) FROM conversations_approval),
       (SELECT string_agg(state, ',' ORDER BY id) FROM conversations_question),
       (SELECT count(*) FROM conversations_run WHERE cancel_requested_at IS NOT NULL)
"""


@pytest.mark.parametrize("way", ["cookie", "header"])
def test_a_stranger_does_nothing_by_the_socket(product: Product, rows: dict[str, Any], way: str) -> None:
    actions, stranger = actions_on(product, rows), product.person()
    assert {action["type"] for action in actions} == set(_ACTIONS)
    before = product.sql(STATE)
    with connected(product, stranger, way) as client:
        answers = {json.dumps(action): told(client, action) for action in actions}
    assert set(answers.values()) - {""} == {"not_found"}
    assert [json.loads(action)["type"] for action, code in answers.items() if not code] == ["unwatch"]
    assert product.sql(STATE) == before


def connected(product: Product, person: Person, way: str) -> Any:
    return page(product, person) if way == "cookie" else page(product, person, Cookie="", **person.bearer)


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope in READING])
def test_a_key_acts_by_the_socket_as_its_scope_says(product: Product, rows: dict[str, Any], scope: Scope) -> None:
    person = product.person()
    product.execute("UPDATE accounts_apikey SET scopes = %s WHERE user_id = %s", [str(scope)], person.id)
    with connected(product, person, "header") as client:
        for action in actions_on(product, rows):
            refused = told(client, action) == "insufficient_scope"
            assert refused == (scope not in _ACTIONS[action["type"]][1]), action


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_user SET is_active = false WHERE id = %s",
        "DELETE FROM django_session WHERE session_key = %s",
        "UPDATE accounts_user SET password = 'another' WHERE id = %s",
    ],
)
def test_a_dead_session_opens_no_socket(product: Product, statement: str) -> None:
    person = product.person()
    product.execute(statement, person.session if "session_key" in statement else person.id)
    headers = {"Cookie": f"sessionid={person.session}"}
    address = f"{product.url.replace('http', 'ws')}/ws/"
    with (
        connect(address, additional_headers=headers, origin=Origin(product.url)) as socket,
        pytest.raises(ConnectionClosed) as closed,
    ):
        socket.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
