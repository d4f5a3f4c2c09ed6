"""What comes out of documents, and what people are told about those that nothing comes out of."""

import io
import zipfile
import zlib

import pytest
from pypdf import PdfWriter

from tests.paperwork import docx, locked_pdf, pdf, zipped
from tools_admin.documents.parsing import DocumentError, Place, Section, parse

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


async def refusal(data: bytes, name: str, media_type: str = "") -> str:
    with pytest.raises(DocumentError) as caught:
        await parse(data, name, media_type)
    assert str(caught.value)
    return caught.value.code


async def test_a_pdf_is_read_page_by_page():
    parsed = await parse(pdf("The first page", "", "Grüße (third)"), "x.pdf")
    assert parsed.sections == [
        Section("The first page", Place(page=1)),
        Section("Grüße (third)", Place(page=3)),
    ]
    assert parsed.media_type == "application/pdf"
    assert str(parsed.sections[1].place) == "page 3"


async def test_a_file_is_read_from_where_it_lies(tmp_path):
    path = tmp_path / "8d1f"
    path.write_bytes(pdf("Inside"))
    assert (await parse(path, "report.pdf")).text == "Inside"


async def test_a_word_document_is_read_by_its_headings():
    parsed = await parse(docx("# Travel", "Trains first.", "# Hotels", "Up to 120 &lt;EUR&gt; a_night."), "rules.docx")
    assert [(section.place.heading, section.text.splitlines()[-1]) for section in parsed.sections] == [
        ("Travel", "Trains first."),
        ("Hotels", "Up to 120 <EUR> a_night."),
    ]
    assert parsed.media_type == WORD


async def test_a_page_is_read_without_its_scripts_and_menus():
    page = b"""<html><head><title>Rules</title><script>steal()</script></head><body><nav>Menu</nav>
    <h2>Hotels</h2><p>Up to <b>120</b>.</p><table><tr><th>City</th><th>Limit</th></tr><tr><td>Rome</td><td>90</td></tr>
    </table><svg><text>no</text></svg></body></html>"""
    (section,) = (await parse(page, "rules.html")).sections
    assert section.place == Place(heading="Rules › Hotels")
    assert "| Rome | 90 |" in section.text
    assert not any(word in section.text for word in ("steal", "Menu", "no"))


async def test_markdown_is_read_by_its_headings_and_not_by_its_code():
    text = b"# Manual\n\n## Install\n\n```\n# no heading\n```\n\n## Use\n\nRun it."
    parsed = await parse(text, "manual.md")
    assert [section.place.heading for section in parsed.sections] == ["Manual › Install", "Manual › Use"]


async def test_a_table_repeats_its_header_and_knows_its_rows():
    rows = "".join(f"Person {number};City {number % 7};\n" for number in range(200))
    parsed = await parse(f"name;city;\n{rows}".encode(), "people.csv")
    assert len(parsed.sections) > 3
    assert all(section.text.startswith("name | city") for section in parsed.sections)
    second = parsed.sections[1]
    assert second.text.splitlines()[1].startswith(f"Person {second.place.row - 1} ")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
async def test_text_of_any_usual_encoding(encoding):
    assert (await parse("Grüße aus Köln – 5 €".encode(encoding), "x.txt")).text == "Grüße aus Köln – 5 €"


async def test_the_content_decides_and_not_the_name():
    assert (await parse(pdf("Really a PDF"), "notes.txt", "text/plain")).media_type == "application/pdf"
    assert (await parse(b"<!DOCTYPE html><p>Page</p>", "x.txt")).text == "Page"


async def test_what_the_database_cannot_hold_is_not_in_the_text():
    page = b"<html><p>a&#0;b&#xD800;c</p>"
    text = (await parse(page, "x.html")).text
    assert "\0" not in text
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"", "x.pdf", "empty"),
        (b"   \n ", "x.txt", "no_text"),
        (b"plain words", "x.pdf", "broken"),
        (b"plain words", "x.docx", "broken"),
        (pdf("text")[:150], "x.pdf", "broken"),
        (docx("text")[:150], "x.docx", "broken"),
        (pdf("", ""), "scan.pdf", "no_text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "x.png", "unknown"),
        (b"MZ\x90\0\x03\0\0\0", "x.txt", "unknown"),
        (bytes(range(1, 256)) * 50, "x.txt", "unknown"),
        (zipped({"evil.txt": b"x"}), "x.zip", "unknown"),
        (zipped({"evil.txt": b"x"}), "x.docx", "broken"),
    ],
)
async def test_what_is_no_document_is_refused_with_the_reason(data, name, code):
    assert await refusal(data, name) == code


async def test_a_locked_pdf_is_refused_and_one_that_only_forbids_printing_is_read():
    assert await refusal(locked_pdf("secret", password="sesame"), "x.pdf") == "encrypted"
    assert (await parse(locked_pdf("open", password=""), "x.pdf")).text == "open"


async def test_a_pdf_with_too_many_pages_is_refused():
    writer, out = PdfWriter(), io.BytesIO()
    for _ in range(2_001):
        writer.add_blank_page(10, 10)
    writer.write(out)
    assert await refusal(out.getvalue(), "x.pdf") == "too_many_pages"


def zip_bomb() -> bytes:
    """190 MB of letters that pass for a document's text."""
    start, end = docx("@")[:0], b""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx("@"))) as plain,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb,
    ):
        for name in plain.namelist():
            content = plain.read(name)
            if name == "word/document.xml":
                start, end = content.split(b"@")
                content = start + b"</w:t></w:r></w:p><w:p><w:r><w:t>a" * 5_000_000 + end
            bomb.writestr(name, content)
    return out.getvalue()


def entity_bomb() -> bytes:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = f'<!DOCTYPE d [<!ENTITY e0 "ha">{entities}<!ENTITY file SYSTEM "file:///etc/passwd">]><d>&e11;&file;</d>'
    return zipped({"word/document.xml": body.encode()})


def pdf_bomb() -> bytes:
    """A page whose packed content is 400 MB of spaces."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(400)) + packer.flush()
    plain = pdf("x")
    head, _, tail = plain.partition(b"5 0 obj")
    stream = b"5 0 obj\n<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)
    return head + stream + tail[tail.index(b"endstream") + 9 :]


@pytest.mark.parametrize("bomb", [zip_bomb, entity_bomb, pdf_bomb])
@pytest.mark.slow
async def test_bombs_are_survived(bomb):
    name = "x.pdf" if bomb is pdf_bomb else "x.docx"
    assert await refusal(bomb(), name) in ("memory", "time", "broken", "no_text")


async def test_text_without_end_is_refused():
    assert await refusal(b"word " * 1_100_000, "x.txt") == "too_long"
    assert await refusal(b"a,b\n" * 3_000_000, "x.csv") == "too_long"


async def test_html_nested_without_end_is_read_as_text():
    assert "deep" in (await parse(b"<div>" * 20_000 + b"deep", "x.html")).text


async def test_macros_are_not_looked_at():
    document = docx("Only text.", parts={"word/vbaProject.bin": b"Sub AutoOpen()"})
    assert (await parse(document, "x.docm")).text == "Only text."
