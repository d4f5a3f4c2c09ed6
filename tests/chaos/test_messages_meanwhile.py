"""What is said to a running agent is read exactly once, becomes the next turn, or goes back to its writer."""

from typing import Any

from tests.chaos.installation import Chaos, died
from tests.conversations.test_main_job import call
from tests.conversations.test_socket import Page, page, send
from tests.product import Person, eventually


def _say(mine: Page, ack: dict[str, Any], text: str) -> str:
    """Sends a message into the running conversation; its id."""
    said = send(mine, text, text, ack["conversation"])
    assert (said["type"], said["injected"]) == ("ack", True), said
    return str(said["message"])


def _state(chaos: Chaos, message: str) -> str:
    ((state,),) = chaos.sql("SELECT state FROM conversations_interrupt WHERE message_id = %s", message)
    return str(state)


def _times_told(request: dict[str, Any], text: str) -> int:
    return sum(str(message["content"]).count(text) for message in request["messages"])


def _injected(chaos: Chaos, run: str) -> list[str]:
    rows = chaos.sql(
        "SELECT data->>'content' FROM conversations_runevent WHERE run_id = %s AND channel = 'inject' ORDER BY seq", run
    )
    return [content for (content,) in rows]


def test_a_message_outlives_the_worker_that_had_not_read_it(chaos: Chaos, person: Person) -> None:
    worker = chaos.die_at("K8")
    chaos.hold()
    with page(chaos, person) as mine:
        ack = send(mine, "use hold_line on unread")
        eventually(chaos.is_holding, "the tool runs")
        message = _say(mine, ack, "And in green, please")
    (chaos.effects / "hold").unlink()
    died(worker)
    chaos.restore()
    assert chaos.ended(person, ack["run"])["status"] == "completed"
    assert _injected(chaos, ack["run"]) == ["And in green, please"]
    assert _state(chaos, message) == "admitted"


def test_a_message_that_a_dying_worker_was_showing_to_the_model_is_read_once(chaos: Chaos, person: Person) -> None:
    def silent_after_the_tool(request: dict[str, Any]) -> dict[str, Any]:
        if request["messages"][-1]["role"] != "tool" and _times_told(request, "In blue"):
            chaos.model.token_delay = 10.0
        return chaos.answer(request)

    chaos.model.brain = silent_after_the_tool
    chaos.hold()
    with page(chaos, person) as mine:
        ack = send(mine, "use hold_line on shown")
        eventually(chaos.is_holding, "the tool runs")
        message = _say(mine, ack, "In blue")
        (chaos.effects / "hold").unlink()
        eventually(lambda: chaos.model.token_delay, "the model has been shown the message")
        assert _state(chaos, message) == "read"
        mine.send(type="recall", message=message)
        assert mine.until(lambda b: b.get("type") == "error")["code"] == "already_read"
    chaos.end("worker")
    before = len(chaos.model.requests)
    chaos.restore()
    assert chaos.ended(person, ack["run"])["status"] == "completed"
    assert _injected(chaos, ack["run"]) == ["In blue"]
    assert [_times_told(request, "In blue") for request in chaos.model.requests[before:]] == [1, 1]


def test_a_message_is_read_by_the_next_call_though_nothing_woke_the_worker(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    asked = len(chaos.model.requests)
    run = chaos.ask(person, "use hold_line on unwoken")
    eventually(chaos.is_holding, "the tool runs")
    chaos.down("valkey")
    address = f"/api/v1/conversations/{run['conversation']}/messages"
    status, said = call(chaos, person, "POST", address, {"content": "In red"})
    (chaos.effects / "hold").unlink()
    assert (status, said["injected"]) == (202, True)
    eventually(lambda: len(chaos.model.requests) > asked + 1, "the model was called again")
    chaos.up("valkey")
    chaos.ended(person, run["id"])
    assert _times_told(chaos.model.requests[asked + 1], "In red") == 1
    assert _injected(chaos, run["id"]) == ["In red"]


def test_a_recalled_message_is_never_shown_to_the_model(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    asked = len(chaos.model.requests)
    with page(chaos, person) as mine:
        ack = send(mine, "use hold_line on recalled")
        eventually(chaos.is_holding, "the tool runs")
        kept, taken_back, by_api = (_say(mine, ack, text) for text in ("Keep this", "Forget this", "And that"))
        assert call(chaos, chaos.person(), "POST", f"/api/v1/messages/{by_api}/recall")[0] == 404
        assert call(chaos, person, "POST", f"/api/v1/messages/{by_api}/recall")[1]["recalled"]
        assert call(chaos, person, "POST", f"/api/v1/messages/{by_api}/recall")[0] == 200
        mine.send(type="recall", message=taken_back)
        told = mine.until(lambda b: b.get("channel") == "message" and b["data"]["id"] == taken_back)
        while not told["data"]["recalled"]:
            told = mine.until(lambda b: b.get("channel") == "message" and b["data"]["id"] == taken_back)
        assert told["data"]["content"] == "Forget this"
        (chaos.effects / "hold").unlink()
        chaos.ended(person, ack["run"])
        mine.send(type="recall", message=kept)
        assert mine.until(lambda b: b.get("type") == "error")["code"] == "already_read"
    assert _injected(chaos, ack["run"]) == ["Keep this"]
    requests = chaos.model.requests[asked:]
    assert sum(_times_told(request, "Forget this") + _times_told(request, "And that") for request in requests) == 0
    assert _times_told(requests[-1], "Keep this") == 1


def _speaks_slowly(chaos: Chaos) -> Any:
    """The last phase of a run is slow, so that something can be said when nobody listens any more."""

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        chaos.model.token_delay = 0.0 if request.get("tools") else 0.3
        return chaos.answer(request)

    return brain


def _next_run(chaos: Chaos, message: str) -> str | None:
    rows = chaos.sql("SELECT id FROM conversations_run WHERE message_id = %s", message)
    assert len(rows) <= 1
    return str(rows[0][0]) if rows else None


def test_what_nobody_read_becomes_the_next_turn(chaos: Chaos, person: Person) -> None:
    chaos.model.brain = _speaks_slowly(chaos)
    with page(chaos, person) as mine:
        ack = send(mine, "use append_line on over")
        eventually(lambda: chaos.events(ack["run"], "answer", "start"), "the answer has begun")
        message = _say(mine, ack, "Good evening")
    chaos.ended(person, ack["run"])
    following = eventually(lambda: _next_run(chaos, message), "the next turn has begun")
    assert chaos.ended(person, following)["answer"] == "Hello! You wrote: Good evening"
    told = [m["content"] for m in chaos.model.requests[-1]["messages"] if m["role"] != "system"]
    assert told == ["use append_line on over", "Done with over.", "Good evening"]
    assert _state(chaos, message) == "handed_over"


def test_the_next_turn_begins_once_though_the_worker_died_before_the_end(chaos: Chaos, person: Person) -> None:
    worker = chaos.die_at("K12")
    chaos.model.brain = _speaks_slowly(chaos)
    with page(chaos, person) as mine:
        ack = send(mine, "use append_line on K12-over")
        eventually(lambda: chaos.events(ack["run"], "answer", "start"), "the answer has begun")
        message = _say(mine, ack, "Good night")
    died(worker)
    chaos.restore()
    chaos.ended(person, ack["run"])
    following = eventually(lambda: _next_run(chaos, message), "the next turn has begun")
    assert chaos.ended(person, following)["answer"] == "Hello! You wrote: Good night"
    conversation = "SELECT count(*) FROM conversations_run WHERE conversation_id = %s"
    assert chaos.sql(conversation, ack["conversation"]) == [(2,)]


def test_after_a_failure_what_nobody_read_becomes_the_next_turn(chaos: Chaos, person: Person) -> None:
    def fails_after_the_tool(request: dict[str, Any]) -> dict[str, Any]:
        if any(message["role"] == "tool" for message in request["messages"]):
            return {"status": 401, "error": "no"}
        return chaos.answer(request)

    chaos.model.brain = fails_after_the_tool
    chaos.hold()
    with page(chaos, person) as mine:
        ack = send(mine, "use hold_line on failing")
        eventually(chaos.is_holding, "the tool runs")
        messages = [_say(mine, ack, text) for text in ("First", "Second")]
    (chaos.effects / "hold").unlink()
    assert chaos.ended(person, ack["run"])["status"] == "failed"
    following = eventually(lambda: _next_run(chaos, messages[1]), "the next turn has begun")
    assert _next_run(chaos, messages[0]) is None
    assert chaos.ended(person, following)["status"] == "completed"
    told = [m["content"] for m in chaos.model.requests[-1]["messages"] if m["role"] == "user"]
    assert told[-2:] == ["First", "Second"]


def test_after_a_stop_what_nobody_read_goes_back_to_its_writer(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    with page(chaos, person) as mine:
        ack = send(mine, "use hold_line on given-back")
        eventually(chaos.is_holding, "the tool runs")
        message = _say(mine, ack, "Not yet said")
        mine.send(type="cancel", run=ack["run"])
        told = mine.until(lambda b: b.get("channel") == "message" and b["data"]["recalled"])
    assert (told["data"]["id"], told["data"]["content"]) == (message, "Not yet said")
    chaos.ended(person, ack["run"])
    assert _next_run(chaos, message) is None
    assert _state(chaos, message) == "returned"
    address = f"/api/v1/conversations/{ack['conversation']}/collect"
    given = [call(chaos, person, "POST", address)[1]["items"] for _ in range(2)]
    assert [[item["id"] for item in items] for items in given] == [[message], []]
    assert _state(chaos, message) == "recalled"
