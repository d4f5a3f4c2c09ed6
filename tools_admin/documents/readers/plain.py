from tools_admin.documents.readers.sections import decoded, packed


def read(data: bytes, max_chars: int) -> bytes:
    return packed([(decoded(data), {})], max_chars)
