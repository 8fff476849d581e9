"""The paper's experiments on its own data, and our method beside others: one file each, opening with its claim."""
