"""Into other people's training loops, and out of their logs: torch schedulers, and old runs as traces."""

from paceline.integrations.logs import read_traces
from paceline.integrations.scheduler import PaceLR, lambda_lr

__all__ = ["PaceLR", "lambda_lr", "read_traces"]
