"""The numbers of the preset `horizon` that were found by search, each with its meaning.

docs/research_log.md, "Tuning on the fly", has the tables they come from. Shares are of a run's steps. Changes of a
rate, and gaps between two rates, are in decades.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HorizonSettings:
    """How many forks live when, and which rates they try ("Tuning on the fly")."""

    # -- the plan --
    # Forks at the start: they set how fine the first grid of rates is.
    initial_forks: int = 8
    # When the forks are reduced, and to how many. Fewer than this early on costs 10 to 30 % on networks.
    halving: tuple[tuple[float, int], ...] = ((0.025, 5), (0.05, 3), (0.1, 2))
    # When a clone challenges the best fork. A lead before the first of them is luck and protects nobody.
    challenge_shares: tuple[float, ...] = (0.2, 0.35, 0.5, 0.7)
    # When plans with as many forks from start to end make clones, before the challenges.
    early_clone_shares: tuple[float, ...] = (0.05, 0.1)
    # Clones at each of their rungs.
    clones: int = 2
    # The least number of forks after the first rung of a plan that begins with eight and keeps four to seven.
    min_forks_at_first_rung: int = 6
    # A challenger gets at least this share of the run, and the next challenge comes at least so much later.
    min_challenge: float = 0.05
    # When the rates of plans below cost 4 are corrected, evenly spaced in log time. The rungs of the plan take part
    # from the first share on.
    first_correction_share: float = 0.1
    correction_shares: tuple[float, ...] = (0.13, 0.157, 0.19, 0.23, 0.28, 0.34, 0.41, 0.5)
    # A rate is corrected by at least this many decades: the ratio of noise to progress is off by a factor e then.
    min_correction: float = 0.1
    # A rung at which rates are only corrected is at least this far from others.
    min_share_between_rungs: float = 0.02
    # Costs in runs from which a plan can afford: the halving and then one fork, and clones from 10 % on.
    forks_from_cost: float = 1.375
    early_clones_from_cost: float = 4.0

    # -- the rates --
    # If the best of a shrinking set is at its edge, a clone tries a rate this much further out.
    edge_decades: float = 0.35
    # It does so only if the bounds of the rate leave room for this much.
    min_edge_decades: float = 0.1
    # Factor between the rates of a fork and of its challenger.
    factor: float = 1.6
    # A challenger takes a rate at least this far from those of others.
    min_gap: float = 0.05
    # Largest change of a rate that a model may choose.
    max_change: float = 0.45
    # Smallest gap to other forks' rates that a model may choose.
    min_separation: float = 0.12
    # Orders of the quantiles that clones maximise, in turn, if a model chooses.
    alphas: tuple[float, ...] = (0.5, 0.9)
    # A fork's value is the mean over this share of its latest observations.
    smoothing_share: float = 0.34


@dataclass(frozen=True, slots=True)
class FinalForecastSettings:
    """When a forecast of the final loss may overrule what the latest values say ("Tuning on the fly")."""

    # Challengers and ranking follow the forecast from this share on: before it, noise is taken for progress.
    from_share: float = 0.3
    # Share of the draws that must agree to choose the rate of the one challenger, ...
    only_clone_agreement: float = 0.85
    # ... to choose the rate of a clone if several forks keep theirs, ...
    clone_agreement: float = 0.5
    # ... and to keep a fork whose value is behind.
    ranking_agreement: float = 0.95
    # Gap between candidate rates.
    rate_step: float = 0.05
    # Smallest gap between a clone's rate and those of others.
    min_rate_gap: float = 0.1
    # A rate counts as stable if a fork has trained at it for this share of the run.
    min_lifetime_share: float = 0.05


HORIZON = HorizonSettings()
FINAL_FORECAST = FinalForecastSettings()
