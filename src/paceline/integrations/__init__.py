"""Paceline in the training loops of others (torch schedulers, trainers, loggers), and their logs as traces."""

from paceline.integrations.grouped_warnings import GroupedWarnings
from paceline.integrations.logs import LogColumns, read_log, read_traces
from paceline.integrations.scheduler import PaceLR, lambda_lr
from paceline.integrations.trace_builder import Rate

__all__ = ["GroupedWarnings", "LogColumns", "PaceLR", "Rate", "lambda_lr", "read_log", "read_traces"]
