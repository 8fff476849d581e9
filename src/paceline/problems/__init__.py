"""Problems with known answers, and small real ones, for tests, benchmarks and first steps."""

from paceline.problems.digits import digits_training, train_digits
from paceline.problems.drawn import DrawnFamily
from paceline.problems.quadratic import Quadratic, QuadraticTraining

__all__ = ["DrawnFamily", "Quadratic", "QuadraticTraining", "digits_training", "train_digits"]
