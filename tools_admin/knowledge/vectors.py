"""An index for vectors of each length, made when the first of them comes: no migration knows an administrator's models.

HNSW over half precision: half the size, the same order of results for all that people can tell, and room for 4,000
dimensions. Longer vectors are compared one by one.
"""

from django.db import connection

MOST_INDEXED = 4_000

_known: set[int] = set()


def ensure_index(dimensions: int) -> None:
    """Nothing when it is there. Two workers that make it at once wait for each other."""
    if dimensions in _known or dimensions > MOST_INDEXED:
        return
    name = f"passage_vectors_{int(dimensions)}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
        try:
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {name} ON tools_admin_passage"
                f" USING hnsw ((embedding::halfvec({int(dimensions)})) halfvec_cosine_ops)"
                f" WHERE vector_dims(embedding) = {int(dimensions)}"
            )
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])
    _known.add(dimensions)
