"""P-62: the state of a run, what is known across runs, and files are three stores: none of them needs another one."""

import pytest

from conversations import claims
from conversations.models import Artifact, Call, Run
from conversations.tools.search import search
from tests.factories import make_conversation, make_message, make_run, make_user


@pytest.mark.django_db
def test_a_run_goes_on_when_all_that_is_remembered_is_deleted() -> None:
    ada = make_user()
    remembered = make_conversation(ada, "Earlier")
    make_message(remembered, "The key is with Jonas")
    run = make_run(make_message(make_conversation(ada)), "queued")
    call = {"kind": "llm", "effect_class": "read", "state": "succeeded", "result": {}, "epoch": 1}
    Call.objects.create(run=run, key="react/1/llm", started_at=run.created_at, **call)
    file = {"filename": "x.txt", "content_type": "text/plain", "size": 1}
    Artifact.objects.create(run=make_run(make_message(remembered), "completed"), key="react/1/tool/0", **file)
    assert "Jonas" in search(run, "Jonas")
    remembered.delete()
    assert not Artifact.objects.exists()
    assert search(run, "Jonas").startswith("Nothing was found")
    claimed = claims.claim(run.id, "worker")
    assert claimed is not None and claimed.run == run.id
    assert Run.objects.get(id=run.id).calls.get().key == "react/1/llm"


@pytest.mark.django_db
def test_nobody_remembers_what_somebody_else_said() -> None:
    make_message(make_conversation(make_user("eve")), "The key is with Jonas")
    run = make_run(make_message(make_conversation(make_user("ada"))), "running")
    assert search(run, "Jonas").startswith("Nothing was found")
