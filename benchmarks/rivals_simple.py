"""Other private tests of two simple hypotheses, for comparison with ours: how many records each needs.

Each rival is a function from n to its advantage at its best threshold, computed with the package's exact laws:

- sample and aggregate (Nissim, Raskhodnikova, Smith 2007): a noisy count of the verdicts of disjoint blocks;
- the mean of clipped records with Laplace noise;
- a count of the records in one set, with logistic noise (the paper's S_{0} and S_{0,1});
- randomised response, the local model;
- the binomial test with Tulap noise (Awan and Slavkovic 2018), on two points.

Run `python benchmarks/rivals_simple.py "bernoulli(0.6)" "bernoulli(0.4)" 1`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

import privatest as pt
from privatest.decision.clamp_tuning import Profile, profile_of
from privatest.hypotheses import ContinuousPair, DiscretePair, Pair, make_pair
from privatest.laws import Curves
from privatest.numbers import Floats, first_true
from privatest.privacy import Laplace, Logistic, NoNoise, Tulap
from privatest.scores import whole_score
from privatest.scores.clamped import cell_masses

_MEAN_UNITS = 256


@dataclass(frozen=True, eq=False)
class Rival:
    """A named rival: its advantage on n records, and the n beyond which to stop looking."""

    name: str
    advantage: Callable[[int], float]
    few_values: bool = True
    short_cut: Callable[[int, float], bool] | None = None
    """Whether the advantage on n records is at least so much, where that can be said without computing all of it."""

    def reaches(self, n: int, target: float) -> bool:
        """Whether the advantage on n records is at least the target."""
        return self.advantage(n) >= target if self.short_cut is None else self.short_cut(n, target)


def rivals(pair: Pair, epsilon: Fraction) -> Iterator[Rival]:
    """All rivals that apply to the pair."""
    profile = profile_of(pair)
    yield Rival("sample and aggregate", *_sample_and_aggregate(pair, epsilon))
    values = _numbers(pair)
    if values is not None:
        yield Rival("clipped mean, Laplace", _clipped_mean(*values, epsilon), few_values=False)
    for name, chosen in _counted_sets(profile):
        yield Rival(name, _count(profile, chosen, epsilon))
    yield Rival("randomised response", _randomised_response(profile, epsilon))
    if len(profile.ratios) == 2:
        yield Rival("Awan-Slavkovic", _awan_slavkovic(profile, epsilon))


def _best(support: list[int], null: list[float], alternative: list[float], n: int, noise: object) -> float:
    """Advantage at the best cutoff; a mean that grows under Q is mirrored."""
    scores, laws = np.array(support, dtype=np.int64), (np.array(null), np.array(alternative))
    if float(laws[0] @ scores) < float(laws[1] @ scores):
        scores, laws = -scores[::-1], (laws[0][::-1], laws[1][::-1])
    return Curves(scores, *laws, n, noise).best_offset()[1]  # type: ignore[arg-type]


def _sample_and_aggregate(
    pair: Pair, epsilon: Fraction
) -> tuple[Callable[[int], float], bool, Callable[[int, float], bool]]:
    """Disjoint blocks, the likelihood-ratio test on each, a noisy count of the verdicts (Nissim et al. 2007)."""
    rates: dict[int, tuple[float, float]] = {}

    def block(size: int) -> tuple[float, float]:
        if size not in rates:
            score = whole_score(pair, size)
            curves = Curves(score.support, score.null_law, score.alternative_law, size, NoNoise())
            null, alternative = curves.cdfs(np.array([float(curves.best_offset()[0])]))
            rates[size] = float(null[0]), float(alternative[0])
        return rates[size]

    def sizes(n: int) -> list[int]:
        return sorted({max(round(n / blocks), 1) for blocks in (1, 2, 3, 5, 7, 9, 13, 19, 27, 41, 61, 101, 201, 501)})

    def with_blocks(n: int, size: int) -> float:
        alpha, power = block(size)
        return _best([0, 64], [1 - alpha, alpha], [1 - power, power], n // size, Tulap(epsilon, 64))

    def hopeless(n: int, size: int, target: float) -> bool:
        """A block's verdicts are at most sqrt(1 - (1 - H^2)^2m) apart, and k verdicts move a test by tanh(eps k/2)."""
        apart = math.sqrt(-math.expm1(2 * size * math.log1p(-min(pair.hellinger_squared, 1 - 1e-15))))
        return math.tanh(float(epsilon) * (n // size) * apart / 2) < target - 1e-9

    last = [1.0]  # how many blocks did best where it was last reached

    def reaches(n: int, target: float) -> bool:
        for size in sorted(sizes(n), key=lambda m: abs(math.log(n / m / last[0]))):
            if not hopeless(n, size, target) and with_blocks(n, size) >= target:
                last[0] = n / size
                return True
        return False

    return lambda n: max(with_blocks(n, size) for size in sizes(n)), True, reaches


def _numbers(pair: Pair) -> tuple[Floats, Floats, Floats] | None:
    """Records as numbers with their probabilities, where records are numbers."""
    if isinstance(pair, ContinuousPair):
        edges = pair.landmarks
        middles = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        return middles, cell_masses(pair.null, edges), cell_masses(pair.alternative, edges)
    assert isinstance(pair, DiscretePair)
    if pair.kind == "integers":
        return pair.first.astype(np.float64), pair.p, pair.q
    if all(isinstance(label, (int, float)) for label in pair.labels):
        return np.array(pair.labels, dtype=np.float64), pair.p, pair.q
    return None


def _clipped_mean(x: Floats, p: Floats, q: Floats, epsilon: Fraction) -> Callable[[int], float]:
    """The sum of records clipped to the best of a few symmetric intervals, with Laplace noise."""
    order = np.argsort(x)
    x, p, q = x[order], p[order], q[order]
    below = np.cumsum((p + q) / 2)
    middle = float(x[np.searchsorted(below, 0.5)])
    quarter = np.searchsorted(below, [0.16, 0.84])
    spread = float(x[min(quarter[1], len(x) - 1)] - x[quarter[0]]) / 2 or 1.0

    def law(reach: float) -> tuple[list[int], list[float], list[float]]:
        low, high = max(middle - reach, float(x[0])), min(middle + reach, float(x[-1]))
        steps = np.rint((np.clip(x, low, high) - low) / (high - low) * _MEAN_UNITS).astype(np.int64)
        support, place = np.unique(steps, return_inverse=True)
        return support.tolist(), *(np.bincount(place, weights=m).tolist() for m in (p, q))

    laws = [law(spread * r) for r in (0.5, 0.8, 1.2, 1.6, 2.2, 3.0, 4.5)]
    noise = Laplace(Fraction(_MEAN_UNITS) / epsilon)
    return lambda n: max(_best(*each, n, noise) for each in laws)


def _counted_sets(profile: Profile) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """The paper's S_{0} and S_{0,1}: the records that speak most for Q, then all that speak for Q."""
    lowest = profile.ratios <= profile.ratios[0]
    against = profile.ratios < 0
    if len(profile.ratios) <= 16 and not np.array_equal(lowest, against):
        yield "count of the strongest records", lowest
    yield "count of records for Q", against


def _count(profile: Profile, chosen: npt.NDArray[np.bool_], epsilon: Fraction) -> Callable[[int], float]:
    """A soft count: exponential mechanism on the number of records in the set, that is, logistic noise."""
    null, alternative = float(profile.p[chosen].sum()), float(profile.q[chosen].sum())
    noise = Logistic(64 / epsilon)
    return lambda n: _best([0, 64], [1 - null, null], [1 - alternative, alternative], n, noise)


def _randomised_response(profile: Profile, epsilon: Fraction) -> Callable[[int], float]:
    """Local model: each record tells whether it speaks for P, and lies with probability 1/(1 + e^epsilon)."""
    lie = 1 / (1 + math.exp(min(float(epsilon), 700.0)))  # beyond, doubles end
    true = [float(mass[profile.ratios > 0].sum()) for mass in (profile.p, profile.q)]
    null, alternative = (lie + (1 - 2 * lie) * share for share in true)
    return lambda n: _best([0, 1], [1 - null, null], [1 - alternative, alternative], n, NoNoise())


def _awan_slavkovic(profile: Profile, epsilon: Fraction) -> Callable[[int], float]:
    """The binomial test with continuous Tulap noise (Awan and Slavkovic 2018), by its own formula."""
    from scipy import stats

    b = math.exp(-float(epsilon))

    def tulap_cdf(x: Floats) -> Floats:
        whole = np.rint(x)
        inner = x - whole + 0.5
        with np.errstate(under="ignore"):
            lower = b ** np.maximum(-whole, 0.0) / (1 + b) * (b + inner * (1 - b))
            upper = 1 - b ** np.maximum(whole, 0.0) / (1 + b) * (b + (1 - inner) * (1 - b))
        return np.where(x <= 0, lower, upper)

    def advantage(n: int) -> float:
        counts = np.arange(n + 1)
        null, alternative = (stats.binom(n, mass[1]).pmf(counts) for mass in (profile.p, profile.q))
        cutoffs = np.arange(0, 2 * n + 1) / 2
        gaps = [float(np.sum((alternative - null) * tulap_cdf(c - counts))) for c in cutoffs]
        return max(gaps)

    return advantage


def rival_size(rival: Rival, target: float, most: int) -> int | None:
    """The smallest n at which the rival reaches the target and, looking a little ahead, keeps it."""
    known: dict[int, bool] = {}

    def reaches(n: int) -> bool:
        if n not in known:
            known[n] = rival.reaches(n, target)
        return known[n]

    n = first_true(reaches, 1, most=2 * most)
    if n > 2 * most:
        return None
    if rival.few_values and n < 2000:
        dips = [m for m in range(n + 1, n + 25) if not reaches(m)]
        n = dips[-1] + 1 if dips else n
    return n


PATIENCE = 1000
"""Beyond this many times the tight test's n a rival is not followed."""


def sizes(null: object, alternative: object, epsilon: Fraction, target: float = 2 / 3) -> dict[str, int | None]:
    """The records that the tight test and each rival need; None: more than PATIENCE times those of the tight test."""
    n = pt.sample_size(null, alternative, epsilon=epsilon, advantage=target)
    pair = make_pair(null, alternative)
    return {"tight": n} | {one.name: rival_size(one, target, PATIENCE * n) for one in rivals(pair, epsilon)}


if __name__ == "__main__":
    for name, records in sizes(sys.argv[1], sys.argv[2], Fraction(sys.argv[3])).items():
        print(f"{name:35} {records or 'more'}")
