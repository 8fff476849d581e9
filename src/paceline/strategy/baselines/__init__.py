"""What people use instead, behind the same interface, so that it runs through the same loop, journal and views."""

from paceline.strategy.baselines.autolrs import AutoLRS
from paceline.strategy.baselines.fixed import FixedSchedules
from paceline.strategy.baselines.population import PopulationBasedBandits, PopulationBasedTraining

__all__ = ["AutoLRS", "FixedSchedules", "PopulationBasedBandits", "PopulationBasedTraining"]
