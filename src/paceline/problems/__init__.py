"""Problems with known answers, for tests, benchmarks and first steps."""

from paceline.problems.drawn import DrawnFamily

__all__ = ["DrawnFamily"]
