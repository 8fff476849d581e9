"""The pages on Ray Tune, loggers and CMA-ES, followed literally: their scripts run, and few lines of them change."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {"ray_tune": 15, "loggers": 3, "cma": 15}  # how many lines may change


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / "integrations" / f"{page}.md").read_text(), re.DOTALL)


def changed(page: str) -> tuple[str, list[str]]:
    """The page's script with its changes made, and the lines that are new."""
    (script,), (difference,) = blocks(page, "python"), blocks(page, "diff")
    lines, at, fresh = script.splitlines(), 0, list[str]()
    for sign, text in (re.fullmatch(r"([-+ ])(.*)", line).groups() for line in difference.splitlines()):  # pyright: ignore[reportOptionalMemberAccess]
        if sign == "+":
            lines.insert(at, text)
            fresh.append(text)
        else:
            at = lines.index(text, at)
            if sign == "-":
                lines.pop(at)
        at += sign != "-"
    return "\n".join(lines) + "\n", fresh


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short(page: str) -> None:
    assert len((ROOT / "docs" / "integrations" / f"{page}.md").read_text().splitlines()) <= 40


@pytest.mark.parametrize("page", ["ray_tune", "loggers"])
def test_few_lines_change(page: str) -> None:
    assert 0 < len(changed(page)[1]) <= PAGES[page]


def test_the_page_on_loggers_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script, _ = changed("loggers")
    exec(compile(script, "loggers.md", "exec"), {"__name__": "__main__"})
    assert (tmp_path / "logs" / "decisions").is_dir()
    assert (tmp_path / "logs" / "fork 7").is_dir()


def test_the_script_for_ray_tune_makes_its_tuner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but `fit`, which takes Ray a minute; tests/integrations/test_ray_tune.py fits a smaller one."""
    pytest.importorskip("ray.tune")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_AIR_LOCAL_CACHE_DIR", str(tmp_path))
    script, _ = changed("ray_tune")
    made = script[: script.index("results =")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names: dict[str, object] = {"__name__": "__main__"}
        exec(compile(made, "ray_tune.md", "exec"), names)
    assert type(names["scheduler"]).__name__ == "PacelineScheduler"


def test_the_page_on_cma_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cma")
    monkeypatch.chdir(tmp_path)
    plain, tuned = blocks("cma", "python")
    kept = {line.strip() for line in plain.splitlines()}
    changed = [line for line in tuned.splitlines() if line.strip() and line.strip() not in kept]
    assert len(changed) <= PAGES["cma"]
    for block in (plain, tuned):
        exec(compile(block, "cma.md", "exec"), {"__name__": "__main__"})


def test_a_restored_evolution_goes_on_alike() -> None:
    pytest.importorskip("cma")
    from examples.cma_population import PROBLEMS, Schedule

    schedule = Schedule([7.0, 12.0], [0, 100, 300])
    one, other = PROBLEMS["noisy sphere"](0), PROBLEMS["noisy sphere"](1)
    for _ in one.advance(schedule, 100):  # in the middle of a generation
        pass
    other.load_state_dict(one.state_dict())
    assert list(one.advance(schedule, 300)) == list(other.advance(schedule, 300))
