"""gpytorch is imported here, once, since its import warns of parts of torch that will go."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import gpytorch  # noqa: F401
