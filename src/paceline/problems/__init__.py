"""Problems with known answers, and small real ones, for tests, benchmarks and first steps."""

from paceline.problems.digits import digits_training, train_digits
from paceline.problems.quadratic import Quadratic, QuadraticTraining
from paceline.problems.synthetic import SyntheticFamily

__all__ = ["Quadratic", "QuadraticTraining", "SyntheticFamily", "digits_training", "train_digits"]
