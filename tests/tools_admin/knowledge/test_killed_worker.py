"""A real worker that is killed while it reads, and the one that comes after it."""

from pathlib import Path

import httpx2

from tests.paperwork import pdf
from tests.product import Product, eventually
from tests.tools_admin.knowledge.in_product import close_handbook, open_handbook

PAGES = 1_200


def test_a_document_survives_the_death_of_its_worker(product: Product) -> None:
    collection, person = open_handbook(product), product.person()
    try:
        files = {"file": ("long.pdf", pdf(*(f"Page {n} of the handbook." for n in range(PAGES))))}
        path = f"{product.url}/api/v1/collections/{collection}/documents"
        made = httpx2.post(path, files=files, headers=person.bearer).json()

        def status() -> str:
            ((found,),) = product.sql("SELECT status FROM tools_admin_knowledgedocument WHERE id = %s", made["id"])
            return str(found)

        eventually(lambda: status() == "reading" and children(), "it is being read")
        product.end("worker")
        eventually(lambda: not children(), "the child went with its worker")
        product.restore()
        eventually(lambda: status() == "ready", "it is ready")
        query = (
            "SELECT count(*), count(embedding), count(DISTINCT number) FROM tools_admin_passage WHERE document_id = %s"
        )
        assert product.sql(query, made["id"]) == [(PAGES, PAGES, PAGES)]
    finally:
        close_handbook(product)


def children() -> list[str]:
    """Confined children that read documents of this machine's workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if b"confined_child.py" in text and b"readers.pdf" in text:
            found.append(path.parent.name)
    return found
