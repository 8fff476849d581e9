"""The runner on a real GPU: forks side by side observe what forks in turn observe, with any optimiser."""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import paceline
from paceline.errors import TrainingError
from paceline.runner import Local, Streams
from paceline.study import Checkpoints, Interval
from paceline.training import DeviceBatches, TorchTraining, load_checkpoint, save_checkpoint
from tests.runner.streams.test_runner import tuned
from tests.training.example_trainings import CountingOptimizer, device_digits

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

FORMS = {
    "plain": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "default": {},
}
KINDS = {
    "adam": torch.optim.Adam,
    "adamw": partial(torch.optim.AdamW, weight_decay=0.1, amsgrad=True),
    "sgd": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9, dampening=0.3, weight_decay=1e-3),
    "nesterov": partial(torch.optim.SGD, momentum=0.9, nesterov=True),
}
OTHERS = {
    "rmsprop": torch.optim.RMSprop,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "adamax": torch.optim.Adamax,
    "adadelta": torch.optim.Adadelta,
}
CASES = [(k, f, partial(KINDS[k], **FORMS[f])) for k in KINDS for f in FORMS] + [(k, "", OTHERS[k]) for k in OTHERS]


@pytest.fixture(autouse=True)
def exact() -> None:
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = False


def factory(optimiser, **settings) -> TorchTraining:
    training = device_digits(device="cuda", **settings)
    groups = [{k: group[k] for k in ("params", "lr")} for group in training.optimizer.param_groups]
    training.optimizer = optimiser(groups, lr=1e-3)
    return training


def trace(runner, folder: Path, steps: int = 60, forks: int = 3) -> dict[str, np.ndarray]:
    """What forks at several rates observe in two intervals, one of them cloned in between."""
    values = dict[str, list]()
    runner.attach(Checkpoints(folder), 0)
    runner.prepare()
    schedules = [paceline.Schedule.of("linear", rate, steps) for rate in np.geomspace(1e-3, 1e-2, forks)]
    first = [Interval(fork, None, 0, steps // 2, schedules[fork], 1) for fork in range(forks)]
    second = [Interval(0, None, steps // 2, steps, schedules[0], 2), Interval(9, 0, steps // 2, steps, schedules[2], 2)]
    for intervals in (first, second):
        for report in sorted(runner.run(intervals), key=lambda report: report.fork):
            assert report.failure is None
            for weights, column in report.values.items():
                values.setdefault(weights, []).extend(column)
    runner.close()
    return {weights: np.array(column) for weights, column in values.items()}


@pytest.mark.parametrize(("kind", "form", "optimiser"), CASES, ids=[f"{k}-{f}" for k, f, _ in CASES])
def test_every_optimiser_sees_what_it_sees_in_turn(tmp_path: Path, kind: str, form: str, optimiser) -> None:
    maker = partial(factory, optimiser)
    a, b = trace(Local(maker), tmp_path / "turn"), trace(Streams(maker), tmp_path / "side")
    for of in a:
        np.testing.assert_allclose(a[of], b[of], rtol=1e-3)


def variant(name: str) -> TorchTraining:
    """Trainings that are less plain."""
    training = factory(torch.optim.AdamW, evaluate="none" if name == "none" else "tensor")
    model, loss = training.model, training.loss
    if name == "number":
        training.evaluate, evaluate = lambda net: float(evaluate(net)), training.evaluate
    if name == "bf16":

        def half(net, batch):
            with torch.autocast("cuda", torch.bfloat16):
                return loss(net, batch)

        training.loss = half
    if name == "clipped":

        def step(net, optimizer, batch):
            optimizer.zero_grad()
            value = loss(net, batch)
            value.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            return value

        training.step = step
    if name == "compiled":
        compiled = torch.compile(model)
        training.loss = lambda net, batch: loss(compiled if net is model else net, batch)
    if name == "dropout":
        model.append(nn.Dropout(0.1))
    return training


@pytest.mark.parametrize("name", ["none", "number", "bf16", "clipped", "dropout", "compiled"])
def test_less_plain_trainings_see_what_they_see_in_turn(tmp_path: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="torch")
        maker = partial(variant, name)
        a, b = trace(Local(maker), tmp_path / "turn"), trace(Streams(maker), tmp_path / "side")
    for of in a:
        np.testing.assert_allclose(a[of], b[of], rtol=2e-2 if name == "bf16" else 2e-3)


@pytest.mark.parametrize("name", ["tensor", "none"])
def test_a_whole_study_is_the_same_and_goes_on_anywhere(tmp_path: Path, name: str) -> None:
    maker = partial(factory, torch.optim.Adam, evaluate=name)
    turn, side = (
        tuned(maker, runner, tmp_path / name, steps=200) for runner, name in (("local", "turn"), ("streams", "side"))
    )
    assert turn.schedule == side.schedule
    assert turn.value == pytest.approx(side.value, rel=1e-2)
    on_the_host = device_digits(evaluate=name)
    on_the_host.load_state_dict(load_checkpoint(side.state))
    assert list(on_the_host.advance(side.schedule, 200)) == []


def reads(t: TorchTraining) -> None:
    loss = t.loss
    t.loss = lambda net, batch: loss(net, batch) * (1.0 if loss(net, batch).item() > 0 else 2.0)


def counts(t: TorchTraining) -> None:
    t.optimizer = CountingOptimizer(t.model.parameters())
    t.rate_ratios = np.ones(1)


def counts_in_step(t: TorchTraining) -> None:
    loss, calls = t.loss, [0]

    def weighted(net, batch):
        calls[0] += 1
        return loss(net, batch) * float(calls[0])

    t.loss = weighted
    t.optimizer = torch.optim.SGD(t.model.parameters())
    t.rate_ratios = np.ones(1)


def loads(t: TorchTraining) -> None:
    data = torch.utils.data.TensorDataset(*(tensor.cpu() for tensor in t.batches.source.tensors))
    t.batches.source = torch.utils.data.DataLoader(data, 64, collate_fn=torch.utils.data.default_convert)
    t.loss = lambda net, batch: torch.stack([net[1].weight.square().sum() for _ in batch]).mean()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (reads, "the step cannot be recorded"),
        (counts, "CountingOptimizer, the model or `step` counts or decides on the host"),
        (counts_in_step, "counts or decides on the host"),
        (loads, "its batches come from the host, from a DataLoader"),
    ],
)
def test_what_cannot_be_recorded_says_why_and_goes_on_in_turn(tmp_path: Path, change, reason: str) -> None:
    def maker() -> TorchTraining:
        training = factory(torch.optim.Adam)
        change(training)
        return training

    with pytest.warns(UserWarning, match=f"streams: .*{reason}"):
        result = tuned(maker, "streams", tmp_path / "s", steps=60)
    assert result.value is not None
    assert torch.randn(4, device="cuda").isfinite().all()  # a recording that broke off leaves the GPU usable
    assert tuned(partial(factory, torch.optim.Adam), "streams", tmp_path / "t", steps=60).value is not None


def test_forks_that_do_not_fit_wait_for_their_turn(tmp_path: Path) -> None:
    def big() -> TorchTraining:
        training = device_digits(device="cuda")
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.Linear(4096, 10))
        model.cuda()
        return TorchTraining(
            model,
            torch.optim.Adam(model.parameters(), lr=1e-3),
            batches=training.batches.source,
            loss=training.loss,
            every=20,
        )

    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2.0e9) / total)
    try:
        with pytest.warns(UserWarning, match="of 8 forks fit into the GPU's memory at a time"):
            assert tuned(big, "streams", tmp_path / "s", steps=40).value is not None
        torch.cuda.empty_cache()
        with pytest.raises(TrainingError, match="and 8 were asked for: ask for"):
            tuned(big, partial(Streams, forks=8), tmp_path / "t", steps=40)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_data_that_a_factory_makes_anew_is_held_once(tmp_path: Path) -> None:
    def maker() -> TorchTraining:
        training = device_digits(device="cuda")
        images = torch.zeros(200_000, 1, 8, 8, device="cuda")  # 51 MB
        labels = torch.zeros(200_000, dtype=torch.long, device="cuda")
        training.batches.source = DeviceBatches(images, labels, size=64)
        return training

    runner = Streams(maker, forks=4)
    trace(runner, tmp_path, forks=3)
    assert 0 < runner.bytes_per_fork < 40e6


def test_checkpoints_leave_the_gpu_as_they_were(tmp_path: Path) -> None:
    image = torch.randn(2, 3, 4, 5, device="cuda").to(memory_format=torch.channels_last)
    state = {
        "weights": {"a": nn.Parameter(image), "b": image.transpose(1, 3), "tied": image},
        "counts": [torch.arange(3, device="cuda"), torch.tensor(7, device="cuda")],
        "plain": ("x", 1.5, torch.ones(2)),
    }
    save_checkpoint(state, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")
    for name, tensor in state["weights"].items():
        assert torch.equal(back["weights"][name], tensor.detach().cpu())
    assert back["counts"][0].tolist() == [0, 1, 2]
    assert back["counts"][1].item() == 7
    assert back["plain"][:2] == ("x", 1.5)
    assert back["plain"][2].tolist() == [1, 1]
