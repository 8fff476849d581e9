"""The command of the CIFAR-10 experiment: what it selects, and when there is nothing to run."""

import sys

import pytest

from experiments import cifar


def call(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", ["cifar", *options])
    cifar.main()


def test_nothing_is_run_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call(monkeypatch, "--depth", "56", "--method", "horizon 2.3, training loss")
    assert capsys.readouterr().out.startswith("nothing to run: all 3 studies are in ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "greed"], "no such method: greed. Expected some of:"),
        (["--depth", "56", "--method", "PBT"], "no study of the experiment has this depth, seed and method"),
    ],
)
def test_a_wrong_selection_is_named(monkeypatch: pytest.MonkeyPatch, options: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        call(monkeypatch, *options)
