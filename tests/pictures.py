"""Pictures for tests."""

import io
from typing import Any

from PIL import Image

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), colour: str = "red", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new(options.pop("mode", "RGB"), size, colour).save(buffer, kind, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))
