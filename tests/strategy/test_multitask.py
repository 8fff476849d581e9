"""Algorithm 2: the criterion against finite differences and plain nested Monte Carlo, the search, and its limits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import Schedule, Trace, TraceModel
from paceline.errors import InputError
from paceline.model import Normals
from paceline.problems import DrawnFamily
from paceline.shapes import WarmupStableDecay
from paceline.strategy.multitask import Criterion, Effort, Family, Run, Space, best_schedules, first_runs
from paceline.strategy.multitask.criterion import Linearised
from paceline.strategy.prospect import Prospect
from paceline.traces import LearningRateRange

SPACE = Space(LearningRateRange(1e-4, 1e-1), steps=200, intervals=5)
TASKS = ("a", "b", "c")
SMALL = Effort(outer=8, inner=4, rough=4, screened=16, starts=1, moves=2, draws=16, grid=5, sweeps=1)


def runs(count: int, link: str = "linear", tasks: tuple[str, ...] = TASKS) -> list[Trace]:
    family, found = DrawnFamily.of(link, np.random.default_rng(7)), []
    for m, task in enumerate(tasks):
        own = replace(family, means=tuple(mean + 0.3 * m for mean in family.means))
        for i in range(count):
            rng = np.random.default_rng([m, i])
            found.append(replace(own.run(rng.uniform(size=5), rng, name=f"{task}{i}"), task=task))
    return found


def strategy(link: str = "linear", **settings) -> Family:
    return Family(SPACE, TASKS, link=link, **{"effort": SMALL, **settings})


@pytest.fixture(scope="module", params=["linear", "exponential"])
def model(request: pytest.FixtureRequest) -> TraceModel:
    return strategy(request.param).fit(runs(3, request.param))


@pytest.fixture(scope="module")
def reference(model: TraceModel) -> torch.Tensor:
    return best_schedules(model, 0.9, SPACE.lengths(model), draws=64, grid=5, generator=generator())


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_first_runs_fill_every_cell_once_and_tasks_take_turns() -> None:
    for count in (5, 7, 10):
        first = first_runs(SPACE, ["a", "b", "c", "d", "e"], count, seed=3)
        x = np.array([run.x for run in first])
        assert all(sorted(np.floor(x[:, k] * count)) == list(range(count)) for k in range(5))
        made = [sum(run.task == task for run in first) for task in "abcde"]
        assert max(made) - min(made) <= 1
    assert first_runs(SPACE, ["a"], 4, seed=1) == first_runs(SPACE, ["a"], 4, seed=1)
    with pytest.raises(InputError, match="a model needs runs to begin with"):
        first_runs(SPACE, ["a"], 0, seed=1)


def test_the_gradient_of_the_criterion_agrees_with_finite_differences(
    model: TraceModel, reference: torch.Tensor
) -> None:
    criterion = Criterion.of(model, reference, SPACE.lengths(model), outer=6, inner=4, generator=generator())
    tasks = torch.tensor([0, 2])
    x = torch.tensor([[0.3, 0.6, 0.4, 0.7, 0.2], [0.8, 0.2, 0.5, 0.4, 0.6]]).double().requires_grad_()
    (gradient,) = torch.autograd.grad(criterion(x, tasks).sum(), x)
    scale = float(gradient.abs().max())
    for i in range(2):
        for k in range(5):
            step = torch.zeros(2, 5).double()
            step[i, k] = 1e-5
            up, down = (criterion(x.detach() + sign * step, tasks)[i] for sign in (1, -1))
            assert float(gradient[i, k]) == pytest.approx(float(up - down) / 2e-5, rel=1e-3, abs=1e-4 * scale)


def test_a_run_is_never_expected_to_add_variance(model: TraceModel, reference: torch.Tensor) -> None:
    """Beyond Monte Carlo error, which is measured by repeating the estimate with other normals."""
    x, tasks = torch.rand(12, 5, generator=generator(1)).double(), torch.arange(12) % 3
    lengths = SPACE.lengths(model)
    with torch.no_grad():
        gains = torch.stack(
            [
                Criterion.of(model, reference, lengths, outer=32, inner=4, generator=generator(s)).gain(x, tasks)
                for s in range(4)
            ]
        )
        now = Criterion.of(model, reference, lengths, outer=2, inner=4, generator=generator()).current()
    error = gains.std(0) / 2
    assert bool((gains.mean(0) > -3 * error).all())
    assert bool((gains.mean(0) < now + 3 * error).all())


def test_the_criterion_is_the_mean_of_conditional_variances(model: TraceModel, reference: torch.Tensor) -> None:
    """The law of total variance, against nested Monte Carlo with fresh normals for every draw of the run."""
    lengths, tasks = SPACE.lengths(model), torch.arange(3)
    x, own = reference[1:2], torch.tensor([1])
    with torch.no_grad():
        fast = Criterion.of(model, reference, lengths, outer=300, inner=16, generator=generator(), alone=4000)
        p, outer, inner = model.link.latents, 150, 100
        normals = Normals.of(p, outer, 5, generator(5)).reshape(1, outer)
        known = model.condition_on(model.draw_new(x.T[..., None], own[:, None], normals, lengths))
        fresh = Normals.of(p, outer * 3 * inner, 5, generator(6)).reshape(1, outer, 3, inner)
        final = known.draw_new(reference.T[..., None], tasks[:, None], fresh, lengths).values[..., -1]
        slow = final.var(-1).mean((0, 2))
        error = float(slow.std()) / outer**0.5 + 0.05 * float(slow.mean())
        assert float(fast(x, own)[0]) == pytest.approx(float(slow.mean()), abs=4 * error)
        assert float(slow.mean()) < 0.9 * float(fast.current())  # the schedule itself teaches about its own value


def test_the_linearised_criterion_ranks_like_the_criterion(model: TraceModel, reference: torch.Tensor) -> None:
    x, tasks = torch.rand(30, 5, generator=generator(2)).double(), torch.arange(30) % 3
    lengths = SPACE.lengths(model)
    with torch.no_grad():
        gain = Criterion.of(model, reference, lengths, outer=32, inner=4, generator=generator()).gain(x, tasks)
        linear = Linearised.of(model, reference, lengths).gain(x, tasks)
    assert bool((linear >= 0).all())
    assert np.corrcoef(gain.argsort().argsort(), linear.argsort().argsort())[0, 1] > 0.8


def test_the_best_schedules_beat_random_ones(model: TraceModel) -> None:
    lengths = SPACE.lengths(model)
    for alpha in (0.2, 0.9):
        found = best_schedules(model, alpha, lengths, draws=64, generator=generator())
        normals = Normals.of(model.link.latents, 300, 5, generator(9))
        for task in range(3):
            others = torch.rand(40, 5, generator=generator(3)).double()
            x = torch.cat([found[task : task + 1], others])
            with torch.no_grad():
                finals = Prospect(model, torch.full((41,), task), lengths, normals).finals(x)
            score = torch.quantile(finals, alpha, dim=1)
            assert int((score > score[0]).sum()) <= 1
    assert bool(((found >= 0) & (found <= 1)).all())


def test_decisions_repeat_and_batches_differ() -> None:
    plan, made = strategy(), runs(2)
    model = plan.fit(made)
    one, two = plan.propose(model, made, count=2)
    (again,) = plan.propose(model, made)
    assert again.run == one.run
    assert again.cost == SMALL.cost(3, 5) > 0
    assert one.run != two.run
    assert two.before < one.before  # as if the first had been made
    assert one.after < one.before
    assert set(one.rivals) == set(TASKS)
    assert min(one.rivals.values()) == one.rivals[one.run.task] == one.after
    (later,) = plan.propose(model, made, under_way=[one.run])
    assert later.before == pytest.approx(two.before, rel=0.5)
    assert later.run != one.run


def test_the_optimistic_set_can_be_run_itself() -> None:
    plan, made = strategy(infill="optimistic"), runs(2)
    model = plan.fit(made)
    choices = plan.propose(model, made, count=3)
    assert {choice.run.task for choice in choices} == set(TASKS)
    for choice in choices:
        task = model.encoder.tasks.index(choice.run.task)
        assert choice.run.x == tuple(choice.reference[task].tolist())
        assert choice.rivals == {choice.run.task: choice.after}
    (next_one,) = plan.propose(model, [*made, replace(made[0], name="new")])
    assert next_one.run.task != made[0].task  # the task with fewest runs
    with pytest.raises(InputError, match='infill must be "variance" or "optimistic", got \'greedy\''):
        strategy(infill="greedy")


def test_climbing_reaches_higher_than_sweeps(model: TraceModel) -> None:
    lengths, normals = SPACE.lengths(model), Normals.of(model.link.latents, 400, 5, generator(9))
    tasks, ends = torch.arange(3), dict[int, torch.Tensor]()
    for moves in (0, 15):
        x = best_schedules(model, 0.5, lengths, draws=64, grid=5, sweeps=1, moves=moves, generator=generator())
        assert bool(((x >= 0) & (x <= 1)).all())
        with torch.no_grad():
            ends[moves] = model.draw_new(x.T[..., None], tasks[:, None], normals.for_each(3), lengths).values[..., -1]
    assert float(ends[15].mean()) > float(ends[0].mean()) - 0.005


def test_answers_are_schedules_with_what_they_should_reach() -> None:
    plan, made = strategy(), runs(3)
    model = plan.fit(made)
    answers = plan.answers(model, made)
    assert list(answers) == list(TASKS)
    for answer in answers.values():
        low, middle, high = answer.quantiles
        assert low <= middle <= high
        np.testing.assert_array_equal(answer.schedule.change_points, SPACE.change_points)
    careful = plan.answers(model, made, alpha=0.1)
    assert all(careful[task].quantiles[0] >= answers[task].quantiles[0] - 0.05 for task in TASKS)


def test_a_task_without_runs_is_proposed_for_too() -> None:
    plan, made = strategy(dims=2), runs(3, tasks=("a", "b"))
    model = plan.fit(made)
    assert set(model.encoder.tasks) == set(TASKS)
    (choice,) = plan.propose(model, made)
    assert choice.run.task in TASKS
    assert set(plan.answers(model, made)) == set(TASKS)
    with pytest.raises(InputError, match=r"expected runs of the tasks \['a', 'b', 'c'\], got \['z'\]"):
        plan.fit([replace(made[0], task="z")])


@pytest.mark.parametrize("base", ["constant", WarmupStableDecay(warmup=0.02, decay=0.7)])
def test_both_bases_give_the_model_the_same_controls(base) -> None:
    space = Space(LearningRateRange(1e-4, 1e-1), steps=200, intervals=5, base=base)
    x = (0.1, 0.9, 0.4, 0.5, 0.7)
    schedule = space.schedule(x)
    traces = [
        Trace(
            np.arange(0, 201, 5),
            3 * np.exp(-0.01 * np.arange(41)),
            space.schedule(np.roll(x, i)),
            name=str(i),
            task="a",
        )
        for i in range(3)
    ]
    plan = Family(space, ("a",), link="linear", dims=0, effort=SMALL)
    model = plan.fit(traces)
    np.testing.assert_allclose(model.encoder.future(schedule, 0).unit_lr, x, atol=1e-9)
    (choice,) = plan.propose(model, traces)
    assert space.schedule(choice.run.x).base == schedule.base


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="at least one different name"):
        Family(SPACE, ("a", "a"))
    with pytest.raises(InputError, match=r"alpha must lie in \(0, 1\), got 1"):
        Family(SPACE, ("a",), alpha=1.0)
    with pytest.raises(InputError, match=r"draws come in pairs, .* got 8 and 3: pass even numbers"):
        Family(SPACE, TASKS, link="linear", effort=replace(SMALL, inner=3)).propose(strategy().fit(runs(1)), [])
    with pytest.raises(InputError, match="starts are chosen among those screened"):
        Effort(starts=5, screened=2)
    other = TraceModel.fit(runs(2), intervals=10, tasks=1)
    with pytest.raises(InputError, match="expected a model of 5 intervals, got one that cuts a run into 10"):
        SPACE.lengths(other)
    assert Run("a", (0.5,)) == Run("a", (0.5,))
    assert isinstance(SPACE.schedule([0.0] * 5), Schedule)
