"""What counts as a training, by its methods only."""

from paceline.problems import Quadratic, QuadraticTraining
from paceline.training import Reseedable, Training, values_by_weights


class Minimal:
    def advance(self, schedule, stop):
        yield stop, 1.0

    def state_dict(self):
        return {}

    def load_state_dict(self, state) -> None: ...


def test_a_training_needs_three_methods_and_no_base_class() -> None:
    assert isinstance(Minimal(), Training)
    assert not isinstance(object(), Training)
    assert isinstance(QuadraticTraining(Quadratic()), Training)


def test_reseeding_is_optional() -> None:
    assert not isinstance(Minimal(), Reseedable)
    assert isinstance(QuadraticTraining(Quadratic()), Reseedable)


def test_a_plain_number_belongs_to_the_raw_weights() -> None:
    assert values_by_weights(0.5) == {"raw": 0.5}
    assert values_by_weights({"raw": 1.0, "averaged": 0.5}) == {"raw": 1.0, "averaged": 0.5}
