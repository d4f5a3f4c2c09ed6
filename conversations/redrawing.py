"""A picture drawn anew: no metadata, nothing behind it, a bounded size. The only code that opens a picture; it runs in
a confined process (`pictures.py`)."""

import io
import json
from typing import Any

from PIL import Image, ImageFile, ImageOps

from agentapp.confined import Refused

MAX_PIXELS = 50_000_000
LONGEST = 2_048  # pixels of a side: more than models look at, enough for a screen
LARGE_PNG = 1_500_000  # bytes: then it is a photograph
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def redraw(data: bytes) -> bytes:
    """A line of JSON, then the new picture as PNG or JPEG; of an animation the first frame. Raises `Refused`."""
    Image.MAX_IMAGE_PIXELS = None  # counted here, before anything is unpacked
    ImageFile.LOAD_TRUNCATED_IMAGES = True  # of a damaged one what is there, as browsers do
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise Refused("pixels")
            opened.draft("RGB", (LONGEST, LONGEST))
            opened.load()
            image = ImageOps.exif_transpose(opened)
    except (OSError, SyntaxError, ValueError) as error:
        raise Refused("picture") from error
    has_alpha = image.has_transparency_data
    image = image.convert("RGBA" if has_alpha else "RGB")
    image.thumbnail((LONGEST, LONGEST))
    image.info = {}  # comments, profiles, EXIF
    is_photograph = not has_alpha and opened.format in ("JPEG", "WEBP")
    body = b"" if is_photograph else _saved(image, "PNG", optimize=False)
    if is_photograph or len(body) > LARGE_PNG:
        body, content_type = _saved(_on_white(image), "JPEG", quality=88), "image/jpeg"
    else:
        content_type = "image/png"
    return json.dumps({"content_type": content_type}).encode() + b"\n" + body


def _saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    ground = Image.new("RGB", image.size, "white")
    ground.paste(image, mask=image.getchannel("A"))
    return ground
