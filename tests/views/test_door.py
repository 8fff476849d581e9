"""The names that `paceline.views` offers."""

import subprocess
import sys

import pytest

import paceline.views

LIGHT = "import sys, paceline.views; assert not {'rich', 'plotly', 'starlette', 'torch'} & set(sys.modules)"


def test_every_name_is_there() -> None:
    for name in paceline.views.__all__:
        assert getattr(paceline.views, name).__name__ == name
    with pytest.raises(AttributeError, match=r"no attribute 'plots_of': it offers .*Plots"):
        paceline.views.plots_of  # noqa: B018


def test_the_import_is_light() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True)
