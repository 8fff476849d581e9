"""Doing it, one fork: what a training must be able to do, and the one for torch."""

from paceline.training.checkpoint import load_checkpoint, save_checkpoint
from paceline.training.device_batches import DeviceBatches
from paceline.training.protocol import Observation, Training
from paceline.training.torch_training import TorchTraining

__all__ = ["DeviceBatches", "Observation", "TorchTraining", "Training", "load_checkpoint", "save_checkpoint"]
