"""Documents for people: the page, the API, the admin, and a passage that an answer cites."""

import pytest
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.factories import make_user
from tests.tools_admin.knowledge.collection import make_collection, stored
from tools_admin.models import KnowledgeDocument, Passage

pytestmark = pytest.mark.django_db


def file(name: str = "notes.md", content: bytes = b"# Notes\n\nText.") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


@pytest.fixture
def ada(client: Client):
    user = make_user()
    client.force_login(user)
    return user


def test_a_program_adds_sees_and_deletes_its_document(client, ada, django_capture_on_commit_callbacks):
    collection = make_collection(uploads=True, about="Rules.")
    assert client.get("/api/v1/collections").json()["items"] == [
        {"id": collection.pk, "name": "Rules", "about": "Rules.", "uploads": True}
    ]
    path = f"/api/v1/collections/{collection.pk}/documents"
    answer = client.post(path, {"file": file()})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["status"], made["mine"], made["problem"]) == ("notes.md", "queued", True, "")
    assert client.get(path).json() == {"items": [made], "next": None}
    assert client.get(f"/api/v1/documents/{made['id']}").json() == made
    row = KnowledgeDocument.objects.get()
    assert (row.owner, row.path.read_bytes()) == (ada, b"# Notes\n\nText.")
    with django_capture_on_commit_callbacks() as after:
        assert client.delete(f"/api/v1/documents/{made['id']}").status_code == 204
    assert row.path.exists(), "a deletion that is rolled back takes no file"
    for callback in after:
        callback()
    assert not row.path.exists()


def test_what_is_not_taken_says_why_and_leaves_nothing(client, ada):
    closed, open_ = make_collection("Closed"), make_collection("Open", "search_open", uploads=True)
    answer = client.post(f"/api/v1/collections/{closed.pk}/documents", {"file": file()})
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        "Only administrators add documents to this collection.",
    )
    path = f"/api/v1/collections/{open_.pk}/documents"
    assert client.post(path, {"file": file(content=b"")}).json()["detail"] == "The file is empty."
    assert client.post(path, {}).status_code == 422
    assert client.post(path, {"file": "no file"}).status_code == 422
    assert not KnowledgeDocument.objects.exists()


def test_a_shared_document_is_not_for_people_to_delete(client, ada):
    document = stored(make_collection(), "Text.")
    assert client.get(f"/api/v1/documents/{document.pk}").status_code == 200
    assert client.delete(f"/api/v1/documents/{document.pk}").status_code == 404
    assert client.post(reverse("delete_document", args=[document.pk])).status_code == 404


def test_ones_own_can_be_deleted_where_the_collection_was_closed(client, ada):
    collection = make_collection(uploads=True)
    document = stored(collection, "Text.", ada)
    collection.tools.update(enabled=False)
    assert "rules.md" in client.get(reverse("documents")).content.decode()
    assert client.delete(f"/api/v1/documents/{document.pk}").status_code == 204


def test_the_page_teaches_the_first_step(client, ada):
    assert "There is no collection of documents yet." in client.get(reverse("documents")).content.decode()
    collection = make_collection()
    assert "an administrator allows it" in client.get(reverse("documents")).content.decode()
    collection.settings["uploads"] = True
    collection.save()
    assert "You have no documents yet." in client.get(reverse("documents")).content.decode()


def test_the_page_lists_ones_own_and_what_is_shared(client, ada, django_assert_max_num_queries):
    collection = make_collection(uploads=True)
    stored(collection, "Text.", ada)
    stored(collection, "Text.", make_user("bob"))
    KnowledgeDocument.objects.filter(owner=ada).update(name="mine.pdf", status="failed", problem="encrypted")
    KnowledgeDocument.objects.filter(owner__username="bob").update(name="of-bob.pdf")
    KnowledgeDocument.objects.filter(pk=stored(collection, "Text.").pk).update(name="<b>shared</b>.pdf")
    with django_assert_max_num_queries(5):
        page = client.get(reverse("documents")).content.decode()
    assert "mine.pdf" in page
    assert "protected by a password" in page
    assert "&lt;b&gt;shared&lt;/b&gt;.pdf" in page
    assert "of-bob.pdf" not in page


def test_without_scripts_a_form_does_it(client, ada):
    collection = make_collection(uploads=True)
    form = {"collection": collection.pk, "file": [file("a.md"), file("b.md", b"")]}
    page = client.post(reverse("documents"), form, follow=True).content.decode()
    assert "1 document is being read." in page
    assert "b.md: The file is empty." in page
    document = KnowledgeDocument.objects.get()
    page = client.post(reverse("delete_document", args=[document.pk]), follow=True).content.decode()
    assert "a.md is deleted." in page
    for number in ("", "x", "9" * 30, str(collection.pk + 1)):
        assert client.post(reverse("documents"), {"collection": number, "file": file()}).status_code == 404


def test_a_citation_opens_the_passage_between_its_neighbours(client, ada):
    document = stored(make_collection(), "\n\n".join(f"# Part {n}\n\nText <i>{n}</i>." for n in range(9)))
    cited = document.passages.get(number=4)
    page = client.get(reverse("passage", args=[cited.pk])).content.decode()
    assert page.count("passage-cited") == 1
    assert "Text &lt;i&gt;4&lt;/i&gt;." in page
    assert [n for n in range(9) if f"Text &lt;i&gt;{n}&lt;" in page] == [2, 3, 4, 5, 6]
    rows = client.get(f"/api/v1/passages/{cited.pk}").json()["items"]
    assert [row["place"] for row in rows] == [f"Part {n}" for n in range(2, 7)]


def test_a_passage_of_others_is_nobodys(client, ada):
    collection = make_collection()
    theirs = stored(collection, "Text.", make_user("bob")).passages.get()
    group = Group.objects.create(name="Board")
    boards = stored(collection, "Text.", None, [group]).passages.get()
    for passage in (theirs, boards):
        assert client.get(reverse("passage", args=[passage.pk])).status_code == 404
        assert client.get(f"/api/v1/passages/{passage.pk}").status_code == 404
    ada.groups.add(group)
    assert client.get(reverse("passage", args=[boards.pk])).status_code == 200
    collection.tools.update(enabled=False)
    assert client.get(reverse("passage", args=[boards.pk])).status_code == 404


def test_an_administrator_adds_many_at_once(admin_client):
    collection, group = make_collection(), Group.objects.create(name="Staff")
    path = reverse("admin:tools_admin_knowledgedocument_add")
    assert "Add documents" in admin_client.get(path, {"collection": collection.pk}).content.decode()
    form = {
        "collection": collection.pk,
        "groups": [group.pk],
        "documents": [file("a.md"), file("b.md"), file("c.md", b"")],
    }
    page = admin_client.post(path, form, follow=True).content.decode()
    assert "2 documents are being read." in page
    assert "c.md: The file is empty." in page
    rows = KnowledgeDocument.objects.order_by("name")
    assert [(row.name, row.owner, row.groups.get()) for row in rows] == [("a.md", None, group), ("b.md", None, group)]


def test_an_administrator_has_documents_read_and_embedded_anew(admin_client):
    document = stored(make_collection(), "Text.")
    path = reverse("admin:tools_admin_knowledgedocument_changelist")
    for action, status in (("embed_anew", "embedding"), ("read_anew", "queued")):
        admin_client.post(path, {"action": action, "_selected_action": [document.pk]})
        document.refresh_from_db()
        assert document.status == status
    assert (
        admin_client.get(reverse("admin:tools_admin_knowledgedocument_change", args=[document.pk])).status_code == 200
    )


def test_a_collection_is_set_up_in_the_admin(admin_client):
    path = reverse("admin:tools_admin_connector_add") + "?kind=knowledge"
    form = {
        "name": "Handbook",
        "about": "Rules.",
        "language": "german",
        "timeout": "30",
        "enabled": "on",
        "uploads": "on",
    }
    assert admin_client.post(path, form).status_code == 302
    from tools_admin.models import Connector

    collection = Connector.objects.get(kind="knowledge")
    assert collection.settings == {"about": "Rules.", "language": "german", "uploads": True}
    page = admin_client.get(reverse("admin:tools_admin_connector_change", args=[collection.pk])).content.decode()
    assert f"?collection={collection.pk}" in page
    document = stored(collection, "Text.")
    form["language"] = "english"
    admin_client.post(reverse("admin:tools_admin_connector_change", args=[collection.pk]), form)
    assert Passage.objects.get(document=document).language == "english"
