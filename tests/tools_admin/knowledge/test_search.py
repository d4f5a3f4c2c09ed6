"""What is found, in which order, and by whom."""

import asyncio

import pytest
from django.contrib.auth.models import Group

from tests.factories import make_user
from tests.fake_model import vector_of
from tests.tools_admin.connectors.contract import check_contract
from tests.tools_admin.knowledge.collection import embedding_route, make_collection, stored
from tools_admin.calls import Calls
from tools_admin.connectors.base import Setup, ToolSpec
from tools_admin.connectors.knowledge.connector import KnowledgeConnector
from tools_admin.knowledge.search import Meaning, search
from tools_admin.models import Connector, EmbeddingUse, KnowledgeDocument, Passage, Tool

pytestmark = pytest.mark.django_db
with_threads = pytest.mark.django_db(transaction=True)

RULES = """# Travel

## Hotels

A hotel may cost 120 euros a night.

## Trains

Trains are booked by the office.

# Holidays

Everybody has thirty days of holiday.
"""


def ask(user, collection: Connector, question: str, **more):
    call = Calls(collection.pk, user.pk if user else None).call
    return asyncio.run(call(ToolSpec("x", "", {}, key="search_documents"), {"question": question, **more}))


def test_a_question_finds_passages_by_any_of_its_words_and_their_forms():
    collection, ada = make_collection(), make_user()
    stored(collection, RULES)
    hits = search(ada, collection.pk, "What is the limit for hotels in Rome?", 5)
    assert [hit.place.heading for hit in hits] == ["Travel › Hotels"]
    assert search(ada, collection.pk, "lodging", 5) == []
    assert search(ada, collection.pk, "& | ! ' :* ()", 5) == []


def test_meaning_finds_what_words_do_not(fake_model):
    model, collection, ada = embedding_route(fake_model), make_collection(), make_user()
    stored(collection, RULES, model=model)
    meaning = Meaning(model.pk, vector_of("lodging"))
    assert search(ada, collection.pk, "lodging", 5, meaning)[0].place.heading == "Travel › Hotels"
    other = Meaning(model.pk + 1, vector_of("lodging"))
    assert search(ada, collection.pk, "lodging", 5, other) == []  # vectors of another model say nothing


@with_threads
def test_the_tool_gives_passages_with_the_links_to_cite_them(fake_model):
    model = embedding_route(fake_model, input_price=1_000_000)
    collection, ada = make_collection(), make_user()
    document = stored(collection, RULES, model=model)
    KnowledgeDocument.objects.update(name="rules [draft](x).md")
    result = ask(ada, collection, "How much may lodging cost?")
    passage = document.passages.get(heading="Travel › Hotels")
    assert f"[rules draft x .md, Travel › Hotels](/knowledge/passages/{passage.pk}/)" in result.content
    assert "120 euros" in result.content
    assert EmbeddingUse.objects.get(document=None).user == ada


@with_threads
def test_a_model_that_does_not_answer_leaves_the_words(fake_model):
    embedding_route(fake_model)
    collection, ada = make_collection(), make_user()
    stored(collection, RULES)
    fake_model.no_vectors = "busy"
    try:
        assert "120 euros" in ask(ada, collection, "hotel").content
    finally:
        fake_model.no_vectors = ""


@with_threads
def test_it_keeps_the_contract_of_connectors():
    collection, ada = make_collection(), make_user()
    setup = Setup(settings={"about": "Rules of travel."}, id=collection.pk, user_id=ada.pk)
    asyncio.run(check_contract(KnowledgeConnector(setup)))
    (spec,) = asyncio.run(KnowledgeConnector(setup).discover())
    assert "Rules of travel." in spec.description


def test_nobody_finds_what_is_not_theirs(fake_model):
    """All who may ask, all that there is: by words, by meaning, by the row."""
    model = embedding_route(fake_model)
    staff = Group.objects.create(name="Staff")
    people = {name: make_user(name) for name in ("owner", "member", "stranger")}
    people["disabled"] = make_user("disabled", is_active=False)
    people["root"] = make_user("root", is_superuser=True, is_staff=True)
    people["member"].groups.add(staff)
    people["disabled"].groups.add(staff)
    open_, closed = make_collection("Open"), make_collection("Closed", "search_closed")
    Tool.objects.get(name="search_closed").groups.add(staff)
    off = make_collection("Off", "search_off")
    documents = {
        "open": stored(open_, "secret word", model=model),
        "private": stored(open_, "secret word", people["owner"], model=model),
        "staff": stored(open_, "secret word", None, [staff], model),
        "closed": stored(closed, "secret word", model=model),
        "closed private": stored(closed, "secret word", people["owner"], model=model),
        "off": stored(off, "secret word", model=model),
    }
    Connector.objects.filter(pk=off.pk).update(enabled=False)
    expected = {
        "owner": {"open", "private"},
        "member": {"open", "staff", "closed"},
        "stranger": {"open"},
        "root": {"open"},
        "disabled": set(),
    }
    assert Passage.objects.filter(embedded_by=model).count() == len(documents)
    for name, person in people.items():
        seen = KnowledgeDocument.objects.visible_to(person)
        assert {key for key, document in documents.items() if document in seen} == expected[name], name
        rows = Passage.objects.visible_to(person).values_list("document", flat=True)
        assert {key for key, document in documents.items() if document.pk in rows} == expected[name], name
        for meaning in (None, Meaning(model.pk, vector_of("secret word"))):
            found = {
                Passage.objects.get(pk=hit.passage_id).document_id
                for collection in (open_, closed, off)
                for hit in search(person, collection.pk, "secret word", 10, meaning)
            }
            assert {key for key, document in documents.items() if document.pk in found} == expected[name], name


@with_threads
def test_a_call_without_a_person_finds_nothing():
    collection = make_collection()
    stored(collection, RULES)
    assert ask(None, collection, "hotel").is_error


def test_the_language_of_a_collection_may_change():
    collection, ada = make_collection(language="simple"), make_user()
    stored(collection, "Die Häuser sind teuer.")
    assert not search(ada, collection.pk, "Haus", 5)
    Connector.objects.filter(pk=collection.pk).update(settings={"language": "german"})
    Passage.objects.update(language="german")
    assert search(ada, collection.pk, "Haus", 5)


def test_a_question_is_never_part_of_the_statement(fake_model):
    model, collection, ada = embedding_route(fake_model), make_collection(), make_user()
    stored(collection, RULES)
    for text in ("'; DROP TABLE x; --", "%s %(a)s {visible}", "\\", "a" * 2_000, "ü" * 500, '"' * 9):
        search(ada, collection.pk, text, 5, Meaning(model.pk, vector_of(text)))
    assert Passage.objects.exists()
