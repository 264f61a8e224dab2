"""Documents, statistics and parts of goodness-of-fit tests, one step on each side."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import special

from privatest import engines
from privatest.errors import Infeasible, InvalidData, InvalidDocument, InvalidInput
from privatest.fit import FitTest, design_fit
from privatest.fit import fit_test as designed
from privatest.fit.candidates import Alternative
from privatest.fit.domain import histogram, read_domain
from privatest.ledger import Ledger
from privatest.privacy import Pure, system_source
from privatest.scores import LabelCells

PLAN = designed.FitPlan(read_domain({"a": 0.5, "b": 0.3, "c": 0.2}, 0.3), 0.3, Pure(1), 0.1, "auto")
TEST = design_fit({"a": 0.5, "b": 0.3, "c": 0.2}, distance=0.3, epsilon=1, n=20)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n": 0}, "^n=0 must be a whole number of at least 1"),
        ({"n": True}, "^n=True must be a whole number of at least 1"),
        ({"distance": 0}, "lie in"),
        ({"distance": -0.5}, "lie in"),
        ({"distance": 1}, "lie in"),
        ({"distance": 1.5}, "lie in"),
        ({"probabilities": [0.5, 0.3, 0.2 + 2e-9]}, "^The probabilities of the null do not sum to 1"),
        ({"probabilities": [0.5, -0.3, 0.8]}, "^The probabilities of the null do not sum to 1"),
        ({"probabilities": [0.6, 0.6, 0.6]}, "^The probabilities of the null do not sum to 1"),
        ({"probabilities": [[0.5, 0.3, 0.2]]}, "^The probabilities of the null do not sum to 1"),
        ({"method": "magic"}, "^Unknown method 'magic'"),
        (
            {"noise": {"kind": "laplace", "scale": "5/2"}},
            "does not hide a statistic of width",
        ),
    ],
)
def test_documents_at_their_edges(changes: dict[str, Any], complaint: str) -> None:
    document = json.loads(TEST.to_json())
    assert FitTest.from_dict(document) == TEST
    for fine in ({"n": 1}, {"distance": 1e-9}, {"distance": 1 - 1e-9}, {"probabilities": [0.5, 0.5, 0.0]}):
        assert FitTest.from_dict(document | fine)
    with pytest.raises(InvalidDocument, match=complaint):
        FitTest.from_dict(document | changes)


def test_what_is_no_document_is_named() -> None:
    for wrong, name in (([], "'list'"), ({"format": "x"}, "'x'"), ({}, "None")):
        with pytest.raises(InvalidDocument, match=f"format {name}, expected"):
            FitTest.from_dict(wrong)  # type: ignore[arg-type]


def test_parts_that_do_not_fit_are_refused_one_by_one() -> None:
    cells = replace(TEST.domain, cells=LabelCells(("a", "b")))
    law = replace(TEST.domain, probabilities=np.array([0.5, 0.5]))
    both = replace(law, cells=LabelCells(("a", "b")))
    for domain in (cells, law, both):
        with pytest.raises(InvalidInput, match="The statistic has 3 symbols"):
            replace(TEST, domain=domain)


def test_the_statistic_is_the_distance_from_its_mean_for_each_record() -> None:
    width, mean = TEST.candidate.excess.width, TEST.null_law.mean
    for noisy in (Fraction(-7), Fraction(0), Fraction(11)):
        assert TEST.release(noisy + TEST.noise.offset).statistic == pytest.approx(
            (mean - float(noisy + TEST.noise.offset)) / (width * 20), rel=1e-12
        )


def test_a_total_that_is_the_cutoff_is_the_null() -> None:
    found = [TEST.release(TEST.cutoff + step).decision for step in (-1, 0, 1)]
    assert found == ["null", "null", "alternative"]


def test_the_noise_is_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = list("aaaaaaaaaabbbbbbcccc")
    monkeypatch.setattr(type(TEST.noise), "draw", lambda *_: TEST.noise.offset + 3)
    counts = histogram(engines.open_for(engines.Need(), data), TEST.domain.cells, TEST.odd_symbol, system_source)
    assert TEST.run(data) == TEST.release(TEST.candidate.excess.of(counts) + TEST.noise.offset + 3)


def test_documents_that_json_cannot_hold_are_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        replace(TEST, distance=math.nan).to_json()


def test_a_table_of_facts_names_the_null() -> None:
    assert TEST.domain.null in TEST._repr_html_()
    binned = replace(TEST, domain=replace(TEST.domain, bins="in 3 bins"))
    assert "in 3 bins" in binned._repr_html_()


def test_a_simulation_is_not_charged(tmp_path: Any) -> None:
    data = list("aaaaaaaaaabbbbbbcccc")
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        paid: dict[str, Any] = {"ledger": book, "dataset": "d", "request": "r"}
        with pytest.raises(InvalidInput, match="a simulation releases nothing"):
            TEST.run(data, rng=np.random.default_rng(1), **paid)
        assert book.spent("d") == 0
        TEST.run(data, **paid)
        assert book.spent("d") == 1


def test_records_of_which_one_person_may_have_many_are_refused_when_open_already() -> None:
    table = pa.table({"x": list("aaaaaaaaaabbbbbbcccc"), "who": [row % 4 for row in range(20)]})
    records = engines.open_source(table, column="x", unit="who", max_rows_per_unit=5)
    with pytest.raises(InvalidInput, match=r"max_rows_per_unit|row"):
        TEST.run(records)


def test_records_of_another_kind_are_refused_before_anything_is_charged(tmp_path: Any) -> None:
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        with pytest.raises(InvalidData):
            TEST.run(engines.open_source(np.arange(20.0)), ledger=book, dataset="d", request="r")
        assert book.spent("d") == 0


@pytest.mark.parametrize(
    ("many", "rough", "looked_at"), [(2, 0.1, 2), (3, 0.1, 5), (4, 1.01e-16, 5), (4, 1e-16, 1), (2, 0.0, 1)]
)
@pytest.mark.parametrize(("alpha", "taken"), [(0.0, 1e-9), (0.2, 0.2), (1.0, 1 - 1e-9)])
def test_so_many_alternatives_are_looked_at(
    many: int, rough: float, looked_at: int, alpha: float, taken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three symbols: many are more than that. Where the approximation is nothing at all, one will do."""
    assert designed.MANY_SYMBOLS == 100  # the errors that designs state depend on it
    test, asked, laws = replace(TEST), list[float](), list[Any]()
    vars(test)["alpha"] = alpha

    def hardest(_: Any, target: Any, __: Any) -> list[tuple[float, Alternative]]:
        asked.append(target.alpha)
        return [(rough, Alternative(f"number {i}", TEST.domain.probabilities)) for i in range(9)]

    law = type(TEST.candidate).law
    monkeypatch.setattr(designed, "MANY_SYMBOLS", many)
    monkeypatch.setattr(type(TEST.candidate), "hardest", hardest)
    monkeypatch.setattr(type(TEST.candidate), "law", lambda *call: laws.append(call) or law(*call))
    assert test.hardest_alternative == "number 0"
    assert (asked, len(laws)) == ([taken], looked_at)


def test_a_release_is_simulated_only_where_that_is_said() -> None:
    assert not TEST.release(TEST.cutoff).simulated
    assert TEST.release(TEST.cutoff, simulated=True).simulated


def test_releases_without_a_format_have_the_statistic_the_other_way_round() -> None:
    release = TEST.release(TEST.cutoff)
    document = release.to_dict()
    assert type(release).from_dict(document).statistic == release.statistic
    old = {name: value for name, value in document.items() if name != "format"}
    assert type(release).from_dict(old).statistic == -release.statistic
    with pytest.raises(InvalidDocument, match="privatest/fit"):
        type(release).from_dict(document | {"format": "privatest/fit-release/99"})


@pytest.mark.parametrize("count", [19, 21])
def test_another_number_of_records_is_refused_before_anything_is_charged(count: int, tmp_path: Any) -> None:
    """The width of the statistic and the noise are those of n records."""
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        with pytest.raises(InvalidData, match=f"^The data have {count} records, the test was designed for n=20"):
            TEST.run(["a"] * count, ledger=book, dataset="d", request="r")
        assert book.spent("d") == 0


def test_the_search_begins_at_half_the_sum_of_the_theorems_terms() -> None:
    k, distance, epsilon = 16, 0.1, 0.25
    plan = designed.FitPlan(read_domain([1 / k] * k, distance), distance, Pure(0.25), 0.05, "auto")
    sampling = math.sqrt(k) / distance**2
    private = math.sqrt(k) / (distance * math.sqrt(epsilon))
    between = k ** (1 / 3) / (distance ** (4 / 3) * epsilon ** (2 / 3))
    assert designed._order_of_magnitude(plan) == round((sampling + private + between + 1 / (distance * epsilon)) / 2)
    easy = replace(plan, domain=read_domain([0.5, 0.5], 0.99), distance=0.99, notion=Pure(10**6))
    assert designed._order_of_magnitude(easy) == 2  # from 1 there would be no way down


class Step:
    """A recipe that meets its targets from so many records on, and what it was asked for."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.asked: list[int] = []

    def error(self, target: Any) -> float:
        self.asked.append(target.n)
        return 0.01 if target.n >= self.enough else 0.5


@pytest.mark.parametrize("enough", [1, 2, 3, 10, 11, 500, 1000, 12_345])
@pytest.mark.parametrize("start", [2, 10, 1000, 100_000])
def test_rough_sizes_are_within_five_percent(enough: int, start: int) -> None:
    recipe: Any = Step(enough)
    found = designed._rough_size(PLAN, 0.1, recipe, start)
    assert enough <= found <= max(enough + 1, enough / 0.95)
    assert found == 1 or found in recipe.asked, "what is returned was looked at"


def test_rough_sizes_are_looked_for_in_steps_of_seven_tenths_and_then_between() -> None:
    for start, enough, asked in (
        (10, 125, [10, 10, 17, 29, 50, 85, 145, 111, 127, 119, 123]),
        (100, 40, [100, 100, 59, 35, 45, 40, 37, 38]),
    ):
        recipe: Any = Step(enough)
        designed._rough_size(PLAN, 0.1, recipe, start)
        assert recipe.asked == asked


def test_the_rough_size_is_that_of_the_best_recipe_and_begins_with_the_most_useful(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = PLAN.recipes[:2]
    asked: list[Any] = []
    monkeypatch.setattr(designed, "_rough_size", lambda _, __, recipe, start: asked.append((recipe, start)) or 70)
    monkeypatch.setattr(designed.FitPlan, "recipes", property(lambda _: [first, second]))
    for ranking in ([first, second], [second, first]):
        monkeypatch.setattr(designed, "ranked", lambda *_, ranking=ranking: ranking)
        assert designed.rough_sample_size(PLAN, 0.1) == (70, ranking)
    start = designed._order_of_magnitude(PLAN)
    assert asked == [(first, start), (first, start), (second, 70)]


def curve(needed: float, slope: float) -> Any:
    """A recipe whose error, on the scale of normal quantiles, is a line in log n that is 0.1 at ``needed``."""
    tenth = special.ndtri(0.1)
    return SimpleNamespace(error=lambda target: float(special.ndtr(tenth + slope * math.log(target.n / needed))))


@pytest.mark.parametrize(
    ("needed", "slope", "guessed", "start", "looked_at", "found"),
    [
        (999.5, -2, 1.0, 1000, [1000, 996], 1000),
        (999.5, -2, 1.3, 1300, [1300, 996, 1003], 1003),
        (999.5, -0.6, 1.0, 1500, [1500, 996, 1003], 1003),
        (999.5, -1.0, 1.0, 100, [100, 1004, 996], 1004),
        (999.5, -0.2, 1.0, 700, [700, 810, 885, 933, 963, 981, 992, 999, 1003], 1003),  # flatter than is believed
        (999.5, -2, 3.0, 90_000, [90_000, 1, 45_000, 22_500, 11_250, 5_625, 5, 2_815], 2_815),  # no more than eight
        (199_999.5, -1.5, 2.0, 400_000, [400_000, 199_200, 200_799], 200_799),
        (49.5, -60, 1.2, 60, [60, 53, 48, 51, 49, 50], 50),
        (36.5, -3, 0.5, 20, [20, 37, 35, 36], 37),
        (2.5, -2, 1.0, 1, [1, 3, 2], 3),
        (0.5, -1, 1.0, 5, [5, 1], 1),
    ],
)
def test_exact_sizes_are_looked_for_by_secants(
    needed: float,
    slope: float,
    guessed: float,
    start: int,
    looked_at: list[int],
    found: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look costs an exact law: few of them, and what is returned was looked at and is enough."""
    true, asked = curve(needed, slope), list[int]()

    def look(_: Any, n: int, __: Any) -> Any:
        asked.append(n)
        return SimpleNamespace(beta=true.error(SimpleNamespace(n=n)))

    monkeypatch.setattr(designed, "designed", look)
    assert designed._exact_size(PLAN, 0.1, [curve(needed * guessed, slope)], start) == found
    assert asked == looked_at
    assert found >= needed


@pytest.mark.parametrize(
    ("first", "missed", "found"),
    [(1000, 0, 1000), (1000, 1, 1010), (1000, 2, 1020), (1000, 3, 1030), (7, 1, 8), (7, 2, 9)],
)
def test_a_size_that_is_too_small_for_the_best_design_grows_by_one_percent(
    first: int, missed: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def look(_: Any, n: int) -> Any:
        asked.append(n)
        return SimpleNamespace(beta=0.1 if len(asked) > missed else math.nextafter(0.1, 1))

    monkeypatch.setattr(designed, "rough_sample_size", lambda *_: (5, ["choice"]))
    monkeypatch.setattr(
        designed, "_exact_size", lambda _, beta, choice, n: first if (beta, choice, n) == (0.1, ["choice"], 5) else 0
    )
    monkeypatch.setattr(designed, "designed", look)
    assert designed.sample_size(PLAN, 0.1) == found


def test_sizes_up_to_a_billion_and_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    designed._check_reach(PLAN, 10**9)
    with pytest.raises(Infeasible, match="needs more than 1000000000 records"):
        designed._check_reach(PLAN, 10**9 + 1)
    # The theorem's terms may be ten times too large: what is near is looked at, what is far is refused at once.
    near = replace(PLAN, distance=2.0e-5, notion=Pure(10**6))
    assert designed._order_of_magnitude(near) == 10**9
    with pytest.raises(Infeasible):
        designed._order_of_magnitude(replace(near, distance=1e-6))
    monkeypatch.setattr(designed, "rough_sample_size", lambda *_: (5, ["choice"]))
    monkeypatch.setattr(designed, "_exact_size", lambda *_: 10**9)
    monkeypatch.setattr(designed, "designed", lambda *_: SimpleNamespace(beta=0.5))
    with pytest.raises(Infeasible):
        designed.sample_size(PLAN, 0.1)


def test_error_rates_at_their_edges() -> None:
    def checked(alpha: float = 0.1, beta: float | None = 0.1, distance: float = 0.3, method: str = "auto") -> Any:
        return designed._checked({"a": 0.5, "b": 0.3, "c": 0.2}, distance, 1, alpha, beta, None, method)

    least = 100 * designed.ACCURACY
    assert least == 1e-6
    for rate in (least, 0.5):
        assert checked(alpha=rate).alpha == rate
        checked(beta=rate)
    assert checked(beta=None, alpha=0.9).alpha == 0.9
    checked(alpha=0.5, beta=0.5 - 1e-9)
    with pytest.raises(InvalidInput, match="must sum to less than 1"):
        checked(alpha=0.5, beta=0.5)
    for name in ("alpha", "beta"):
        with pytest.raises(InvalidInput, match=f"^{name}=.* must be at least 1e-06"):
            checked(**{name: math.nextafter(least, 0)})
        for rate in (0.0, 1.0, -0.1, math.nan):
            with pytest.raises(InvalidInput, match=f"^{name}="):
                checked(**{name: rate})
    assert checked(distance=0.8).distance == 0.8  # all mass on the least likely symbol
    with pytest.raises(InvalidInput, match=r"distance=0.801 is larger than 0.8"):
        checked(distance=0.801)
    with pytest.raises(InvalidInput, match="needs a uniform null"):
        checked(method="uniformity")
    assert designed._quantile(0.0) == special.ndtri(1e-12)
    assert designed._quantile(1.0) == special.ndtri(1 - 1e-12)
    assert designed._quantile(0.3) == special.ndtri(0.3)


def test_beta_of_a_design_may_be_what_was_asked_for() -> None:
    def made(beta: float | None) -> FitTest:
        return design_fit({"heads": 0.5, "tails": 0.5}, distance=0.3, epsilon=1, n=12, alpha=0.1, beta=beta)

    reached = made(None).beta
    assert made(reached).beta == reached
    with pytest.raises(Infeasible, match=r"^n=12 records give a type II error of .*: about [0-9]+ records are needed"):
        made(math.nextafter(reached, 0))


def test_records_on_which_no_statistic_depends_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(designed, "ranked", lambda *_: [SimpleNamespace(candidate=lambda _: None)])
    with pytest.raises(Infeasible, match=r"^n=2: no statistic of so few records depends on the data"):
        designed.designed(PLAN, 2)


def test_too_few_records_are_refused_also_where_nobody_knows_how_many_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise Infeasible("too many")

    monkeypatch.setattr(designed, "rough_sample_size", refuse)
    with pytest.raises(Infeasible, match=r"^n=20 records give .*: more than 1000000000 records would be needed"):
        design_fit({"heads": 0.5, "tails": 0.5}, distance=0.01, epsilon=1, n=20, beta=0.1)


@pytest.mark.parametrize(("alpha", "level"), [(0.1, 0.1 - 1e-8), (3e-8, 2e-8), (1.5e-8, 0.75e-8)])
def test_the_error_of_the_law_is_taken_off_the_level(
    alpha: float, level: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def cutoff(_: Any, level: float, __: Any) -> Fraction:
        asked.append(level)
        return Fraction(3)

    monkeypatch.setattr(designed.ExcessLaw, "cutoff", cutoff)
    coin = designed.FitPlan(read_domain({"heads": 0.5, "tails": 0.5}, 0.3), 0.3, Pure(1), alpha, "auto")
    assert designed.designed(coin, 12).cutoff == 3
    assert asked[-1] == pytest.approx(level, rel=1e-12)  # those before are of recipes that are compared
