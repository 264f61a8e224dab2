"""plan, compare, curve: the same numbers as the Python API, as JSON and in 80 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import privatest as pt
from tests.cli.conftest import Run

PAIR = ("--null", "bernoulli(0.6)", "--alternative", "bernoulli(0.4)", "--epsilon", "1")
LAWS = ("bernoulli(0.6)", "bernoulli(0.4)")


def test_plan_prints_what_the_functions_say(run: Run) -> None:
    found = run("plan", *PAIR, "--json").document
    test = pt.design(*LAWS, epsilon=1)
    assert found["n"] == pt.sample_size(*LAWS, epsilon=1) == test.n
    assert (found["alpha"], found["beta"], found["advantage"]) == (test.alpha, test.beta, test.advantage)
    assert found["lower_bound"] == pt.lower_bound(*LAWS, epsilon=1)
    assert found["nonprivate"] == pt.sample_size(*LAWS, epsilon=1, test="llr")
    assert found["cost_of_privacy"] == pytest.approx(found["n"] / found["nonprivate"])
    theory = pt.sample_complexity(*LAWS, epsilon=1)
    assert (found["regime"], found["complexity"]) == (theory.regime, json.loads(json.dumps(theory.to_dict())))
    assert found == json.loads(json.dumps(pt.plan(*LAWS, epsilon=1).to_dict()))


def test_a_plan_for_add_remove_neighbours_is_bounded_by_what_replacement_allows() -> None:
    """The bound at 2 epsilon, not at epsilon: one record replaced is one removed and one added."""
    found = pt.plan(*LAWS, epsilon=0.5, neighbours="add-remove")
    assert found.lower_bound == pt.lower_bound(*LAWS, epsilon=1)
    assert found.n >= found.lower_bound


def test_compare_and_curve_are_the_functions(run: Run) -> None:
    assert run("compare", *PAIR, "--json").document == json.loads(json.dumps(pt.compare(*LAWS, epsilon=1).to_dict()))
    found = run("curve", *PAIR, "--n", "10,20, 40", "--test", "ncllr", "--json").document
    assert found == json.loads(json.dumps(pt.power_curve(*LAWS, epsilon=1, n=[10, 20, 40], test="ncllr").to_dict()))


@pytest.mark.parametrize("words", [("plan",), ("plan", "--n", "50"), ("compare",), ("curve", "--n", "10,1000000")])
def test_tables_fit_in_80_columns(run: Run, words: tuple[str, ...]) -> None:
    long = f"categorical({', '.join(f'label_{i}=0.1' for i in range(10))})"
    other = f"categorical(label_0=0.19, label_1=0.01, {', '.join(f'label_{i}=0.1' for i in range(2, 10))})"
    pairs = [PAIR]
    if words[0] == "plan":
        pairs.append(("--null", long, "--alternative", other, "--epsilon", "1"))
    for pair in pairs:
        found = run(*words, *pair)
        assert (found.code, found.err) == (0, "")
        assert max(map(len, found.out.splitlines())) <= 80


def test_a_problem_file_says_the_same_and_the_command_line_wins(run: Run, tmp_path: Path) -> None:
    for name in ("problem.toml", "problem.json"):
        where = tmp_path / name
        first = run("plan", *PAIR, "--clamp", "-0.3,0.3", "--save", where, "--json")
        assert run("plan", "--problem", where, "--json").document == first.document
        other = run("plan", "--problem", where, "--epsilon", "2", "--clamp", "paper", "--json").document
        assert other == json.loads(json.dumps(pt.plan(*LAWS, epsilon=2, clamp="paper").to_dict()))


def test_laws_as_tables_and_lists(run: Run, tmp_path: Path) -> None:
    where = tmp_path / "problem.toml"
    where.write_text("epsilon = 1\nnull = {yes = 0.6, no = 0.4}\nalternative = {yes = 0.4, no = 0.6}\ncolumn = 'x'\n")
    assert run("plan", "--problem", where, "--json").document["n"] == 29
    where.write_text("epsilon = 1\nnull = [0.6, 0.4]\nalternative = [0.4, 0.6]\n")
    assert run("plan", "--problem", where, "--json").document["n"] == 29


def test_a_saved_design_runs(run: Run, tmp_path: Path) -> None:
    where = tmp_path / "design.json"
    run("plan", *PAIR, "--n", "50", "--save-design", where)
    assert pt.results.PrivateTest.from_json(where.read_text()) == pt.design(*LAWS, epsilon=1, n=50)
    found = run("test", "-", "--design", where, "--json", stdin=b"1\n0\n" * 25)
    assert found.document["n"] == 50
    assert run("test", "-", "--design", where, "--epsilon", "2", stdin=b"1\n0\n" * 25).refused
    assert "Leave out --max-rows-per-unit" in run("test", "-", "--design", where, "--max-rows-per-unit", "2").err
    assert run("test", "-", "--design", where, stdin=b"1\n0\n" * 24).refused


RATE = ("--family", "bernoulli(?)", "--epsilon", "2")


def test_an_estimate_without_data_is_a_plan(run: Run) -> None:
    found = run("estimate", *RATE, "--n", "40", "--at", "0.3", "--json").document
    plan = pt.design_estimate("bernoulli(?)", epsilon=2, n=40)
    assert (found["n"], found["family"], found["at"]) == (40, "bernoulli(p=?)", 0.3)
    assert found["expected_width"] == plan.expected_width(0.3)
    assert found["width_bound"] == plan.width_bound(0.3)
    assert found["ratio"] == pytest.approx(found["expected_width"] / found["width_bound"])
    assert found["coverage"] == plan.coverage(0.3)
    assert found["ratio"] > 1
    middle = run("estimate", *RATE, "--n", "40", "--between", "0.2", "0.6", "--json").document
    assert middle["at"] == pytest.approx(0.4)
    printed = run("estimate", *RATE, "--n", "40", "--at", "0.3")
    assert f"{found['expected_width']:.6g}" in printed.out
    assert max(map(len, printed.out.splitlines())) <= 80
