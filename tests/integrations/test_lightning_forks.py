"""Forks of a LightningModule: the same weights as `Trainer.fit`, cut off and continued."""

import random
from pathlib import Path
from typing import Any

import lightning.pytorch as L  # noqa: N812  as its own documents do
import pytest
import torch

import paceline
from paceline import InputError
from paceline.integrations import lambda_lr
from paceline.integrations.lightning import lightning_training
from paceline.testing import check_training
from tests.integrations.lightning_modules import QUIET, SCHEDULE, Data, Net, in_order
from tests.training.resuming import resumed

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # a warning of torch in Trainer.fit
]


def make(**settings: Any) -> Any:
    return lightning_training(Net, Data, accelerator="cpu", every=5, **settings)()


def run(training: Any, stop: int) -> list:
    return list(training.advance(SCHEDULE, stop))


@pytest.mark.parametrize("pause", [1, 4, 17])
@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1}])
def test_resumed_from_a_checkpoint_a_fork_continues_bit_for_bit(tmp_path: Path, settings: Any, pause: int) -> None:
    whole, first, second, _ = resumed(lambda: make(**settings), SCHEDULE, tmp_path, pause)
    assert torch.equal(second.module.weights(), whole.module.weights())
    assert second.module.seen == whole.module.seen
    assert first.module.places + second.module.places == whole.module.places


@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1}])
def test_it_conforms_to_what_a_training_must_do(settings: Any) -> None:
    check_training(lambda: make(**settings), steps=24)


@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 2, "gradient_clip_val": 0.05}])
def test_a_fork_ends_with_the_weights_that_fit_would_have_made(settings: Any) -> None:
    """And goes through the same hooks in the same order."""

    def followed(module: Any) -> Any:
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-2, momentum=0.9)
        return [optimizer], [{"scheduler": lambda_lr(optimizer, SCHEDULE), "interval": "step"}]

    called = dict[str, list[str]](fit=[], fork=[])
    names = [n for n in dir(L.LightningModule) if n.startswith(("on_train", "on_before", "on_after", "optimizer_"))]

    def heard(kind: str, base: type) -> Any:
        def hook(name: str) -> Any:
            def called_too(self: Any, *args: Any, **kwargs: Any) -> Any:
                called[kind].append(name)
                return getattr(super(made, self), name)(*args, **kwargs)

            return called_too

        made = type("Heard", (base,), {name: hook(name) for name in names if name != "on_train_end"})
        return made

    class Fitted(Net):
        configure_optimizers = followed

    class Forked(Net):
        def configure_optimizers(self) -> Any:
            return followed(self)[0]

    module = heard("fit", Fitted)(dropout=0.0)
    L.Trainer(max_steps=40, **QUIET, **settings).fit(module, in_order())
    settings = {**settings, "accelerator": "cpu", "average": None}
    fork = lightning_training(lambda: heard("fork", Forked)(dropout=0.0), in_order, **settings)()
    run(fork, 40)
    assert torch.equal(fork.module.weights(), module.weights())
    assert fork.module.places == module.places
    assert called["fork"] == called["fit"][: len(called["fork"])]
    assert set(called["fit"][len(called["fork"]) :]) <= {"on_train_epoch_end"}


def test_a_factory_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="monitor='acc' needs validation data"):
        lightning_training(Net, in_order, accelerator="cpu", monitor="acc")()
    with pytest.raises(InputError, match="cannot take callbacks, devices: a fork takes accelerator"):
        lightning_training(Net, Data, devices=2, callbacks=[])
    with pytest.raises(InputError, match=r"make_module must be a function or a class .* pass the class itself"):
        lightning_training(Net(), in_order)


def test_tuned_in_a_study_without_a_word_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_training = lightning_training(Net, Data, monitor="acc", accelerator="cpu", every=4)
    result = paceline.tune(make_training, steps=200, lr=(1e-4, 1e-1), mode="max")
    Net().load_state_dict(result.weights())
    assert 0.9 < result.value <= 1.0
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    training = make_training()
    kept = (torch.get_rng_state().tolist(), random.getstate())
    run(training, 8)
    assert kept == (torch.get_rng_state().tolist(), random.getstate())
