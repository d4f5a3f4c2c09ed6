"""From a file to passages with vectors, and what becomes of it when something fails on the way."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Budget
from agentapp.file_names import plain_name
from conversations.balances import balances
from tests.factories import make_user
from tests.fake_model import FakeModel
from tests.paperwork import locked_pdf, pdf
from tests.tools_admin.knowledge.collection import add, embedding_route, make_collection, stored
from tools_admin.knowledge import reading
from tools_admin.knowledge.embedding import can_pay
from tools_admin.knowledge.storing import NotTaken, embed_again, read_again
from tools_admin.models import EmbeddingUse, KnowledgeDocument, LanguageModel, Passage, Provider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def alone(fake_model: FakeModel):
    """No vectors from elsewhere."""
    fake_model.no_vectors = ""
    yield
    fake_model.no_vectors = ""


def fresh(document: KnowledgeDocument) -> KnowledgeDocument:
    document.refresh_from_db()
    return document


def test_a_document_becomes_passages_with_vectors_and_their_price(fake_model):
    model = embedding_route(fake_model, input_price=2_000_000)
    document = add(make_collection(), pdf("Hotels cost up to 120 a night.", "Trains come first."), "travel.pdf")
    assert document.status == "queued"
    reading.read_documents()
    assert (fresh(document).status, document.problem, document.media_type) == ("ready", "", "application/pdf")
    first, second = document.passages.all()
    assert (first.text, first.page, second.page) == ("Hotels cost up to 120 a night.", 1, 2)
    assert len(first.embedding) == 256
    assert first.embedded_by == model
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_indexes WHERE indexname = 'passage_vectors_256'")
        assert cursor.fetchone() == (1,)
    use = EmbeddingUse.objects.get()
    assert (use.document, use.tokens, use.cost) == (document, 20, 40)


def test_vectors_are_paid_by_their_owner_and_not_made_when_nothing_is_left(fake_model):
    embedding_route(fake_model, input_price=2_000_000)
    ada = make_user()
    budget = Budget.objects.create(user=ada, limit=30)
    Budget.objects.create(user=make_user("grace"), limit=30)
    document = add(make_collection(), "Hotels cost up to 120 a night.", owner=ada)
    reading.read_documents()
    assert fresh(document).status == "ready"
    budget.refresh_from_db()
    assert budget.used == EmbeddingUse.objects.get().cost > 0
    assert {b.used - b.recorded for b in balances()} == {0}
    Budget.objects.update(used=30)
    other = add(make_collection("More", "more"), "Trains come first.", owner=ada)
    reading.read_documents()
    assert (fresh(other).status, other.passages.get().embedding) == ("embedding", None)
    assert EmbeddingUse.objects.count() == 1
    assert not can_pay(ada.pk)
    assert can_pay(None)


def test_without_an_embedding_model_words_are_enough():
    document = add(make_collection(), "# Travel\n\nHotels cost up to 120 a night.")
    reading.read_documents()
    assert fresh(document).status == "ready"
    passage = document.passages.get()
    assert (passage.heading, passage.embedding) == ("Travel", None)


def test_what_cannot_be_read_says_why():
    document = add(make_collection(), locked_pdf("x", password="sesame"), "x.pdf")
    reading.read_documents()
    assert (fresh(document).status, document.problem) == ("failed", "encrypted")
    assert "password" in document.explanation


def test_a_file_that_is_gone_is_a_failure_and_not_a_loop():
    document = add(make_collection(), "text")
    document.path.unlink()
    reading.read_documents()
    assert fresh(document).status == "failed"


def test_a_worker_that_died_is_followed_by_another_which_goes_on_where_it_was(fake_model):
    model = embedding_route(fake_model)
    document = add(make_collection(), "\n\n".join(f"# Part {n}\n\nText {n}." for n in range(70)))
    reading.read_documents()
    Passage.objects.filter(document=document, number__gte=40).update(embedding=None, embedded_by=None)
    before = len(fake_model.embedded)
    KnowledgeDocument.objects.filter(pk=document.pk).update(
        status="embedding",
        claim="00000000-0000-0000-0000-000000000001",
        claimed_until=timezone.now() + timedelta(hours=1),
    )
    reading.read_documents()
    assert fresh(document).status == "embedding"  # somebody is at it
    KnowledgeDocument.objects.filter(pk=document.pk).update(claimed_until=timezone.now() - timedelta(seconds=1))
    reading.read_documents()
    assert fresh(document).status == "ready"
    assert sum(len(request["input"]) for request in fake_model.embedded[before:]) == 30
    assert not document.passages.exclude(embedded_by=model).exists()


def test_a_worker_that_lost_its_document_writes_nothing():
    document = add(make_collection(), "text")
    late = reading.claim_next()
    KnowledgeDocument.objects.filter(pk=document.pk).update(claimed_until=timezone.now() - timedelta(seconds=1))
    reading.read_documents()
    passage = document.passages.get()
    with pytest.raises(reading.Lost):
        reading._set(late, status="failed")
    assert document.passages.get() == passage
    assert fresh(document).status == "ready"


def test_what_kills_its_worker_again_and_again_is_given_up():
    document = add(make_collection(), "text")
    for _ in range(3):
        assert reading.claim_next() is not None
        KnowledgeDocument.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    assert reading.claim_next() is None
    assert (fresh(document).status, document.problem) == ("failed", "crashed")
    read_again([document])
    reading.read_documents()
    assert fresh(document).status == "ready"


def test_what_ends_its_worker_while_it_is_indexed_stays_found_by_its_words(fake_model):
    embedding_route(fake_model)
    document = stored(make_collection(), "Text.")
    KnowledgeDocument.objects.update(status="embedding", attempts=3)
    reading.read_documents()
    assert (fresh(document).status, document.problem) == ("ready", "not_embedded")


def test_an_endpoint_that_does_not_answer_is_asked_again_later_and_then_left(fake_model):
    embedding_route(fake_model)
    fake_model.no_vectors = "out of memory"
    document = add(make_collection(), "Hotels cost up to 120 a night.")
    reading.read_documents()
    assert fresh(document).status == "embedding"
    assert document.claimed_until > timezone.now()
    assert document.passages.exists()  # found by its words meanwhile
    for _ in range(2):
        KnowledgeDocument.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
        reading.read_documents()
    assert (fresh(document).status, document.problem) == ("ready", "not_embedded")
    fake_model.no_vectors = ""
    embed_again([document])
    reading.read_documents()
    assert (fresh(document).status, document.problem) == ("ready", "")
    assert document.passages.get().embedding is not None


def test_another_model_embeds_anew(fake_model):
    old = embedding_route(fake_model)
    document = add(make_collection(), "Hotels cost up to 120 a night.")
    reading.read_documents()
    new = LanguageModel.objects.create(provider=Provider.objects.get(name="Vectors"), name="better", kind="embedding")
    old.entries.update(model=new)
    embed_again([document])
    reading.read_documents()
    assert document.passages.get().embedded_by == new


def test_a_deleted_document_takes_its_file_and_passages_along():
    document = add(make_collection(), "text")
    reading.read_documents()
    path = document.path
    assert path.is_file()
    document.delete()
    assert not path.exists()
    assert not Passage.objects.exists()


def test_a_name_is_only_a_text():
    document = add(make_collection(), "x", "../../etc/passwd")
    assert (document.name, document.path.name) == ("passwd", document.id.hex)
    names = {"C:\\temp\\plan.pdf": "plan.pdf", "a\u202etxt.exe": "atxt.exe", "..": "", "x\0y": "xy"}
    assert {name: plain_name(name) for name in names} == names


def test_the_room_of_a_person_has_an_end(monkeypatch):
    monkeypatch.setattr("tools_admin.knowledge.storing.MOST_OWN", 1)
    collection, owner = make_collection(), make_user()
    add(collection, "one", owner=owner)
    with pytest.raises(NotTaken, match="Delete some"):
        add(collection, "two", owner=owner)
    with pytest.raises(NotTaken, match="empty"):
        add(collection, "", owner=None)
    assert KnowledgeDocument.objects.count() == 1
