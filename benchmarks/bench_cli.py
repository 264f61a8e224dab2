"""How long the command line takes to start, cold, beside Python itself: `python benchmarks/bench_cli.py`.

Every command runs in a process of its own, in rotation with `python -c pass`; medians, and their ratios. The package is
compiled first, as pip leaves a package that it installs; where it is not and Python may not keep compiled files
(PYTHONDONTWRITEBYTECODE), a plan takes 0.2 s more. Aims: `privatest --help` in 0.4 s and `privatest plan` for a
Gaussian pair in 1.5 s.
"""

from __future__ import annotations

import argparse
import compileall
import subprocess
import sys
from pathlib import Path

from bench_core import Comparison, side_by_side

import privatest


def plan(null: str, alternative: str) -> list[str]:
    return ["plan", "--null", null, "--alternative", alternative, "--epsilon", "0.5"]


PLAN = plan("normal(0,1)", "normal(0.2,1)")


def cold_starts(repeats: int) -> Comparison:
    """Seconds from start to end of a process."""
    compileall.compile_dir(Path(privatest.__file__).parent, quiet=1)
    program = [sys.executable, "-m", "privatest"]
    lines = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import scipy.stats'": [sys.executable, "-c", "import scipy.stats"],
        "privatest --help": [*program, "--help"],
        "privatest version": [*program, "version"],
        "privatest plan, normal pair": [*program, *PLAN],
        "privatest plan, normal pair, n given": [*program, *PLAN, "--n", "143"],
        "privatest plan, normal pair, add-remove": [*program, *PLAN, "--neighbours", "add-remove"],
        "privatest plan, Bernoulli pair": [*program, *plan("bernoulli(0.3)", "bernoulli(0.4)")],
        "privatest plan, Poisson pair": [*program, *plan("poisson(3)", "poisson(4)")],
        "privatest plan, Laplace pair": [*program, *plan("laplace(0,1)", "laplace(0.5,1)")],
    }

    def started(words: list[str]) -> object:
        return subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    contestants = {name: (lambda words=words: started(words)) for name, words in lines.items()}  # type: ignore[misc]
    return Comparison("Cold starts of the command line", 0, side_by_side(contestants, repeats))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    found = cold_starts(parser.parse_args().repeats)
    for name, seconds in found.seconds.items():
        print(f"{name:40s} {seconds:7.3f} s {found.ratios[name]:8.1f}")
