"""Who may look, at what, and what comes back: through the whole application."""

import math
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from paceline.study import Created, Decided, Failure, Interval, Report, because, read_journal
from paceline.traces import Schedule
from paceline.views.figures import FIGURES
from paceline.views.web.app import make_app
from paceline.views.web.catalogue import Catalogue
from paceline.views.web.study_reader import StudyReader
from tests.views.studies import EVENTS, family
from tests.views.web.studies import append, write

TOKEN = "a-token-of-some-length"


def client(folder: Path, *, base_url: str = "http://127.0.0.1", **options: Any) -> TestClient:
    return TestClient(make_app(Catalogue([folder]), **options), base_url=base_url, follow_redirects=False)


@pytest.fixture
def page(tmp_path: Path) -> TestClient:
    write(tmp_path / "runs" / "first")
    write(tmp_path / "outside")
    return client(tmp_path / "runs")


def test_every_answer_forbids_outside_requests_and_foreign_script(page: TestClient) -> None:
    for path in ("/", "/study/first", "/summary/first", "/nothing", "/static/study.js", "/schedule/py/first"):
        headers = page.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "[::2]", "127.0.0.2"]
)
def test_a_foreign_host_name_is_turned_away_here(page: TestClient, host: str) -> None:
    assert page.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "localhost", "localhost:1", "[::1]:8787"])
def test_this_machine_by_any_of_its_names(page: TestClient, host: str) -> None:
    assert page.get("/", headers={"Host": host}).status_code == 200


def test_this_machine_by_the_address_that_is_served(tmp_path: Path) -> None:
    write(tmp_path / "first")
    page = client(tmp_path, host="127.0.0.2")
    assert page.get("/", headers={"Host": "127.0.0.2:8787"}).status_code == 200
    assert page.get("/", headers={"Host": "127.0.0.3"}).status_code == 400


def test_answers_that_refuse_have_the_headers_too(page: TestClient) -> None:
    refused = [page.get("/", headers={"Host": "evil.example"}), page.post("/")]
    for answer in refused:
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_nothing_can_be_changed(page: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert page.request(method, "/study/first").status_code == 405


@pytest.mark.parametrize(
    "name",
    ["..%2Foutside", "%2e%2e/outside", "first%2F..%2F..%2Foutside", "%2Fetc", "first/checkpoints", "", "%2e"],
)
@pytest.mark.parametrize(
    "route", ["study", "summary", "forks", "decisions", "events", "figure/traces", "schedule/json"]
)
def test_names_cannot_leave_the_folders(page: TestClient, route: str, name: str) -> None:
    assert page.get(f"/{route}/{name}").status_code == 404


def test_a_token_is_asked_for_once_and_kept(tmp_path: Path) -> None:
    write(tmp_path / "first")
    asked = client(tmp_path, base_url="http://10.0.0.1:8787", host="0.0.0.0", token=TOKEN, cookie="paceline-8787")
    for path in ("/", "/?token=", "/?token=wrong", f"/?token={TOKEN}x", "/static/style.css", "/events/first"):
        assert asked.get(path).status_code == 401
    assert asked.get("/", headers={"Cookie": "paceline-8787=wrong"}).status_code == 401
    welcome = asked.get(f"/study/first?token={TOKEN}&a=b")
    assert 'url=/study/first?a=b"' in welcome.text
    assert TOKEN not in welcome.text
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert asked.get("/summary/first").status_code == 200  # by the cookie


def test_the_way_on_from_a_token_stays_here(tmp_path: Path) -> None:
    asked = client(tmp_path, host="0.0.0.0", token=TOKEN)
    answer = asked.get(f"http://127.0.0.1//evil.example/%22%3E%3Cscript%3E?token={TOKEN}")
    assert "url=/evil.example/" in answer.text
    assert "<script" not in answer.text


MARKUP = '<img src=x onerror=alert(1)><a href="https://evil.example">task</a>'


def test_text_of_a_journal_never_becomes_markup(tmp_path: Path) -> None:
    broken = [*EVENTS[:4], Report(0, 0, 10, (10,), {"raw": (math.nan,)}, Failure("raised", MARKUP))]
    broken.append(Decided(2, 10, (because("text", text=MARKUP),), {}, 0.0))
    write(tmp_path / "<b>bold", broken)
    page = client(tmp_path)
    shell = page.get("/study/%3Cb%3Ebold").text
    assert "<b>" not in shell
    assert 'data-study="&lt;b&gt;bold"' in shell
    told = page.get("/decisions/%3Cb%3Ebold")
    assert told.headers["content-type"] == "application/json"
    assert MARKUP in told.json()["rows"][0]["sentences"][0]  # as data: the script puts it in as text
    assert any(MARKUP in cell for row in page.get("/forks/%3Cb%3Ebold").json()["rows"] for cell in row)
    file = page.get("/schedule/json/%3Cb%3Ebold").headers.get("content-disposition", "")
    assert "<" not in file


@pytest.mark.parametrize("name", ["R&D <x>", "<script>alert(1)</script>"])
def test_names_in_figures_are_escaped_once(tmp_path: Path, name: str) -> None:
    """Plotly shows an escaped text literally; text that is escaped twice would show entities."""
    write(tmp_path / "study", family(name))
    page = client(tmp_path)
    once = escape(name, quote=False)
    names = {trace.get("name") for trace in page.get("/figure/traces/study").json()["data"]}
    assert once in names
    rows = page.get("/figure/lineage/study").json()["layout"]["yaxis"]["ticktext"]
    assert any(row.startswith(f"{once}, run ") for row in rows)
    text = "".join(page.get(f"/figure/{kind}/study").text for kind in FIGURES)
    assert name not in text
    assert escape(once, quote=False) not in text


def test_a_schedule_to_keep(page: TestClient) -> None:
    expected = FIRST_AND_SECOND
    answer = page.get("/schedule/json/first")
    assert answer.headers["content-disposition"] == 'attachment; filename="first-schedule.json"'
    assert Schedule.from_json(answer.json()) == expected
    rows = page.get("/schedule/csv/first").text.splitlines()
    assert rows[0] == "step,rate"
    assert [float(row.split(",")[1]) for row in rows[1:]] == [expected(step) for step in range(100)]
    names: dict[str, Any] = {}
    exec(page.get("/schedule/py/first").text, names)
    assert [names["learning_rate"](s) for s in range(100)] == pytest.approx([expected(s) for s in range(100)])
    assert page.get("/schedule/exe/first").status_code == 404


FIRST_AND_SECOND = Schedule([0.1, 0.05], [0, 20, 100], 100, "linear")


def test_no_schedule_yet(tmp_path: Path) -> None:
    write(tmp_path / "first", EVENTS[:4])
    answer = client(tmp_path).get("/schedule/json/first")
    assert (answer.status_code, answer.text) == (409, "there is no schedule yet: nothing has been observed\n")


def test_the_family_in_the_golden_journal(tmp_path: Path) -> None:
    folder = write(tmp_path / "family", [])
    golden = Path(__file__).parents[2] / "golden" / "journal-1-family.jsonl"
    (folder / "journal.jsonl").write_bytes(golden.read_bytes())
    page = client(tmp_path)
    summary = page.get("/summary/family").json()
    assert summary["state"] == "finished"
    assert summary["schedule_tasks"] == ["calm", "wild"]
    assert [row[:2] for row in page.get("/forks/family").json()["rows"]] == [
        ["2", "wild"],
        ["1", "calm"],
        ["0", "wild"],
    ]
    calm = Schedule.from_json(page.get("/schedule/json/family?task=calm").json())
    assert calm.multipliers[0] == pytest.approx(0.17361391209479848)
    assert page.get("/schedule/json/family?task=none").status_code == 409
    assert page.get("/figure/traces/family").status_code == 200


def test_summaries_of_studies_in_every_state(tmp_path: Path) -> None:
    for count in range(len(EVENTS) + 1):
        write(tmp_path / str(count), EVENTS[:count])
    (write(tmp_path / "damaged", []) / "journal.jsonl").write_bytes(b"nonsense\n")
    page = client(tmp_path)
    assert page.get("/summary/0").json()["state"] == "empty"
    assert page.get("/summary/4").json()["status"] == "Nothing has been observed yet."
    assert page.get("/summary/11").json()["state"] == "running"
    whole = page.get(f"/summary/{len(EVENTS)}").json()
    assert (whole["state"], whole["done"], whole["events"]) == ("finished", 200, len(EVENTS))
    assert whole["status"] == "Fork 2 ended best: 0.5 with raw weights and 0.45 with averaged weights."
    damaged = page.get("/summary/damaged").json()
    assert damaged["state"] == "damaged"
    assert "not an event" in damaged["status"]
    assert page.get("/forks/damaged").status_code == 422
    assert page.get("/costs.json").status_code == 200
    for count in range(1, len(EVENTS) + 1):
        for route in ("forks", "decisions", "figure/traces", "figure/lineage"):
            assert page.get(f"/{route}/{count}").status_code == 200


@pytest.mark.parametrize("route", ["figure/danced/first", "forks/first?before=x", "figure/surface/first?decision=99"])
def test_odd_questions_get_an_answer_in_words(page: TestClient, route: str) -> None:
    answer = page.get(f"/{route}")
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_long_answers_are_compressed_and_plotly_is_the_installed_one(page: TestClient, tmp_path: Path) -> None:
    from plotly.offline import get_plotlyjs

    script = page.get("/static/plotly.js")
    assert script.headers["content-encoding"] == "identity"  # on one machine it would only cost time
    assert script.text == get_plotlyjs()
    far = client(tmp_path, host="0.0.0.0", token=TOKEN)
    far.get(f"/?token={TOKEN}")
    assert far.get("/static/plotly.js").headers["content-encoding"] == "gzip"
    assert far.get("/static/plotly.js").text == get_plotlyjs()
    tag = script.headers["etag"]
    assert page.get("/static/plotly.js", headers={"If-None-Match": tag}).status_code == 304
    assert page.get("/static/study.js").headers["content-encoding"] == "gzip"


def test_the_stream_says_when_there_is_more(tmp_path: Path, serve: Callable[..., str]) -> None:
    folder = write(tmp_path / "first", EVENTS[:4])
    address = f"{serve(tmp_path)}/events/first"
    with httpx.stream("GET", address, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
        lines = answer.iter_lines()
        assert [next(lines), next(lines)] == ["retry: 1000", ""]
        for count in (4, 5, 7):
            append(folder, EVENTS[len(read_journal(folder / "journal.jsonl")) : count])
            assert [next(lines) for _ in range(4)] == [
                "event: grown",
                f"id: 0.{count}",
                f'data: {{"revision": "0.{count}"}}',
                "",
            ]


@pytest.mark.parametrize("how", ["since", "last"])
def test_the_stream_does_not_repeat_what_is_known(tmp_path: Path, serve: Callable[..., str], how: str) -> None:
    folder = write(tmp_path / "first", EVENTS[:4])
    address = f"{serve(tmp_path)}/events/first" + ("?since=0.4" if how == "since" else "")
    headers = {"Last-Event-ID": "0.4"} if how == "last" else {}
    with httpx.stream("GET", address, timeout=60, headers=headers) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        append(folder, EVENTS[4:5])
        assert next(line for line in lines if line.startswith("id")) == "id: 0.5"


def test_the_stream_of_all_studies_notices_new_ones(tmp_path: Path, serve: Callable[..., str]) -> None:
    with httpx.stream("GET", f"{serve(tmp_path)}/events", timeout=60) as answer:
        lines = answer.iter_lines()
        assert [line for _, line in zip(range(4), lines, strict=False)][2:] == ["event: grown", "id: 0.0"]
        write(tmp_path / "first", EVENTS[:4])
        assert any(line.startswith("id: 1.") for line in lines)


def test_a_journal_that_another_request_reads_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "first")
    monkeypatch.setattr(StudyReader, "refresh", lambda study, patience=-1: False)  # as long as it is being read
    page = client(tmp_path)
    for path in ("/summary/first", "/figure/traces/first", "/costs.json"):
        answer = page.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"].startswith("Reading journal.jsonl: 0% of ")
    assert page.get("/schedule/csv/first").status_code == 409
    assert page.get("/study/first").status_code == 200


def test_a_table_of_many_steps_is_sent_as_it_is_made(tmp_path: Path, serve: Callable[..., str]) -> None:
    steps = 5_000_000
    settings = {"lr": [1e-3, 1.0], "steps": steps, "mode": "min", "seed": 0}
    report = Report(0, 0, 10, (10,), {"raw": (1.0,)})
    write(tmp_path / "long", [Created(settings), Interval(0, None, 0, 10, Schedule([0.1], [0, 10], steps), 1), report])
    address = serve(tmp_path)
    with httpx.stream("GET", f"{address}/schedule/csv/long", timeout=60) as answer:
        parts = answer.iter_bytes(1_000)
        assert next(parts).startswith(b"step,rate\n0,0.1\n1,0.1\n")
        assert httpx.get(f"{address}/summary/long", timeout=60).json()["events"] == 3  # while the rest is not made yet
