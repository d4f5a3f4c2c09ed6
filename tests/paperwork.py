"""Documents for tests, made of as few bytes as their formats allow."""

import io
import zipfile

from pypdf import PdfWriter

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)


def pdf(*pages: str) -> bytes:
    """One line of text a page."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        stream = f"BT /F1 12 Tf 72 720 Td ({escaped}) Tj ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream.encode('cp1252'))} >>\nstream\n{stream}\nendstream")
    return _with_table(objects)


def _with_table(objects: list[str]) -> bytes:
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(out)


def locked_pdf(*pages: str, password: str) -> bytes:
    writer, out = PdfWriter(clone_from=io.BytesIO(pdf(*pages))), io.BytesIO()
    writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    writer.write(out)
    return out.getvalue()


def docx(*paragraphs: str, parts: dict[str, bytes] | None = None) -> bytes:
    """Paragraphs; those that begin with `# ` are headings."""
    body = "".join(_paragraph(text) for text in paragraphs)
    document = f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return zipped({"word/document.xml": document.encode(), **(parts or {})})


def zipped(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"[Content_Types].xml": _TYPES, "_rels/.rels": _RELATIONS, **parts}.items():
            archive.writestr(name, content)
    return out.getvalue()


def _paragraph(text: str) -> str:
    style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if text.startswith("# ") else ""
    return f"<w:p>{style}<w:r><w:t>{text.removeprefix('# ')}</w:t></w:r></w:p>"
