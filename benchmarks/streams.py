"""Five forks on one GPU cost little more than two runs, and the tuner does not keep the GPU waiting.

Claim 1: ResNet-56, batch 128, bf16: a round of five forks, each one's step replayed on a stream of its own, takes at
most 2.5 times as long as one replayed run, and at most an eighth of five plain (eager) runs; ten forks take no more per
fork than five. Steps include gathering, cropping and mirroring the batch, SGD with momentum and the averaged weights.

Claim 2: a whole `horizon` study of ResNet-20 on CIFAR-10, 40 epochs a run, spends less than 5 % of its time outside
training steps (recording the steps apart), and the GPU waits less than 200 ms per decision. Raw and averaged weights
are evaluated on 5,000 held-out images every other epoch.

Needs a GPU. Images of claim 1 are random: they do not change the time. `--part rounds` or `--part study` does one.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from functools import cache, partial
from pathlib import Path

import torch
from torch import nn

from benchmarks._cifar import cifar10, resnet
from benchmarks._report import machine, print_results, result, table
from paceline import Schedule, TorchTraining, tune
from paceline.runner import Local, Runner, Streams
from paceline.study import Checkpoints, Interval
from paceline.training import DeviceBatches

STEPS, REPEATS = 200, 5
EPOCHS, BATCH, HELD_OUT = 40, 128, 5_000


def training(images: torch.Tensor, labels: torch.Tensor, depth: int, *, evaluate=None, every=None) -> TorchTraining:
    """A residual network with SGD, Nesterov momentum and weight decay, in bf16."""
    model = resnet(depth, seed=0).to(images.device, memory_format=torch.channels_last)

    def loss(net: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return nn.functional.cross_entropy(net(batch[0]), batch[1])

    run = TorchTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
        batches=DeviceBatches(images, labels, size=BATCH, crop=4, flip=True),
        loss=loss,
        evaluate=evaluate,
        every=every,
    )
    run.reseed(0)
    return run


# claim 1


@cache
def random_images() -> tuple[torch.Tensor, torch.Tensor]:
    """As many as CIFAR-10 has to train with."""
    source = torch.Generator("cuda").manual_seed(0)
    images = torch.randn(50_000, 3, 32, 32, device="cuda", generator=source)
    return images, torch.randint(10, (50_000,), device="cuda", generator=source)


def per_step(runner: Runner, forks: int, folder: Path) -> float:
    """Milliseconds that one step of all forks takes; the median of several intervals."""
    runner.attach(Checkpoints(folder), 0)
    runner.prepare()
    times, schedule = [], Schedule.constant(0.05, steps=STEPS * (REPEATS + 1))
    for i in range(REPEATS + 1):
        before = runner.stopwatch.seconds.get("training", 0.0)
        intervals = [Interval(fork, None, i * STEPS, (i + 1) * STEPS, schedule, i + 1) for fork in range(forks)]
        failures = [report.failure for report in runner.run(intervals)]
        assert not any(failures), failures
        times.append(1000 * (runner.stopwatch.seconds["training"] - before) / STEPS)
    return statistics.median(times[1:])


def rounds() -> None:
    """Milliseconds per step, plain and replayed."""
    make = partial(training, *random_images(), 56, every=STEPS)
    with tempfile.TemporaryDirectory() as name:
        plain = per_step(Local(make), 1, Path(name))
    rows, replayed = [["plain, one after the other", 1, plain, plain, 0.0, 0.0]], {}
    for forks in (1, 2, 5, 10):
        runner = Streams(make, forks=forks)
        with tempfile.TemporaryDirectory() as name:
            replayed[forks] = per_step(runner, forks, Path(name))
        size, seconds = runner.bytes_per_fork / 1e6, runner.stopwatch.seconds["capture"] / forks
        rows.append(["replayed, side by side", forks, replayed[forks], replayed[forks] / forks, size, seconds])
        runner.close()
    header = ["ResNet-56, batch 128, bf16", "forks", "ms per round", "ms per fork", "MB per fork", "s to record a fork"]
    print(table(header, rows))
    result("round_of_five_over_one_run", replayed[5] / replayed[1])
    result("round_of_five_over_five_plain_runs", replayed[5] / (5 * plain))
    result("ten_forks_over_five_per_fork", (replayed[10] / 10) / (replayed[5] / 5))


# claim 2


def tuned(folder: Path) -> None:
    """One whole study, and where its time went."""
    x, y, x_test, y_test = cifar10("cuda")
    train, valid = slice(HELD_OUT, None), slice(0, HELD_OUT)
    epoch = (len(x) - HELD_OUT) // BATCH

    def evaluate(net: nn.Module) -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return nn.functional.cross_entropy(net(x[valid]).float(), y[valid])

    make = partial(training, x[train], y[train], 20, evaluate=evaluate, every=2 * epoch)
    make()  # what is loaded once is loaded before the clock starts
    shutil.rmtree(folder, ignore_errors=True)
    began = time.perf_counter()
    tuned_study = tune(
        make, steps=EPOCHS * epoch, lr=(3e-3, 3.0), cost=2.3, study=folder, seed=0, runner="streams", quiet=True
    )
    wall = time.perf_counter() - began
    seconds, decisions = tuned_study.seconds, tuned_study.history.round
    measured = sum(seconds.values())
    rows = [[name, s, 100 * s / (wall - seconds["capture"])] for name, s in seconds.items() if name != "capture"]
    rows.append(["else", wall - measured, 100 * (wall - measured) / (wall - seconds["capture"])])
    header = [f"ResNet-20, {EPOCHS} epochs, cost 2.3: {wall:.1f} s in all", "seconds", "% without recording"]
    print(table(header, [*rows, ["recording the steps (capture)", seconds["capture"], float("nan")]]))
    model = resnet(20, seed=0).to("cuda", memory_format=torch.channels_last)
    model.load_state_dict(tuned_study.weights())
    model.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        answers = torch.cat([model(part).argmax(1) for part in x_test.split(1000)])
    assert tuned_study.value is not None
    forks = len(tuned_study.history.forks)
    print(f"{decisions} decisions, {forks} forks; the winner's {tuned_study.value_of} weights, loss")
    print(f"{tuned_study.value:.4f}, test accuracy {(answers == y_test).double().mean():.4f}")
    outside = wall - seconds["capture"] - seconds["training"]
    waits = outside - seconds["evaluation"]
    result("percent_outside_training_steps", 100 * outside / (wall - seconds["capture"]))
    result("ms_gpu_waits_per_decision", 1000 * waits / decisions)
    result("seconds_of_study", wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["rounds", "study", "both"], default="both")
    parser.add_argument("--study", type=Path, default=Path("runs") / "streams")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.streams needs a GPU: its results are in benchmarks/results/streams.txt")
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}; {machine()}\n")
    if options.part in ("rounds", "both"):
        rounds()
        print()
    if options.part in ("study", "both"):
        tuned(options.study)
    print()
    print_results()


if __name__ == "__main__":
    main()
