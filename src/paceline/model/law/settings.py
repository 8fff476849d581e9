"""The searched constants of the law, in one place.

docs/research.md, "The law", has what was tried for its form, its rows and its misfit; "Planning the next run" what was
tried for plans.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormSettings:
    """The form of the law and its priors. docs/research.md, "The law", under "Finding the form".

    Args:
        slowest, fastest, modes: speeds l_i of the relaxation modes, in units of one over the largest S, and how many.
        decays: rates k_j of the exponentials, likewise.
        exponent_centre, exponent_spread: priors of (log a, log S0 / Smax, g, z): means and deviations.
        g_low, g_high: bounds of g.
        coefficient_scale: prior scale of the coefficients, in units of a typical loss.
        exponential_scale: of those of the exponentials, also in units of how far the loss moves.
        noise_scale: of those of the modes, likewise.
        neighbour_scale: scale of the difference between the weights of neighbouring modes, in units of one weight.
    """

    slowest: float = 2.0
    fastest: float = 400.0
    modes: int = 5
    decays: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    exponent_centre: tuple[float, float, float, float] = (0.5, 0.01, 0.85, -0.1)
    exponent_spread: tuple[float, float, float, float] = (0.5, 1.5, 0.15, 0.15)
    g_low: float = 0.2
    g_high: float = 1.8
    coefficient_scale: float = 10.0
    exponential_scale: float = 0.2
    noise_scale: float = 1.0
    neighbour_scale: float = 0.05


@dataclass(frozen=True, slots=True)
class RowSettings:
    """How runs become rows. docs/research.md, "The law", under "Finding the form" and "found by tests of the law".

    Args:
        per_run, total, fewest: most rows of a run, most rows in all, and rows that each run may have in any case.
        first_share: share of a run before which it is ignored: there, training does not progress in log steps.
        window: half width of the running mean, in log steps.
        noise_window: observations over which the noise is measured.
        least_noise: least relative deviation of one observation.
        unknown_noise: its guess, with fewer than four observations.
        diverged: a run has diverged if it ends above so many times its first loss.
        states: most steps of a run at which its state is computed; the cost grows with their square.
        nodes: of the interpolation in g.
        schedule_pieces: constant pieces that a schedule is cut into.
        block: steps whose modes are computed at once; the memory grows with its square.
    """

    per_run: int = 40
    total: int = 1200
    fewest: int = 4
    first_share: float = 0.01
    window: float = 0.3
    noise_window: int = 24
    least_noise: float = 1e-4
    unknown_noise: float = 0.02
    diverged: float = 2.0
    states: int = 2000
    nodes: int = 12
    schedule_pieces: int = 400
    block: int = 256


@dataclass(frozen=True, slots=True)
class MisfitSettings:
    """The Gaussian process on what the law misses. docs/research.md, "The law", under "Finding the form".

    Args:
        extrapolation: relative error of the progress beyond the last step that was observed.
        least_speed: least speed of a run, in units of a typical one; its own process scales with the speed.
        scale_centre, scale_spread: priors of the scales: medians, and deviations of the logs. The scales are: the part
            shared by all runs, its lengths in log step and log10 rate, luck of a run, its own process, the length of
            that in log step, and the noise in units of second differences.
        span_powers: powers of how far the loss has moved, by which the medians are multiplied.
    """

    extrapolation: float = 0.2
    least_speed: float = 0.2
    scale_centre: tuple[float, ...] = (0.3, 1.0, 1.0, 0.003, 0.02, 0.3, 1.3)
    scale_spread: tuple[float, ...] = (0.17, 0.2, 0.2, 0.7, 0.7, 0.5, 0.3)
    span_powers: tuple[float, ...] = (1.5, 0, 0, 1, 1, 0, 0)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How the law is fitted and drawn. docs/research.md, "The law".

    Args:
        draws: of the law's parameters.
        proposals: from which these are chosen by importance sampling.
        outlier: deviations from which on a residual counts linearly (Huber).
        reweightings: of the least squares.
        rounds: in which exponents and scales of the misfit are fitted in turn.
        first_evaluations, evaluations, scale_evaluations: of Nelder and Mead's search: for the first exponents, for
            later ones, and for the scales.
        exponent_step: its first step, in prior deviations; scale_step: for the log scales.
        freedom, widening: of the Student distribution of the proposals.
        difference_step: of second differences at the mode, in prior deviations.
        shared_weight, shared_floor: prior deviation of a task's coefficients around the shared ones: relative to these,
            plus relative to their own prior.
        new_run_rows: rows of a run that was not fitted, from which a forecast continues.
        largest_residual: most that a residual may change the logarithm of a forecast.
    """

    draws: int = 128
    proposals: int = 256
    outlier: float = 3.0
    reweightings: int = 4
    rounds: int = 2
    first_evaluations: int = 100
    evaluations: int = 120
    scale_evaluations: int = 150
    exponent_step: float = 0.5
    scale_step: float = 0.4
    freedom: float = 6.0
    widening: float = 1.1
    difference_step: float = 0.15
    shared_weight: float = 0.3
    shared_floor: float = 0.1
    new_run_rows: int = 20
    largest_residual: float = 3.0


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How a schedule is planned. docs/research.md, "Planning the next run".

    Args:
        pieces: constant pieces of the schedule that is planned.
        iterations: most steps of L-BFGS from each start.
        above: a plan stays below so many times the highest stable rate.
        lasting: share of the longest run that a run must last to show that its rate is stable.
        near_peak: share of its peak at which a schedule has warmed up.
        least_warmup, most_warmup: share of the run, of a planned shape.
    """

    pieces: int = 200
    iterations: int = 40
    above: float = 1.25
    lasting: float = 0.5
    near_peak: float = 0.9
    least_warmup: float = 0.01
    most_warmup: float = 0.5


FORM = FormSettings()
ROWS = RowSettings()
MISFIT = MisfitSettings()
SEARCH = SearchSettings()
PLAN = PlanSettings()
