"""Experiments, one file each: it opens with its claim, and its results carry the commit, the device and the settings."""
