"""The paper's experiments, one file each: each opens with its claim, and its results carry commit and settings."""
