"""Forks on a Ray cluster."""

from paceline.errors import InputError

try:
    import ray as _  # noqa: F401  everything in this package needs it
except ImportError as missing:
    raise InputError("runner='ray' needs ray: pip install paceline[ray]") from missing

from paceline.runner.ray.runner import Ray

__all__ = ["Ray"]
