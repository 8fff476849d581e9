"""The model of a decision over values and rates, as in the journal."""

from paceline.study import Decided, Interval
from paceline.views.grids import failure_lines, surfaces
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_grids_are_those_of_the_journal() -> None:
    events = golden("journal-1-greedy")
    decisions = [e for e in events if isinstance(e, Decided) and "surface" in e.details]
    data = surfaces(study_view(events))
    assert [one.round for one in data] == [decision.round for decision in decisions]
    for one, decision in zip(data, decisions, strict=True):
        surface = decision.details["surface"]
        assert list(one.rates) == surface["rates"]
        assert list(one.values) == surface["values"]
        for latent, journal in zip(one.latents, surface["latents"], strict=True):
            assert [list(row) for row in latent.mean] == journal["mean"]
            assert [list(row) for row in latent.deviation] == journal["deviation"]
        assert one.p_fail is not None
        assert [list(row) for row in one.p_fail] == surface["p_fail"]
        proposed = [e for e in events if isinstance(e, Interval) and e.round == decision.round]
        assert [(c.fork, c.rate) for c in one.choices] == [(p.fork, p.schedule.multipliers[-1]) for p in proposed]
    lines = failure_lines(study_view(events))
    assert list(lines[0].probabilities) == decisions[0].details["p_fail"][0]["probability"]


def test_an_older_surface_without_p_fail_and_with_gaps_is_read() -> None:
    old = {
        "values": [1, 2],
        "rates": [0.1, 1],
        "latents": [{"mean": [[0, None], [1, 2]], "deviation": [[1, 1], [1, 1]]}],
    }
    (one,) = surfaces(study_view([*STUDY[:6], Decided(2, 20, (), {"surface": old}, 0.0), *STUDY[7:10]]))
    assert one.p_fail is None
    assert one.latents[0].mean == ((0.0, None), (1.0, 2.0))
    assert [(c.fork, c.value, c.rate) for c in one.choices] == [(2, 1.6, 0.05), (0, 1.6, 0.1)]
