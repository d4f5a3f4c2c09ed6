"""Search in documents: what is found by words alone and with meaning, and how long a question takes at 50,000 passages.

Usage: python -m benchmarks.knowledge [PASSAGES]; starts a PostgreSQL of its own. Recall: 24 questions of ours over 24
short rules, half of them in other words than the rule's; "meaning" is a stand-in that knows pairs of words with one
meaning, so the figures say what joining the two lists is worth, not how good a model is. Time: random vectors.
"""

import os
import random
import statistics
import sys
import time

import django

from agentapp.embedded.testing import services

# A rule, a question in its words, a question in other words.
RULES = [
    ("A hotel may cost 120 euros a night.", "price of a hotel night", "What may lodging cost?"),
    ("Trains are booked by the office.", "Who books trains?", "How do I get railway tickets?"),
    ("Everybody has thirty days of holiday.", "days of holiday", "How much leave is there?"),
    ("Laptops are replaced every four years.", "When are laptops replaced?", "When do I get a new computer?"),
    ("Whoever is ill calls before nine.", "call when ill", "What must I do when sick?"),
    ("Invoices are paid within two weeks.", "When are invoices paid?", "How soon are bills settled?"),
    ("The kitchen is cleaned on Fridays.", "cleaning of the kitchen", "Who tidies the canteen?"),
    ("Visitors sign the book at the door.", "Do visitors sign?", "What do guests have to do?"),
    ("Passwords have at least twelve signs.", "length of passwords", "How long must credentials be?"),
    ("Cars are parked behind the building.", "Where are cars parked?", "Where do vehicles go?"),
    ("Salaries arrive on the last working day.", "When do salaries arrive?", "On which date is the wage there?"),
    ("Complaints go to the manager.", "Where do complaints go?", "Whom does the boss hear grievances from?"),
]
OTHERS = [
    f"Rule {n} is about {word}, and says nothing else of use."
    for n, word in enumerate(
        ("lamps", "doors", "chairs", "gloves", "paint", "ropes", "bottles", "scales", "clocks", "boots", "maps", "keys")
    )
]
ALIKE = {
    "lodging": "hotel", "railway": "trains", "leave": "holiday", "computer": "laptops", "sick": "ill",
    "bills": "invoices", "canteen": "kitchen", "guests": "visitors", "credentials": "passwords", "vehicles": "cars",
    "wage": "salaries", "grievances": "complaints",
}  # fmt: skip
DIMENSIONS = 384


def recall() -> None:
    from tests import fake_model
    from tests.factories import make_user
    from tests.tools_admin.knowledge.collection import embedding_route, make_collection, stored
    from tools_admin.knowledge.search import Meaning, search

    fake_model.ALIKE.update(ALIKE)
    model = embedding_route(fake_model.FakeModel())
    collection, ada = make_collection(), make_user()
    for text in [rule for rule, _, _ in RULES] + OTHERS:
        stored(collection, text, model=model)
    for kind, column in (("in the rule's words", 1), ("in other words", 2)):
        found = {"words": 0, "words and meaning": 0}
        for row in RULES:
            meaning = Meaning(model.pk, fake_model.vector_of(row[column]))
            for name, used in (("words", None), ("words and meaning", meaning)):
                hits = search(ada, collection.pk, row[column], 3, used)
                found[name] += any(hit.text == row[0] for hit in hits)
        for name, count in found.items():
            print(f"recall@3, questions {kind}, by {name}: {count}/{len(RULES)}")


def durations(count: int) -> None:
    """A person who may see one document in ten, half of it in other collections."""
    from django.db import connection

    from accounts.models import User
    from tests.tools_admin.knowledge.collection import make_collection
    from tools_admin.knowledge.search import Meaning, search
    from tools_admin.knowledge.vectors import ensure_index
    from tools_admin.models import KnowledgeDocument, LanguageModel, Passage

    dice = random.Random(7)  # noqa: S311
    ada, bob = User.objects.get(username="ada"), User.objects.create(username="bob", password="!")
    collection, model = make_collection("Large", "search_large"), LanguageModel.objects.get(name="vectors")
    syllables = [f"{a}{b}" for a in "bdfgklmnprst" for b in "aeiou"]
    words = [f"{a}{b}x" for a in syllables for b in syllables]
    often = [1 / (300 + place) for place in range(len(words))]  # the most frequent one is in every fifth passage
    documents = [
        KnowledgeDocument(collection=collection, owner=ada if n % 10 == 0 else bob, name=f"d{n}", status="ready")
        for n in range(count // 50)
    ]
    KnowledgeDocument.objects.bulk_create(documents)
    began = time.perf_counter()
    for number in range(0, count, 2_000):
        Passage.objects.bulk_create(
            Passage(
                document=documents[n // 50],
                number=n % 50,
                language="english",
                embedded_by=model,
                text=" ".join(dice.choices(words, often, k=180)),
                embedding=[dice.gauss(0, 1) for _ in range(DIMENSIONS)],
            )
            for n in range(number, min(number + 2_000, count))
        )
    print(f"{count:,} passages of 180 words, {DIMENSIONS} dimensions, stored in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    ensure_index(DIMENSIONS)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    print(f"HNSW index made in {time.perf_counter() - began:.0f} s")
    for person, share in ((ada, "a tenth"), (bob, "nine tenths")):
        for name in ("words", "words and meaning"):
            taken = []
            for _ in range(40):
                vector = [dice.gauss(0, 1) for _ in range(DIMENSIONS)]
                meaning = Meaning(model.pk, vector) if name != "words" else None
                question = " ".join(dice.choices(words, often, k=4))
                began = time.perf_counter()
                assert search(person, collection.pk, question, 5, meaning)
                taken.append(1_000 * (time.perf_counter() - began))
            taken.sort()
            print(f"who sees {share}, by {name}: median {statistics.median(taken):.0f} ms, worst {taken[-1]:.0f} ms")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with services() as environment:
        os.environ.update(environment, DJANGO_SETTINGS_MODULE="agentapp.settings")
        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        recall()
        durations(count)
        from agentapp.database import release_connections

        release_connections()


if __name__ == "__main__":
    main()
