"""A new task of a known family: the share due to its place, the best rest, the strategy by hand, and its limits."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline import Trace, TraceModel, Tuner
from paceline.errors import InputError
from paceline.model import TaskPosterior, measure_of
from paceline.strategy import NewTask
from paceline.strategy.newtask import Mixture, Thought, share_due_to_place, whole_intervals
from paceline.study import Decided, Dropped, Interval
from tests.strategy.made_family import BEST, FAMILY, SMALL, SPACE, STEPS, run, values


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def new(known: tuple[Trace, ...], model: TraceModel):
    def make(**settings) -> NewTask:
        return NewTask(FAMILY, known, model, **{"thought": SMALL, **settings})

    return make


def report(tuner: Tuner, p: Interval, best: float) -> None:
    mine = (p.start < STEPS) & (p.stop >= STEPS)
    tuner.tell(p, STEPS[mine].tolist(), values(p.schedule, best, p.fork)[mine].tolist())


def drive(
    strategy: NewTask, study: Path | None = None, *, best: float = 0.8, most: int = 99, cliff: float = 9
) -> Tuner:
    """The whole run, or some intervals of it; one above the cliff fails in the second interval."""
    tuner = Tuner(lr=SPACE.lr_range, steps=60, strategy=strategy, study=study)
    while most > 0 and (proposals := tuner.ask()) is not None:
        for p in proposals[:most]:
            most -= 1
            if p.start == 20 and p.schedule.multipliers[-1] > cliff:
                tuner.fail(p, "diverged", [24], [5.0])
            else:
                report(tuner, p, best)
    return tuner


def facts(tuner: Tuner) -> list[str]:
    kept = [e for e in tuner.study.events if isinstance(e, Interval | Decided | Dropped)]
    return [repr(replace(e, seconds=0.0) if isinstance(e, Decided) else e) for e in kept]


@pytest.fixture(scope="module")
def fast(new) -> Tuner:
    """A whole run of a task like "fast"."""
    return drive(new(thought=replace(SMALL, places=15, grid=5)))


@pytest.fixture(scope="module")
def forked(new, tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Two forks."""
    tuner = drive(new(forks=2), tmp_path_factory.mktemp("studies") / "forked")
    tuner.close()
    return tuner


# the parts


def test_the_share_due_to_place_is_that_of_a_two_way_layout() -> None:
    """Y = a_w + b_e + c_we, all independent: Var_w(E[Y | w]) is that of a, and a spurious part is taken off."""
    rng = np.random.default_rng(0)
    a, b, c = (s * rng.standard_normal(shape) for s, shape in ((2.0, (300, 1)), (1.0, (1, 200)), (0.5, (300, 200))))
    y = torch.from_numpy(a + b + c)[..., None, None]
    assert float(share_due_to_place(y)) == pytest.approx(4 / (4 + 1 + 0.25), abs=0.03)
    only = torch.from_numpy(a + np.zeros((1, 200)))[..., None, None]
    assert float(share_due_to_place(only)) == pytest.approx(1.0)
    luck = torch.from_numpy(b + np.zeros((300, 1)))[..., None, None]
    assert float(share_due_to_place(luck)) == pytest.approx(0.0, abs=1e-12)
    assert float(share_due_to_place(torch.zeros(3, 4, 1, 1).double())) == 0.0


def test_the_share_is_not_raised_by_few_draws() -> None:
    """With six draws of pure luck the variance of their means is a sixth of theirs; the correction takes it off."""
    rng = np.random.default_rng(1)
    y = torch.from_numpy(rng.standard_normal((12, 6, 2000, 1)))
    plain = y.mean(1).var(0)
    assert float(plain.mean()) == pytest.approx(1 / 6, rel=0.05)
    assert float(share_due_to_place(y).mean()) < 0.06  # half of it, since no share is negative
    shifted = y + torch.from_numpy(rng.standard_normal((12, 1, 2000, 1)))
    assert float(share_due_to_place(shifted).mean()) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("task", ["slow", "fast"])
def test_the_best_rest_is_at_the_best_rate(model: TraceModel, task: str) -> None:
    start = replace(run(task, BEST[task], (0.5, 0.5, 0.5), 9).head(6), task=task)
    for before, done in ((None, 0), (start, 1)):
        mixture = Mixture((model,), task, SPACE, before, done)
        assert len(mixture.lengths) == 3 - done
        x, end = mixture.best_rest(0.5, draws=8, grid=5, sweeps=1, climbs=5, generator=generator())
        assert x.shape == (3 - done,)
        assert x.numpy() == pytest.approx(np.full(3 - done, BEST[task]), abs=0.12)
        careful = mixture.best_rest(0.1, draws=8, grid=5, sweeps=1, climbs=5, generator=generator())[1]
        assert careful < end
        reached = float(model.encoder.to_user(torch.tensor([end], dtype=torch.float64))[0])
        assert reached == pytest.approx(2.0 if before is None else float(start.last_value) - 2.0, abs=0.25)


def test_a_rest_for_several_places_lies_between_theirs(model: TraceModel) -> None:
    embedding = model.posterior.hyper.embedding
    slow, fast = (model.with_task("new", embedding[model.encoder.tasks.index(task)]) for task in ("slow", "fast"))
    found = [
        Mixture(models, "new", SPACE).best_rest(0.3, draws=8, grid=5, sweeps=1, climbs=3, generator=generator())[0]
        for models in ((slow,), (slow, fast), (fast,))
    ]
    assert float(found[0].mean()) < float(found[1].mean()) < float(found[2].mean())


def test_a_probe_goes_where_places_differ(model: TraceModel) -> None:
    known = TaskPosterior.from_prior(model, "new", measure_of("gaussian", model), 8, generator())
    mixture = Mixture(known.models, "new", SPACE)
    x, share = mixture.best_probe(1, draws=8, grid=5, sweeps=1, generator=generator())
    assert x.shape == (1,)
    assert 0 < share <= 1
    assert min(float(x[0]), 1 - float(x[0])) < 0.3  # the tasks are told apart at either end, not in the middle
    one = Mixture((known.models[0],) * 4, "new", SPACE)
    assert one.best_probe(1, draws=8, grid=3, sweeps=1, generator=generator())[1] == pytest.approx(0.0, abs=1e-9)


# the strategy


def test_a_run_finds_where_the_task_lies_and_the_rate_that_suits_it(fast: Tuner) -> None:
    assert "from fast, give or take" in fast.study.decisions[-1].reasons[-1]
    spreads = [decision.details["place"]["spread"] for decision in fast.study.decisions]
    assert spreads[-1] < 0.7 * spreads[0]
    assert fast.result.schedule is not None
    x = SPACE.lr_range.to_unit(fast.result.schedule.multipliers)
    assert x[1:] == pytest.approx([BEST["fast"]] * 2, abs=0.2)


def test_decisions_tell_where_the_task_lies_on_the_axes_of_the_known_ones(fast: Tuner, model: TraceModel) -> None:
    details = fast.study.decisions[1].details
    place, at = details["place"], {row["task"]: row["at"] for row in details["embedding"]}
    assert at == {task: pytest.approx(w.tolist(), rel=1e-4) for task, w in model.task_embedding.items()}
    points, weights = np.array(place["points"]), np.array(place["weights"])
    assert points.shape == (15, 2)
    assert sorted(weights, reverse=True) == weights.tolist()
    assert weights.sum() == pytest.approx(1.0, abs=1e-4)
    assert weights @ points == pytest.approx(place["mean"], abs=1e-4)
    assert np.trace(place["covariance"]) ** 0.5 == pytest.approx(place["spread"], rel=1e-4)


def test_with_one_place_the_posterior_is_the_point(new) -> None:
    """One place of weight one: nothing to integrate over; draws are as many in all."""
    one = Thought(places=1, models=1, draws=8, grid=3, sweeps=1, climbs=2)
    posterior, point = (facts(drive(new(thought=one, place=place), most=0)) for place in ("posterior", "point"))
    assert posterior == point != []


def test_decisions_are_a_function_of_the_history(new, forked: Tuner, tmp_path: Path) -> None:
    """Cut off in the middle, and gone on with by another process."""
    shutil.copytree(forked.study.path, tmp_path / "cut")
    lines = (tmp_path / "cut" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut" / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]) + b'{"v"')
    again = drive(new(forks=2), tmp_path / "cut")
    again.close()
    assert facts(again) == facts(forked)
    assert again.result.value == forked.result.value


def test_a_universal_plan_never_changes(new) -> None:
    tuner = drive(new(how="universal"))
    plans = [d.reasons[1].split("the first of ")[1] for d in tuner.study.decisions[:-1]]
    rates = [plan.split(": the best")[0].split(", ") for plan in plans]
    assert rates[0][1:] == rates[1]
    assert rates[1][1:] == rates[2]
    assert len({plan.split(": the best")[1] for plan in plans}) == 1
    assert "give or take" in tuner.study.decisions[-1].reasons[-1]
    assert tuner.result.schedule is not None
    other = drive(new(how="universal"), best=0.2, most=2).history.fork(0).schedule
    assert other == tuner.result.schedule  # whatever the task turns out to be


def test_a_probe_takes_whole_intervals_then_the_plan_stands(new) -> None:
    assert [whole_intervals(SPACE, steps) for steps in (0, 1, 20, 21, 40, 41)] == [0, 1, 1, 2, 2, 3]
    tuner = drive(new(how="probe", probe=1))
    first, second, third, _ = tuner.study.decisions
    assert first.reasons[0].startswith("a probe at ")
    assert "of what is uncertain about it is where the task lies" in first.reasons[0]
    rates = [d.reasons[1].split("the first of ")[1].split(": the best")[0].split(", ") for d in (second, third)]
    assert rates[0][1:] == rates[1]


def test_forks_are_cloned_from_the_best_and_the_others_dropped(forked: Tuner) -> None:
    tuner, events = forked, forked.study.events
    proposed = [e for e in events if isinstance(e, Interval)]
    assert len(proposed) == 6
    assert sum(isinstance(e, Cloned) for e in events) == sum(p.parent is not None for p in proposed) == 2
    dropped = [e for e in events if isinstance(e, Dropped)]
    assert len(dropped) >= 2
    assert any("is expected to end better" in e.reason for e in dropped)
    assert sum(p.stop - p.start for p in proposed) == tuner.total_steps == 120
    last = [f for f in tuner.history.forks if f.schedule.change_points[-1] == 60]
    assert tuner.result.fork == min(last, key=lambda fork: fork.final_value).id


def test_one_fork_probes_for_all(new) -> None:
    tuner = drive(new(forks=2, probe=2))
    rounds = [sum(isinstance(e, Interval) and e.round == r for e in tuner.study.events) for r in (1, 2, 3)]
    assert rounds == [1, 1, 2]
    assert tuner.study.decisions[0].reasons == tuner.study.decisions[1].reasons  # found once
    assert all(int(f.schedule.change_points[-1]) == 60 for f in tuner.history.forks)


def test_forks_maximise_different_quantiles(new) -> None:
    for forks in (2, 3, 4):
        strategy = new(forks=forks)
        for done in range(3):
            alphas = [strategy.alpha_at(done, fork) for fork in range(forks)]
            assert all(0.05 <= alpha <= 0.95 for alpha in alphas)
            assert min(np.diff(sorted(alphas))) > 0.5 / forks
    assert [new().alpha_at(done) for done in range(3)] == pytest.approx([0.7, 0.5, 0.3])
    assert [new(how="universal").alpha_at(done) for done in range(3)] == pytest.approx([0.3] * 3)


def test_a_run_that_fails_goes_back_and_runs_lower(new) -> None:
    quick = Thought(places=3, models=1, draws=4, grid=3, sweeps=1, climbs=1)
    planned = (
        drive(new(thought=quick), most=1).history.fork(0).schedule.multipliers
    )  # the second interval is not run yet
    assert len(planned) == 2
    tuner = drive(new(thought=quick), cliff=0.7 * float(planned[1]))
    events = tuner.study.events
    assert sum(isinstance(e, Failed) for e in events) == 1
    back = next(e for e in events if isinstance(e, Decided) and "every fork failed" in e.reasons[0])
    assert "fork 1 goes back to step 20" in back.reasons[0]
    assert tuner.result.schedule is not None
    assert tuner.result.schedule(30) < 0.7 * float(planned[1])
    assert int(tuner.result.schedule.change_points[-1]) == 60
    assert sum(p.stop - p.start for p in events if isinstance(p, Interval)) <= tuner.total_steps == 80


# limits


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"how": "greedy"}, r"how must be one of \['universal', 'probe', 'dynamic'\], got 'greedy'"),
        ({"place": "mean"}, r"place must be one of \['posterior', 'point'\], got 'mean'"),
        ({"measure": "box"}, r"measure must be one of \['gaussian', 'hull'\], got 'box'"),
        ({"probe": 3}, "a probe takes 0 to 2 of the 3 intervals, got 3: leave some to use what it shows"),
        ({"probe": -1}, "a probe takes 0 to 2 of the 3 intervals, got -1"),
        ({"how": "probe"}, "a probe takes at least one interval, got 0: pass probe=, in steps"),
        ({"forks": 0}, "forks must be 1, or more where they are dynamic, got 0"),
        ({"forks": 2, "how": "universal"}, "forks must be 1, or more where they are dynamic, got 2"),
        ({"alphas": (0.0, 0.5)}, r"alphas must be two quantile orders in \(0, 1\), first and last"),
        ({"task": "slow"}, "'slow' is a task of the family, expected a new name: pass another"),
    ],
)
def test_what_is_refused(new, settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        new(**settings)


def test_other_lengths_are_refused(new) -> None:
    with pytest.raises(InputError, match=r"the family's runs take 60 steps, got steps=80: leave steps= out, or make a"):
        Tuner(lr=SPACE.lr_range, steps=80, strategy=new())
