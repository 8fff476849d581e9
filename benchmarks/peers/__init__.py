"""Published methods that Paceline is compared with, as strategies: they run through the same loop and journal."""

from benchmarks.peers.autolrs import AutoLRS
from benchmarks.peers.pb2 import PopulationBasedBandits
from benchmarks.peers.population import PopulationBasedTraining

__all__ = ["AutoLRS", "PopulationBasedBandits", "PopulationBasedTraining"]
