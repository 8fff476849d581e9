"""The task embedding: its axes, tasks that are alike, and tasks that come later."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import TraceModel
from paceline.errors import InputError
from paceline.model.kernels import between_tasks
from paceline.model.task_embedding import on_principal_axes
from tests.model.example_runs import NEW_SCHEDULE, family_runs, task_runs


def test_principal_axes_do_not_depend_on_the_axes_of_the_fit(rng: np.random.Generator) -> None:
    for tasks, dims in ((2, 1), (5, 2), (3, 3), (2, 3), (10, 2)):
        w = rng.normal(size=(tasks, dims))
        rotation = np.linalg.qr(rng.normal(size=(dims, dims)))[0]
        shown = on_principal_axes(w)
        gaps = np.linalg.norm(w[:, None] - w[None], axis=-1)
        np.testing.assert_allclose(np.linalg.norm(shown[:, None] - shown[None], axis=-1), gaps, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(shown, axis=1), np.linalg.norm(w, axis=1), atol=1e-12)
        used = min(tasks - 1, dims)  # further axes are not determined by the tasks
        np.testing.assert_allclose(on_principal_axes(w @ rotation)[:, :used], shown[:, :used], atol=1e-9)
        np.testing.assert_allclose(on_principal_axes(shown)[:, :used], shown[:, :used], atol=1e-9)
    assert on_principal_axes(np.zeros((3, 0))).shape == (3, 0)


def test_tasks_that_behave_alike_are_close() -> None:
    runs = [run for task, shift in (("a", 0.0), ("b", 0.0), ("c", 2.0)) for run in task_runs(task, 5, shift=shift)]
    locations = TraceModel.fit(runs, tasks=2).task_embedding
    assert np.linalg.norm(locations["a"] - locations["b"]) < 0.5 * np.linalg.norm(locations["a"] - locations["c"])


def test_ten_tasks_of_one_run_each() -> None:
    model = TraceModel.fit(family_runs(10, count=1), tasks=2)
    assert list(model.task_embedding) == [chr(97 + m) for m in range(10)]
    assert all(np.isfinite(model.forecast(NEW_SCHEDULE, task=task).draws).all() for task in model.encoder.tasks)


@pytest.mark.parametrize("dims", [0, 2])
def test_an_update_brings_a_new_task(dims: int) -> None:
    runs = [*task_runs("b", 4), *task_runs("c", 4, shift=2.0)]
    model = TraceModel.fit(runs, tasks=dims, lr=(1e-4, 1e-1))
    more = model.update(task_runs("a", 2, seed=1, shift=2.0))
    assert more.encoder.tasks == ("b", "c", "a")
    assert more.posterior.hyper.embedding.shape == (3, dims)
    assert np.isfinite(more.forecast(NEW_SCHEDULE, task="a").draws).all()
    if dims:
        locations = more.task_embedding
        assert np.linalg.norm(locations["a"] - locations["c"]) < np.linalg.norm(locations["a"] - locations["b"])
        cold = TraceModel.fit([*runs, *task_runs("a", 2, seed=1, shift=2.0)], tasks=dims, lr=(1e-4, 1e-1))
        assert more.bound > cold.bound - 2.0  # no worse than a fit from nothing, which takes longer
    again = more.update(task_runs("a", 1, seed=2, shift=2.0))
    assert again.encoder.tasks == more.encoder.tasks


def test_a_task_without_runs_behaves_like_its_twin() -> None:
    model = TraceModel.fit(family_runs(2), tasks=2)
    twin = model.with_task("twin", model.posterior.hyper.embedding[0])
    one, two = (twin.draw(NEW_SCHEDULE, task=task, draws=20).latents[..., 0] for task in ("a", "twin"))
    assert one.shape == two.shape
    start = replace(twin.start_distribution, tasks=((0.2, 0.0),) * 3)
    twin = replace(twin, state=replace(twin.state, start_distribution=start))
    torch.testing.assert_close(
        twin.draw(NEW_SCHEDULE, task="a", draws=20).values, twin.draw(NEW_SCHEDULE, task="twin", draws=20).values
    )
    with pytest.raises(InputError, match="must have 2 coordinates, got"):
        model.with_task("new", [0.0])
    with pytest.raises(InputError, match="pass a new name"):
        model.with_task("a", [0.0, 0.0])


AT = {"a": {"rows": 100}, "b": {"rows": 1_000}, "c": {"rows": 10_000}}


def test_a_task_without_runs_lies_at_its_coordinates() -> None:
    model = TraceModel.fit([*task_runs("a", 4), *task_runs("b", 4, shift=0.5)], tasks=2, at=AT)
    named, twin = model.with_task("c", [0.0, 0.0]), model.with_task("twin", [0.0, 0.0], {"rows": 10_000})
    torch.testing.assert_close(twin.posterior.hyper.coordinates, named.posterior.hyper.coordinates)
    torch.testing.assert_close(named.posterior.hyper.coordinates[:, 0], torch.tensor([-1, 0, 1]).double() * 1.5**0.5)
    nearer = between_tasks(named.posterior.hyper)[2]
    assert nearer[1] > nearer[0]
    with pytest.raises(InputError, match="coordinates rows of task 'd'"):
        model.with_task("d", [0.0, 0.0])
    without = TraceModel.fit(family_runs(2), tasks=2)
    with pytest.raises(InputError, match="have no coordinates, got"):
        without.with_task("c", [0.0, 0.0], {"rows": 5})


def test_an_update_with_a_new_task_looks_its_coordinates_up() -> None:
    model = TraceModel.fit([*task_runs("a", 3), *task_runs("b", 3, shift=0.5)], tasks=2, at=AT)
    more = model.update(task_runs("c", 2, shift=1.0))
    assert more.encoder.tasks == ("a", "b", "c")
    torch.testing.assert_close(more.posterior.hyper.coordinates[:, 0], torch.tensor([-1, 0, 1]).double() * 1.5**0.5)
    assert np.isfinite(more.forecast(NEW_SCHEDULE, task="c").draws).all()


def test_coordinates_need_an_embedding() -> None:
    with pytest.raises(InputError, match="need an embedding beside them, got 0 dimensions"):
        TraceModel.fit(family_runs(2), tasks=0, at=AT)
    with pytest.raises(InputError, match="coordinates rows of task 'b'"):
        TraceModel.fit(family_runs(2), tasks=1, at={"a": {"rows": 5}})
