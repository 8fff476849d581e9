"""Checks of traces, and the intervals that a model uses."""

import numpy as np
import pytest

from paceline import InputError, Objective, Trace
from paceline.model import link_of
from paceline.model.encoder import TraceEncoder
from paceline.model.preprocess import check_traces, trace_likelihood, usable_segments
from paceline.model.settings import FitSettings
from paceline.traces import Scaling, Segmenter
from tests.model.example_runs import decay


def test_monotone_links_cannot_use_failed_intervals() -> None:
    run = Trace(np.array([0, 40, 60, 120, 150]), np.array([3.0, 2.0, 1.9, 20.0, 25.0]), decay(1e-2).schedule)
    segments = Segmenter.for_traces([run], 2).split(run)
    assert [s.failed for s in segments] == [False, True]
    assert usable_segments(segments, link_of("linear")) == segments[:1]
    assert usable_segments(segments, link_of("signed")) == segments


def test_no_link_can_use_absurd_values() -> None:
    run = Trace(np.array([0, 40, 60, 120, 150]), np.array([3.0, 2.0, 1.9, 30.0, 40.0]), decay(1e-2).schedule)
    segments = Segmenter.for_traces([run], 2).split(run)
    assert [s.diverged for s in segments] == [False, True]
    for link in ("linear", "signed"):
        assert usable_segments(segments, link_of(link)) == segments[:1]


@pytest.mark.parametrize(("dims", "groups"), [(0, 2), (2, 1)])
def test_tasks_that_share_nothing_have_noises_of_their_own(dims: int, groups: int) -> None:
    runs = [decay(1e-2, task=task) for task in ("a", "b")]
    segmenter = Segmenter.for_traces(runs, 2)
    segments = [s for run in runs for s in segmenter.split(run)]
    encoder = TraceEncoder(segmenter, Scaling.of(segments), ("a", "b"))
    settings = FitSettings(150, dims, None, anchor_noise=True, random_effect=True)
    assert trace_likelihood(segments, link_of("linear"), encoder, settings).groups == groups


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_traces([]), "at least one trace, got none"),
        (lambda: check_traces([decay(1e-2, name="a"), decay(1e-3, name="a")]), r"several runs named \['a'\]: rename"),
        (lambda: check_traces([decay(1e-2), decay(1e-2, objective=Objective("max"))]), "share one objective, got 2"),
    ],
)
def test_wrong_traces_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
