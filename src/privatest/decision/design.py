r"""Numbers of records at which a test surely meets its goal, found without its margin at each of them.

They come from a sure lower bound on the advantage at many numbers of records, for the price of one. The transforms of
one record's law are computed once; the n-th power is all that changes with n. The Fourier integral is taken about 0
alone, at cutoffs that move with the mean of the total. What the other peaks of the transform could add is bounded by
the integral of its modulus there, which only shrinks as n grows:

.. math:: |F(c) - \hat F(c)| \le \frac1\pi \int_{r}^{\pi} \frac{|\phi(t)|^n |\phi_N(t)|}{2 \sin(t/2)} dt .

So a bound above the goal settles that n; where it lies below, nothing is said. The sum of few records has a short law,
which is computed for all numbers of them from one transform.

From P, Q and epsilon to a tuned test; how many records it needs, and how little privacy loss n records need.

:func:`decide` is the whole of it in one call: count the records, design the test for them, run it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import numbers
from privatest.decision import PrivateTest, Release
from privatest.decision.calibration import (
    CALIBRATED,
    KINDS,
    PRIVATE_KINDS,
    Goal,
    calibrated_noise,
    literal_cutoff,
    make_goal,
)
from privatest.decision.odd import OddShare
from privatest.decision.tuning import Tuner, make_tuner, rough_clamp, tuning_size
from privatest.errors import Infeasible, InvalidInput, shown
from privatest.laws.curves import Curves
from privatest.laws.fourier import doubling_panels, quick_log_transforms, side_lobes, sum_laws
from privatest.laws.total import chernoff_windows
from privatest.numbers import Floats, Integers, Number, dot, row_dots
from privatest.privacy import Noise, NoNoise, Pure
from privatest.progress_events import each, part
from privatest.questions import known_arguments
from privatest.scores.score_law import SLACK

if TYPE_CHECKING:
    from privatest.decision.tuning import Tuner


_MOST_PANELS = 200
_NEGLIGIBLE = 46.0
_MOST_LOBES = 4096
# Rounding, and what lies below e^-46 of the transform's peak.
_SLACK = 1e-11
# Cutoffs that are tried, in standard deviations of the noisy total from the one that was best for the fewest records.
_TRIED = np.linspace(-0.3, 0.3, 13)
_BLOCK = 1 << 20
# Sums of scores on at most so many integers are short; so many in all, for every number of records, are quickly made.
_SHORT, _MOST_INTEGERS = 1 << 17, 1 << 22


def sure_advantages(
    support: Integers,
    laws: tuple[Floats, Floats],
    noise: Noise,
    counts: Sequence[int],
    cutoffs: Callable[[int], Fraction] | None = None,
    enough: float = 1.0,
) -> Floats:
    """At each number of records (consecutive, increasing) an advantage that the test surely has; -1 where in doubt.

    Args:
        support, laws: scores, and their probabilities under P and under Q.
        cutoffs: the test's own cutoff at n records; without it, the best of those tried.
        enough: where a cutoff has this advantage, no other is tried.

    Guarantees: at most the advantage at the best cutoff (at the given one), at each n.
    """
    unknown = np.full(len(counts), -1.0)
    first, last = (Curves(support, *laws, n, noise) for n in (counts[0], counts[-1]))
    if (short := _short_sums(first, counts, cutoffs, enough)) is not None:
        return short
    if noise.variance == 0 or first._without_infinite is not None:
        return unknown
    if np.any(np.abs(support) >= 1 << 20) or min(first._variances) <= 0 or first.n < 32:
        return unknown
    low, spacing, steps, coarse = first._lattice
    reach = 9.5 / math.sqrt(first.n * min(first._variances))
    farthest = last._near
    if reach > math.pi / 4 or reach * coarse.plateau > 5:
        return unknown
    scale = min(1.0 / math.sqrt(last.n * max(last._variances) + coarse.variance), coarse.decay_rate, 1.0 / farthest)
    nodes = doubling_panels(scale, reach, farthest, _MOST_PANELS)
    missed = None if nodes is None else _beyond(steps, laws, first.n, coarse, reach)
    if nodes is None or missed is None:
        return unknown
    t, weights = nodes
    shared = coarse.characteristic(t) * (weights / (2 * math.pi * np.sin(t / 2)))
    transforms = quick_log_transforms(steps, laws, t)
    if cutoffs is None:
        offset = float(first.best_offset()[0])
        sizes = np.sqrt(np.array(counts) * max(first._variances) + coarse.variance)
        tried = np.rint(offset + np.multiply.outer(sizes, _TRIED))
        centres = [Curves(support, *laws, n, noise)._centre for n in counts]
    else:
        tried = np.zeros((len(counts), 1))
        half = coarse.offset + Fraction(1, 2)
        centres = [math.floor(cutoffs(n) - n * low - coarse.offset) + half for n in counts]
        moved = max(abs(c - Curves(support, *laws, n, noise)._centre) for n, c in zip(counts, centres, strict=True))
        if spacing > 1 or moved > farthest:
            return unknown
    found = np.empty(len(counts))
    rows = max(_BLOCK // (len(t) * tried.shape[1]), 1)
    numbers = np.array(counts, dtype=np.float64)
    for start in range(0, len(counts), rows):
        part = slice(start, start + rows)
        angles = np.multiply.outer(tried[part], t)
        cosines, sines = np.cos(angles), np.sin(angles)
        gains = np.zeros(angles.shape[:2])
        for sign, (mean, logs) in zip((-1.0, 1.0), transforms, strict=True):
            turns = [float(n * Fraction(mean) - c) for n, c in zip(counts[part], centres[part], strict=True)]
            waves = np.exp(np.multiply.outer(numbers[part], logs) + 1j * np.multiply.outer(turns, t)) * shared
            gains += sign * (np.einsum("ijk,ik->ij", sines, waves.real) - np.einsum("ijk,ik->ij", cosines, waves.imag))
        found[part] = gains.max(axis=1)
    return found - missed - _SLACK


def _short_sums(
    curves: Curves, counts: Sequence[int], cutoffs: Callable[[int], Fraction] | None, enough: float
) -> Floats | None:
    """The same from the law of each sum, where all are short; else None.

    A score that stands for an infinite ratio settles the test: the sums are those without one.
    """
    inner = curves if curves._without_infinite is None else curves._without_infinite[0]
    low, spacing, steps, noise = inner._lattice
    if min(inner._variances) <= 0 or noise.spacing > 1 or (spacing > 1 and cutoffs is not None):
        return None
    windows = [chernoff_windows(steps[law > 0], law[law > 0], counts) for law in inner._laws]
    sizes = [last - first + 1 for first, last in itertools.chain(*windows)]
    if max(sizes) > _SHORT or sum(sizes) > _MOST_INTEGERS:
        return None
    terms = [[n, 0] for n in counts] + [[0, n] for n in counts]
    laws = [law[::-1] for law in sum_laws(steps.astype(np.int64), inner._laws, terms, [*windows[0], *windows[1]])]
    # Cutoffs as the whole part of what they are above the noise's offset; a half more lies between two totals.
    if cutoffs is None:
        places = [math.floor(replace(inner, n=n)._centre - noise.offset) for n in counts]
        tried = _offsets(inner)
    else:
        places, tried = [math.floor(cutoffs(n) - n * low - noise.offset) for n in counts], [0]
    ends = [place - end for place, *both in zip(places, *windows, strict=True) for end in itertools.chain(*both)]
    start = min(ends) + min(tried)
    levels = noise.cdf(float(noise.offset) + 0.5 + np.arange(start, max(ends) + max(tried) + 1, dtype=np.float64))

    def cdf(place: int, last: int, law: Floats) -> float:
        """Pr[S + N <= place], the law of S running down from its last value."""
        return dot(levels[place - last - start : place - last - start + len(law)], law)

    found = np.empty(len(counts))
    for i, n in enumerate(counts):
        settled = replace(curves, n=n)._without_infinite
        (never_p, sure_p), (never_q, sure_q) = ((1.0, 0.0), (1.0, 0.0)) if settled is None else settled[1:]
        best = -1.0
        for offset in list(tried):
            at = places[i] + offset
            null = never_p * cdf(at, windows[0][i][1], laws[i]) + sure_p
            gain = never_q * cdf(at, windows[1][i][1], laws[len(counts) + i]) + sure_q - null
            if gain > best:
                best = gain
                tried.remove(offset)
                tried.insert(0, offset)  # what was good for n records is tried first for more
            if best >= enough + _SLACK:
                break
        found[i] = best
    return found - _SLACK


def _offsets(curves: Curves) -> list[int]:
    """Offsets to try, from the one that is best for the fewest records on."""
    best = curves.best_offset()[0]
    size = math.sqrt(curves.n * max(curves._variances) + curves._lattice[3].variance)
    return sorted({best, *(best + np.rint(_TRIED * size).astype(int)).tolist()}, key=lambda offset: abs(offset - best))


def _beyond(steps: Floats, laws: tuple[Floats, Floats], n: int, noise: Noise, reach: float) -> float | None:
    """What both integrals could be beyond the reach, at most; None where there are too many peaks."""
    missed = 0.0
    for law in laws:
        lobes = side_lobes(steps, law, n, reach, _NEGLIGIBLE, _MOST_LOBES)
        if lobes is None:
            return None
        if len(lobes) == 0:
            continue
        # Each peak is at most as wide as the one at 0: half as wide panels resolve it, and its two sides.
        panels = doubling_panels(reach / 16, reach, 48 / reach, _MOST_PANELS)
        if panels is None:
            return None
        away, weights = panels
        t = np.concatenate([lobes[:, None] - away, lobes[:, None] + away], axis=1)
        inside = (t > reach) & (t <= math.pi)
        modulus = np.empty(t.shape)
        for row, angles in enumerate(t):
            waves = np.multiply.outer(angles, steps)
            modulus[row] = np.hypot(row_dots(np.cos(waves), law), row_dots(np.sin(waves), law))
        with np.errstate(under="ignore", divide="ignore"):
            sizes = np.exp(n * np.log(np.minimum(modulus, 1.0))) * np.abs(noise.characteristic(t))
        parts = np.where(inside, sizes / (2 * math.pi * np.sin(np.minimum(t, math.pi) / 2)), 0.0)
        missed += 2 * math.fsum((parts * np.tile(weights, 2)).ravel())  # twice: peaks that share an interval
    return missed


_GAP_KINDS = ("tight", "stair", "ncllr", "scllr", "llr")


def unsure(
    family: Tuner, counts: range, calibrated_noise: Callable[..., Noise], literal_cutoff: Callable[..., Fraction]
) -> list[int]:
    """Those of the numbers of records at which a quick look does not settle that the goal is met.

    The family's clamp must be the same for all; the two functions are those of
    ``decision.build``.
    """
    plain = family.kind in _GAP_KINDS and family.around.kind == "replace" and isinstance(family.notion, Pure)
    few = len(counts) <= 3 and family.kind != "llr"  # sooner computed than looked at
    if few or not plain or family.goal.alpha is not None or (family.question is not None and family.kind == "stair"):
        return list(counts)
    score, goal = family.score_for(counts[0]), family.goal
    if len(score.null_laws) + len(score.alternative_laws) > 2 or score.upper_laws:
        return list(counts)
    if family.kind == "llr":
        if family.score_for(counts[-1]) is not score:
            return list(counts)
        noise: Noise = NoNoise()
    else:
        # Tulap noise is the average of stairs of all offsets, so that the best stair has at least its advantage.
        kind = "tight" if family.kind == "stair" else family.kind
        noise = calibrated_noise(kind, score, family.notion, family.clamp_for(counts[0]), family.around.rows)
    calibrated = family.threshold is None and family.kind in ("tight", "stair")
    cutoffs = None if calibrated else partial(literal_cutoff, score, family.kind, family.threshold)
    laws = score.null_law, score.alternative_law
    # Laws of sets that are the worst for one n are so for every n; those of another n lie above by the slack at most.
    enough = (goal.advantage or 0.0) + (0.0 if family.question is None else 2 * SLACK)
    sure = sure_advantages(score.support, laws, noise, counts, cutoffs, enough)
    return [n for n, gain in zip(counts, sure, strict=True) if gain < enough]


_LARGEST_EPSILON = 64.0


def sample_size(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> int:
    """The smallest n such that the test on n records, and on any larger number, meets the goal.

    The goal is an advantage (2/3 unless said otherwise), or type I and II errors alpha and beta. On discrete data power
    is a sawtooth in n; "and on any larger number" is what the paper means by sample complexity.

    Args:
        null, alternative, epsilon, privacy: as for :func:`privatest.design`.
        advantage: the goal: the least 1 - alpha - beta; 2/3 if no goal is named.
        alpha, beta: the goal, instead of an advantage: the largest type I error (saying "alternative" under P) and the
            largest type II error (saying "null" under Q).
        test, clamp, threshold, neighbours, max_rows_per_unit, release: as for :func:`privatest.design`.

    >>> sample_size([0.6, 0.4], [0.4, 0.6], epsilon=1)
    29
    """
    goal = make_goal(advantage, alpha, beta)
    family = make_tuner(
        null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
    )
    return smallest_n(family)


def min_epsilon(
    null: Any,
    alternative: Any,
    *,
    n: int,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> float:
    """The strongest privacy at which n records suffice: the smallest epsilon, rounded up to four digits.

    Args:
        n: number of records there are, which is public.
        advantage, alpha, beta: as for :func:`privatest.sample_size`.
        null, alternative, test, clamp, threshold, neighbours, max_rows_per_unit, release: as for
            :func:`privatest.design`.
    """
    n = numbers.positive_integer(n=n)
    goal = make_goal(advantage, alpha, beta)
    numbers.choice([kind for kind in KINDS if kind in PRIVATE_KINDS], test=test)
    arguments = test, clamp, threshold, goal, neighbours, max_rows_per_unit
    base = make_tuner(null, alternative, 1, *arguments, release=release)

    def margin(epsilon: float, ends: tuple[Number, Number] | None = None) -> float:
        return base.at_epsilon(epsilon, ends).margin(n)

    if margin(_LARGEST_EPSILON) < 0:
        raise Infeasible(
            f"n={n} records do not reach {goal} at any epsilon: without privacy they would not suffice either. "
            f"Use sample_size(...) to see how many are needed."
        )
    high = _LARGEST_EPSILON
    # The clamp for a guess, the epsilon for that clamp, and so on.
    for guess in each("the smallest epsilon", (1.0, None, None)):
        ends = base.at_epsilon(guess or high).clamp_for(n) if base.clamp == "tuned" else None
        high = _smallest(lambda epsilon: margin(epsilon, ends), high)  # noqa: B023  called before the next round
        if ends is None:
            break
    rounded, quantum = _four_digits(high)
    while margin(float(rounded)) < 0:
        rounded += quantum
    # Where no rival does with four digits less, none has a smaller epsilon: most are looked at only once.
    for rival in base.at_epsilon(float(rounded)).rivals(n):
        less = float(rounded - quantum)
        if less > 0 and rival.at_epsilon(less).own_margin(n) >= 0:
            best = _smallest(lambda epsilon: rival.at_epsilon(epsilon).own_margin(n), less)  # noqa: B023  called here
            rounded, quantum = _four_digits(best)
    return float(rounded)


def _four_digits(epsilon: float) -> tuple[Decimal, Decimal]:
    """Epsilon rounded up to four digits, and one of the last digit."""
    digits = Decimal(repr(epsilon))
    quantum = Decimal(1).scaleb(digits.adjusted() - 3)
    return digits.quantize(quantum, rounding=ROUND_CEILING), quantum


def _smallest(margin: Callable[[float], float], start: float) -> float:
    """The smallest epsilon of non-negative margin, to one part in 10^5.

    Invariant: margin(low) < 0 <= margin(high), where low = 0 stands for perfect privacy.
    """
    low, high = 0.0, start
    if margin(high) < 0:
        high = _LARGEST_EPSILON
    while high - low > 1e-5 * high and high > 1e-9:
        trial = math.sqrt(low * high) if low > 0 else high / 4
        if margin(trial) >= 0:
            high = trial
        else:
            low = trial
    return high


def design(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    advantage: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> PrivateTest:
    """A test of P (``null``) against Q (``alternative``).

    Args:
        null, alternative: P and Q: frozen scipy distributions, mappings from labels to probabilities, arrays of
            probabilities, :func:`privatest.density`, text such as "normal(0, 1)", or sets of these.
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
        privacy: another notion in place of epsilon: ``pt.approx(1, 1e-6)``, ``pt.gdp(1)``, ``pt.zcdp(0.5)``, ``pt.tv``,
            ``pt.renyi``, ``pt.kl``, or such a text: "zcdp(0.5)".
        n: number of records, which is public. None: the smallest that meets ``advantage``, or ``alpha`` and ``beta``.
        test: "tight" (the default), or one of the paper's: "scllr", "ncllr", and "llr" and "sllr", which do not clamp
            and are not private.
        clamp: "tuned" (the default for "tight"): the ends with the best exact error rates for this n; "paper" (the
            default for the paper's tests): the decomposition's; or (a, b).
        threshold: decide "null" above it, in nats. None: for "tight" the one with the best exact error rates, for the
            paper's tests 0.
        alpha: keep the type I error at most this, and make the type II error small.
        neighbours: what the test must not tell apart. "replace": two data sets of n records, of which one differs.
            "add-remove": two data sets of which one has a record more; n is then the number you expect, for which the
            test is tuned, and is neither checked nor revealed.
        max_rows_per_unit: the most records that one person counts as, where a run names the ``unit`` (see
            :meth:`PrivateTest.run`): all rows of a person are hidden together. Above 1, error rates are those of rows
            that do not resemble each other (docs/sharp_edges.md).
        release: "statistic" (the default): the noisy statistic, its p-value and an interval, whatever level is asked
            for afterwards. "decision": the best decision there is, on fewer records; beside it only its level leaves,
            a whole number with p-values of its own. ``alpha`` is met exactly, by a public coin between two thresholds.
        beta: without n: the type II error that the smallest n must not exceed, together with ``alpha``.
        advantage: without n: the least 1 - alpha - beta that n must give; 2/3 if no goal is named.

    >>> test = design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    >>> round(test.advantage, 4)
    0.6774
    """
    if threshold is not None and alpha is not None:
        raise InvalidInput(f"threshold={shown(threshold)} and alpha={shown(alpha)} were both given. Give one of them.")
    if n is None:
        goal = make_goal(advantage, alpha, beta)
        family = make_tuner(
            null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
        )
        return family.test(smallest_n(family))
    n = numbers.positive_integer(n=n)
    if beta is not None or advantage is not None:
        name, value = ("beta", beta) if beta is not None else ("advantage", advantage)
        raise InvalidInput(
            f"{name}={shown(value)} and n={n} were both given, but n records have the power they have. Leave one out."
        )
    goal = Goal(advantage=0.0) if alpha is None else Goal(alpha=numbers.probability(alpha=alpha), beta=0.0)
    family = make_tuner(
        null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
    )
    return family.test(n)


@known_arguments
def decide(
    data: Any,
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    alpha: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
    column: str | None = None,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> Release:
    """Whether the data come from P (``null``) or from Q (``alternative``), with epsilon-privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        null, alternative, epsilon, privacy, alpha, test, clamp, threshold, neighbours, max_rows_per_unit, release: as
            for :func:`privatest.design`.
        n: number of records; by default that of the data, which is public. With neighbours "add-remove" it is not:
            say how many you expect.
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> decide([0, 0, 1, 0, 0] * 20, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=1).decision
    'null'
    """
    from privatest import engines  # planning needs none of them

    records = None
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and a test made "
                "for it would tell it. Say how many you expect: n=..."
            )
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
        if n == 0:
            raise InvalidInput("The data have no records. Pass at least one.")
    made = design(
        null,
        alternative,
        epsilon=epsilon,
        privacy=privacy,
        n=n,
        alpha=alpha,
        test=test,
        clamp=clamp,
        threshold=threshold,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
        release=release,
    )
    where, odd = {"column": column, "unit": unit}, OddShare.of(made, odd_epsilon)
    made.check_tells()
    return made.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng, besides=odd)


# No sample size beyond this is looked for.
MOST_RECORDS = 10**13
# Among fewer numbers of records than this none is guessed at first.
FEW_NUMBERS = 4


def smallest_n(family: Tuner, between: tuple[int, int] | None = None) -> int:
    """The smallest n from which on the tests of a family meet its goal; the family remembers it.

    Args:
        between: fewer records than the first are known not to meet the goal, and the second to meet it.
    """
    known: dict[str, int] = family.__dict__
    if "_smallest" not in known:
        known["_smallest"] = _smallest_n(family, between)
    return known["_smallest"]


def _smallest_n(family: Tuner, between: tuple[int, int] | None) -> int:
    _refuse_hopeless(family)
    with part("the number of records", 2) as tell:
        if between is not None and (between[1] - between[0] < FEW_NUMBERS or len({*map(tuning_size, between)}) == 1):
            crossing = _from_above(family.own_margin, *between)
        else:
            crossing = _crossing(family.own_margin, _guess(family), lambda n: _never(family, n))
        tell(1)
        n = _beyond_dips(family, crossing)
        # Where no rival meets the goal with one record fewer, none has a smaller n: most are looked at only once.
        return n if n == 1 or family.margin(n - 1) < 0 else _beyond_dips(family, _from_above(family.margin, 1, n - 1))


def _beyond_dips(family: Tuner, crossing: int) -> int:
    """The smallest n from which on the goal is met: power can dip below it again beyond the crossing. Scores with many
    values smooth that away; with few, look as far ahead as a dip can lie, a couple of steps past the cutoff."""
    while True:
        ahead = max(32, crossing // 8) if family.few_values(crossing) else 3
        ahead = min(ahead, 400)
        # A clamp tuned for each n does at least as well as the one tuned for the crossing.
        fixed = family.with_clamp_for(crossing)
        doubtful = unsure(fixed, range(crossing + 1, crossing + ahead + 1), calibrated_noise, literal_cutoff)
        dips = [n for n in doubtful if fixed.margin(n) < 0 and family.margin(n) < 0]
        if not dips:
            return crossing
        crossing = dips[-1] + 1


def _guess(family: Tuner) -> int:
    """A first idea of n: without privacy from a normal approximation, else from tuning on the coarse profile."""
    if family.kind == "llr":
        return _guess_without_privacy(family)
    if family.kind not in CALIBRATED or family.clamp != "tuned" or len(family.profile.ratios) <= 2:
        return 64
    noise = 2 / (math.sinh(min(float(family.notion.equivalent), 9.0)) * family.pair.total_variation)
    n = min(_guess_without_privacy(family) + math.ceil(min(noise, MOST_RECORDS)), MOST_RECORDS // 4)
    clamp = rough_clamp(family.profile, family.notion, n, family.around)

    def margin(m: int) -> float:
        return family.goal.margin(family.profile.curves(clamp, family.notion, m, family.around))

    found = _crossing(margin, n, lambda _: MOST_RECORDS, rough=True)
    if family.kind != "stair":
        return found
    # A stair can need far fewer records, and each number of them that is tried is tuned: one tuned clamp says where.
    a, b = family.clamp_for(found)

    def tuned_margin(m: int) -> float:
        made = (family.profile.curves((float(a), float(b)), family.notion, m, family.around, s) for s in family.starts)
        return max(family.goal.margin(curves) for curves in made)

    return _crossing(tuned_margin, found, lambda _: found)


def _guess_without_privacy(family: Tuner) -> int:
    """n records have log ratios about twice -4 n log(1 - H^2) apart, measured in their deviation, squared."""
    goal = family.goal
    alpha, beta = goal.alpha, goal.beta
    if alpha is None or beta is None:
        alpha = beta = (1 - (goal.advantage or 0.0)) / 2
    deviations = _deviations(1 - alpha) + _deviations(1 - beta)
    rate = -8 * math.log1p(-min(family.pair.hellinger_squared, 1 - 1e-15))
    return min(max(round(deviations**2 / rate), 1), MOST_RECORDS)


def _deviations(share: float) -> float:
    """The standard normal quantile, never infinite."""
    return NormalDist().inv_cdf(min(max(share, 1e-15), 1 - 1e-15))


def _crossing(margin: Callable[[int], float], guess: int, never: Callable[[int], int], *, rough: bool = False) -> int:
    """An n with margin(n) >= 0 > margin(n - 1), near the guess; rough: to within half a per cent.

    Invariant: margin(low) < 0 <= margin(high), where low = 0 stands for no records at all.
    """
    step = 50 if rough else 200  # a guess that was found roughly is nearer than a guess at that
    low = high = max(guess, 1)
    if margin(high) >= 0:
        return _from_above(margin, 1, high, step, rough=rough)
    high = low + max(low // step, 1)
    while margin(high) < 0:
        if high >= MOST_RECORDS:
            return never(high)
        low, high = high, min(high + (high - low) * 3, MOST_RECORDS)
    return _halved(margin, low, high, rough)


def _from_above(margin: Callable[[int], float], least: int, high: int, step: int = 200, *, rough: bool = False) -> int:
    """:func:`_crossing` where ``high`` records meet the goal and fewer than ``least`` do not: it is near the first."""
    low = high - max(high // step, 1)
    while low >= least and margin(low) >= 0:
        high, low = low, low - max((high - low) * 3, 1)
    return _halved(margin, max(low, least - 1), high, rough)


def _halved(margin: Callable[[int], float], low: int, high: int, rough: bool) -> int:
    """:func:`_crossing` between two numbers, by its invariant."""
    while high - low > (max(1, high // 200) if rough else 1):
        middle = (low + high) // 2
        if margin(middle) >= 0:
            high = middle
        else:
            low = middle
    return high


def _refuse_hopeless(family: Tuner) -> None:
    """With a fixed threshold the total must drift up under P and down under Q, or one error tends to 1/2 or 1."""
    if family.threshold is None and (family.kind in CALIBRATED or family.goal.alpha is not None):
        return
    null, alternative = family.drifts(1)
    size = abs(null) + abs(alternative)
    if null > 1e-12 * size and alternative < -1e-12 * size:
        return
    side, mean = ("null", null) if null <= 1e-12 * size else ("alternative", alternative)
    raise Infeasible(
        f"test={family.kind!r} with threshold {float(family.threshold or 0):g} never reaches {family.goal} for good: "
        f"one record adds {mean:.3g} on average under the {side}, so however large n is, that side's error stays at "
        "1/2 or more. Use test='tight', whose threshold is calibrated, or give another threshold."
    )


def _never(family: Tuner, n: int) -> int:
    """The largest n that is looked at, where a rival meets the goal there; else an error."""
    if family.margin(n) >= 0:
        return n
    found = family.test(n)
    raise Infeasible(
        f"test={family.kind!r} does not reach {family.goal} with up to {n:.0e} records: there alpha is "
        f"{found.alpha:.4g} and beta {found.beta:.4g}. Use a larger epsilon, a lower target or a more distant pair."
    )
