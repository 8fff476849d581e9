"""Into other people's training loops: torch schedulers."""

from paceline.integrations.scheduler import PaceLR, lambda_lr

__all__ = ["PaceLR", "lambda_lr"]
