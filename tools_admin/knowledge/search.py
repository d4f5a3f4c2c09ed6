"""Passages for a question, by words and by meaning, in one statement that also says whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction

from accounts.models import User
from tools_admin.documents.parsing import Place
from tools_admin.knowledge.vectors import MOST_INDEXED
from tools_admin.knowledge_models import KnowledgeDocument

CANDIDATES = 60  # of each kind, before the two lists are joined
RANK_CONSTANT = 60  # of reciprocal rank fusion: how little the first places differ


@dataclass(frozen=True, slots=True)
class Hit:
    passage_id: int
    document: str
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's vector, and the model that made it: only passages of the same model are compared."""

    model_id: int
    vector: Sequence[float]


def search(user: User, collection_id: int, question: str, limit: int, meaning: Meaning | None = None) -> list[Hit]:
    """The best first, of this collection's documents that the person may see. The filter is part of the statement."""
    visible = KnowledgeDocument.objects.visible_to(user).filter(collection=collection_id).order_by()
    try:
        ids, values = visible.values("pk").query.sql_with_params()
    except EmptyResultSet:  # no document for somebody who is disabled
        return []
    parts = [_WORDS, *([_meaning(len(meaning.vector))] if meaning else [])]
    statement = _STATEMENT.format(visible=ids, found=" UNION ALL ".join(parts))
    parameters: list[Any] = [*values, collection_id, question, CANDIDATES]
    if meaning:
        parameters += [str(list(meaning.vector)), meaning.model_id, CANDIDATES]
    with transaction.atomic(), connection.cursor() as cursor:
        # Rows of others are skipped while the index is walked, not after it gave its first ones.
        cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        cursor.execute(statement, [*parameters, RANK_CONSTANT, limit])
        rows = cursor.fetchall()
    return [Hit(number, name, text, Place(page, row, heading)) for number, name, text, page, row, heading in rows]


# A question is rarely a list of words that all occur: any of them counts, and those that are rare or many rank higher.
_STATEMENT = """
WITH visible (id) AS ({visible}),
asked AS (
    SELECT replace(plainto_tsquery(coalesce(settings->>'language', 'simple')::regconfig, asked.question)::text,
                   ' & ', ' | ')::tsquery AS query
    FROM tools_admin_connector, (SELECT %s::bigint AS collection, %s::text AS question) asked
    WHERE id = asked.collection
),
found AS ({found})
SELECT passage.id, document.name, passage.text, passage.page, passage.row, passage.heading
FROM (SELECT id, sum(1.0 / (%s + rank)) AS score FROM found GROUP BY id) best
JOIN tools_admin_passage passage ON passage.id = best.id
JOIN tools_admin_knowledgedocument document ON document.id = passage.document_id
ORDER BY best.score DESC, passage.id
LIMIT %s
"""

_WORDS = """(
    SELECT id, row_number() OVER (ORDER BY relevance DESC, id) AS rank FROM (
        SELECT passage.id, ts_rank(search, query, 1) AS relevance
        FROM tools_admin_passage passage, asked
        WHERE search @@ query AND document_id IN (SELECT id FROM visible)
        ORDER BY relevance DESC, passage.id LIMIT %s
    ) nearest_words
)"""


def _meaning(dimensions: int) -> str:
    """The list of ids keeps the index's order: joined, all vectors would be compared and then sorted."""
    kind = f"halfvec({dimensions})" if dimensions <= MOST_INDEXED else "vector"
    return f"""(
    SELECT id, row_number() OVER (ORDER BY distance, id) AS rank FROM (
        SELECT passage.id, embedding::{kind} <=> %s::{kind} AS distance
        FROM tools_admin_passage passage
        WHERE vector_dims(embedding) = {dimensions} AND embedded_by_id = %s
        AND document_id = ANY (ARRAY(SELECT id FROM visible))
        ORDER BY distance LIMIT %s
    ) nearest
)"""  # noqa: S608 (the length of a list)
