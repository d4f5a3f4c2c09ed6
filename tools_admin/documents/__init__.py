"""Documents as text, with the place in the document that each part of it comes from.

    from tools_admin.documents.parsing import DocumentError, parse

    parsed = await parse(path, "handbook.pdf")          # bytes or a Path
    for section in parsed.sections:
        print(section.place, section.text)              # "page 3", "Travel › Hotels", "row 17"

`readers/` does the reading, one module a kind of file, in a confined child process (`agentapp.confined`).
"""
