"""The page's modules for themselves: the fold over events and the only way from text to HTML."""

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.product import Person

SAMPLES = [
    "Plain text.",
    "# Title\n\nText with **bold**, *italic*, `code` and ~~none~~.",
    "1. one\n2. two\n   - nested\n   - deeper\n\n     with a paragraph\n3. three",
    "```python\nprint('half open",
    "- item\n\n  ```js\n  const a = 1;\n  ```\n- next",
    "````md\n```\nnested fence\n```\n````\nafter",
    "| a | b |\n|---|---:|\n| 1 | 2 |\n| long | `x|y` |",
    "> quote\n> > deeper\n\nand [a link](https://example.org \"title\") or <https://example.org/x>",
    "See [the docs][d].\n\nMore text.\n\n[d]: https://example.org/docs",
    "- [ ] open\n- [x] done",
    "Formula $a_b * c_d$ and \\(x^2\\) and a_b_c.",
    "Emoji 👩‍💻 and 日本語 and e\u0301.",
    "Text<br>with <b>tags</b>\n\n<div>block</div>\n\n<script>alert(1)</script>",
    "---\n\nBetween rules\n\n***",
]  # fmt: skip

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![pixel](https://tracker.example/p.gif)",
    "<a href='javascript:alert(1)'>x</a><svg onload=alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "<iframe src='//evil.example'></iframe><form action='//evil.example'><input name=q></form>",
    "`</code><script>alert(1)</script>`",
    "| <img src=x onerror=alert(1)> | [a](vbscript:x) |\n|---|---|\n| 1 | <style>*{}</style> |",
]

RENDER = """async (texts) => {
    const { renderInto } = await import("#chat/render.js");
    const box = document.createElement("div");
    for (const text of texts) renderInto(box, text);
    return box.innerHTML;
}"""


@pytest.fixture(scope="module")
def person(ada: Person) -> Person:
    return ada


@pytest.fixture
def page(visit: OpenPage, person: Person) -> Page:
    return visit(person)


def test_a_stream_ends_as_the_whole_text_would_look(page: Page) -> None:
    for sample in SAMPLES:
        growing = [sample[: end + 1] for end in range(len(sample))]
        assert page.evaluate(RENDER, growing) == page.evaluate(RENDER, [sample]), sample


def test_each_block_is_one_element(page: Page) -> None:
    html = page.evaluate(RENDER, ["# Title\n\nText & <b>tags</b>.\n\n- one\n- two"])
    assert html == ("<h1>Title</h1><p>Text &amp; &lt;b&gt;tags&lt;/b&gt;.</p><ul>\n<li>one</li>\n<li>two</li>\n</ul>")


def test_hostile_text_becomes_harmless(page: Page) -> None:
    inspect = """async (text) => {
        const { renderInto } = await import("#chat/render.js");
        const box = document.createElement("div");
        document.body.append(box);
        renderInto(box, text);
        const badAttribute = ({ name, value }) =>
            name.startsWith("on") || name === "style" || /^(javascript|data|vbscript):/i.test(value);
        const bad = (e) =>
            ["IMG", "SCRIPT", "IFRAME", "FORM", "STYLE", "OBJECT"].includes(e.tagName)
            || (e.namespaceURI.endsWith("svg") && !e.closest("button"))
            || [...e.attributes].some(badAttribute);
        return [...box.querySelectorAll("*")].filter(bad).map((e) => e.outerHTML);
    }"""
    for text in HOSTILE:
        assert page.evaluate(inspect, text) == [], text


def fold(page: Page, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The state of a run after these envelopes and snapshots, with what became of each."""
    state: dict[str, Any] = page.evaluate(
        """async (entries) => {
            const { createRun, apply, applySnapshot } = await import("#chat/run-state.js");
            const run = createRun("r");
            const results = entries.map((e) => (e.type === "snapshot" ? applySnapshot(run, e) : apply(run, e)));
            return { ...run, reasoning: undefined, results };
        }""",
        entries,
    )
    return state


def delta(offset: int, content: str, attempt: int = 1) -> dict[str, Any]:
    data = {"status": "delta", "offset": offset, "content": content, "attempt": attempt}
    return {"run": "r", "channel": "answer", "data": data}


def event(seq: int, channel: str, **data: Any) -> dict[str, Any]:
    return {"run": "r", "seq": seq, "channel": channel, "data": data}


CALL = {"type": "iteration", "iteration": 1, "tool_name": "t"}
STORY = [
    event(1, "run", status="running", model={"label": "M"}),
    event(2, "step", type="thinking", status="start", iteration=1),
    event(3, "step", type="thinking", status="done", iteration=1, reasoning="Look it up."),
    event(4, "step", **CALL, status="start", call_id="a", tool_args={"x": 1}),
    event(5, "step", **CALL, status="start", call_id="b", tool_args={"x": 2}),
    event(6, "step", **CALL, status="done", call_id="b", observation="B", iter_elapsed=0.2),
    event(7, "step", **CALL, status="done", call_id="a", observation="", error="no"),
    event(8, "answer", status="start", attempt=1),
    delta(0, "Hello 👩‍💻"),
    delta(9, ", world"),
    event(9, "done", status="completed", reason="final_answer", iterations=2, elapsed=1.5, usage={"input_tokens": 5}),
]  # fmt: skip


def test_events_make_the_run(page: Page) -> None:
    run = fold(page, STORY)
    assert (run["status"], run["model"], run["text"], run["tokens"]) == ("completed", "M", "Hello 👩‍💻, world", 5)
    steps = [(s["key"], s["state"], s["observation"], s["error"], s["reasoning"]) for s in run["steps"]]
    assert steps == [("a", "failed", "", "no", "Look it up."), ("b", "done", "B", "", "")]


def test_applying_twice_changes_nothing(page: Page) -> None:
    once, twice = fold(page, STORY), fold(page, [entry for entry in STORY for _ in range(2)])
    again = fold(page, STORY + STORY)
    for run in (once, twice, again):
        for key in ("started", "results"):
            run.pop(key)
        run["steps"] = [step | {"at": 0} for step in run["steps"]]
    assert json.dumps(twice) == json.dumps(once)
    assert json.dumps(again) == json.dumps(once)


def test_a_hole_is_noticed(page: Page) -> None:
    assert fold(page, [STORY[0], STORY[2]])["results"] == ["applied", "gap"]
    assert fold(page, [STORY[0], delta(0, "abc"), delta(5, "f")])["results"] == ["applied", "applied", "gap"]


def test_an_old_snapshot_does_not_replace_newer_text(page: Page) -> None:
    old = {"type": "snapshot", "run": "r", "seq": 3, "status": "running", "answer": {"text": "Hel", "attempt": 1}}
    run = fold(page, [*STORY[:9], old])
    assert (run["text"], run["seq"]) == ("Hello 👩‍💻", 8)


def test_what_comes_late_changes_neither_an_end_nor_a_state(page: Page) -> None:  # C-49
    longer = {"text": "Hello 👩‍💻, world, and what was taken back", "attempt": 2}
    late = [{"type": "snapshot", "run": "r", "seq": 8, "status": "running", "answer": longer}, delta(0, "x" * 30, 3)]
    run = fold(page, [*STORY, *late])
    assert (run["text"], run["status"], run["streaming"]) == ("Hello 👩‍💻, world", "completed", False)
    waits = event(9, "run", status="waiting", reason="approval")
    old = {"type": "snapshot", "run": "r", "seq": 1, "status": "queued", "answer": {"text": "", "attempt": 0}}
    assert fold(page, [*STORY[:10], waits, old])["status"] == "waiting"
    assert fold(page, [*STORY[:10], waits, old | {"seq": 9}])["status"] == "queued"


def test_a_snapshot_that_is_ahead_shows_what_is_missing(page: Page) -> None:
    ahead = {"type": "snapshot", "run": "r", "seq": 8, "status": "running", "answer": {"text": "Hel", "attempt": 1}}
    run = fold(page, [*STORY[:5], ahead, *STORY[5:]])
    assert run["results"][5] == "gap"
    assert (run["text"], len(run["steps"])) == ("Hello 👩‍💻, world", 2)


def test_a_new_attempt_clears_the_text(page: Page) -> None:
    run = fold(
        page, [*STORY[:9], event(9, "answer", status="start", attempt=2), delta(0, "Anew", 2), delta(0, "stale", 1)]
    )
    assert run["text"] == "Anew"


def test_every_step_gets_an_end(page: Page) -> None:
    run = fold(page, [*STORY[:5], event(6, "done", status="cancelled", reason="user")])
    assert [step["state"] for step in run["steps"]] == ["stopped", "stopped"]


def rendered_code(page: Page, text: str) -> Locator:
    page.evaluate(
        """async (text) => {
            const { renderInto } = await import("#chat/render.js");
            const box = document.createElement("div");
            box.id = "sample";
            document.body.prepend(box);
            renderInto(box, text);
        }""",
        text,
    )
    return page.locator("#sample pre")


def test_code_is_coloured_and_stays_what_it_was(page: Page) -> None:
    code = "def greet(name):  # <script>alert(1)</script>\n    return '<img src=x onerror=alert(1)>'\n"
    shown = rendered_code(page, f"```python\n{code}```")
    expect(shown.locator(".hljs-keyword").first).to_have_text("def")
    assert shown.evaluate("pre => pre.textContent") == code
    assert shown.evaluate("pre => pre.querySelectorAll(':not(code, span)').length") == 0


def test_code_of_unknown_languages_stays_plain(page: Page) -> None:
    loaded: list[str] = []
    page.on("response", lambda answer: loaded.append(answer.url))
    shown = rendered_code(page, "```nonsense\nif true\n```\n\n```python\nTrue\n```")
    expect(shown.nth(1).locator("span")).to_have_text("True")
    expect(shown.first).to_have_text("if true")
    expect(shown.first.locator("span")).to_have_count(0)
    assert any("highlight.min" in address for address in loaded), "it is loaded only now"
