"""Problems with known answers, and small real ones, for tests, benchmarks and first steps."""

from paceline.problems.digits import digits_training, train_digits
from paceline.problems.drawn import DrawnFamily

__all__ = ["DrawnFamily", "digits_training", "train_digits"]
