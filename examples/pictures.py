"""Pictures of a plan: the paper's Figure 1 for our pair, and exact power against the number of records."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

import privatest as pt
from privatest.pairs import Reals, as_distribution

mpl.use("Agg")  # files only, no window

from matplotlib import pyplot as plt


def decomposition(null: str, alternative: str, epsilon: float, target: Path) -> None:
    """Both densities, their multiples by e^epsilon, and the excess that privacy cannot use: tau."""
    p, q = (as_distribution(law, name) for law, name in ((null, "null"), (alternative, "alternative")))
    assert isinstance(p, Reals)
    assert isinstance(q, Reals)
    split = pt.decompose(null, alternative, epsilon=epsilon)
    x = np.linspace(min(p.ppf(0.001), q.ppf(0.001)), max(p.ppf(0.999), q.ppf(0.999)), 600)
    factor = np.exp(epsilon)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for law, label, colour, hatch, other in ((p, null, "#0072B2", "//", q), (q, alternative, "#D55E00", "..", p)):
        axes.plot(x, law.pdf(x), color=colour, label=label)
        axes.plot(x, factor * law.pdf(x), color=colour, linestyle="--", label=f"e^{epsilon:g} times it")
        excess = np.minimum(law.pdf(x), factor * other.pdf(x))
        axes.fill_between(x, excess, law.pdf(x), color=colour, alpha=0.25, hatch=hatch, linewidth=0)
    a, b = split.clamp
    axes.set_title(f"tau = {split.tau:.4f}, clamp [{a:.3f}, {b:.3f}] at epsilon {epsilon:g}")
    axes.set_xlabel("value of a record")
    axes.set_ylabel("density")
    axes.legend()
    figure.savefig(target, dpi=130)
    plt.close(figure)


def power(null: str, alternative: str, epsilon: float, target: Path) -> None:
    """Exact advantage against n for the default test, the paper's, and one without privacy."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    needed = pt.sample_size(null, alternative, epsilon=epsilon)
    sizes = sorted({max(round(needed * share), 1) for share in (0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.4, 2, 3, 4.5)})
    tests = {"tight": ("tight", "-o"), "ncLLR (paper)": ("ncllr", "--s"), "LLR (not private)": ("llr", ":^")}
    for label, (kind, style) in tests.items():
        curve = pt.power_curve(null, alternative, epsilon=epsilon, n=sizes, test=kind)
        axes.plot(curve.n, curve.advantage, style, label=label, markersize=4)
    axes.axhline(2 / 3, color="grey", linewidth=0.8)
    axes.axvline(needed, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("number of records n")
    axes.set_ylabel("advantage 1 - alpha - beta")
    axes.set_title(f"{null} against {alternative}, epsilon {epsilon:g}: {needed} records for 2/3")
    axes.legend()
    figure.savefig(target, dpi=130)
    plt.close(figure)
