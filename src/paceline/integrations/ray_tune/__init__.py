"""Ray Tune: a scheduler for people who use PBT or PB2, whose trials are the forks of one run."""

from paceline.integrations.ray_tune.scheduler import PacelineScheduler
from paceline.integrations.ray_tune.trial_rates import rate, set_rate

__all__ = ["PacelineScheduler", "rate", "set_rate"]
