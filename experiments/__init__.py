"""Experiments, one file each: each opens with its claim; its results carry commit, device, settings and seeds."""
