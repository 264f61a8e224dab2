"""The guarantee in words that a data-protection officer can read, and what it leaves open."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["answer", "guarantee", "unprotected"]


def guarantee(epsilon: float, neighbours: str, rows: int, unit: str | None) -> list[str]:
    """Paragraphs: what epsilon-differential privacy promises here. ``epsilon`` is positive; infinite: nothing."""
    if not math.isfinite(epsilon):
        return ["This test is NOT PRIVATE: no noise hides single records. There is no guarantee to state."]
    factor = math.exp(min(epsilon, 700.0))
    posterior = 100 * factor / (1 + factor)
    whose = "one record" if unit is None else f"all records of one person (those with the same {unit!r})"
    if neighbours == "add-remove":
        change = f"adding or removing {whose}"
        other = "whether a person's data were used at all"
    else:
        change = f"replacing {whose} by anything else"
        other = "what a person's data say"
    limit = "" if unit is None else f" At most {rows} rows of a person count; others are left out by a fixed rule."
    return [
        f"The result is {epsilon:g}-differentially private (epsilon = {epsilon:g}). Whatever the data are, {change} "
        f"changes the probability of every possible result by a factor of at most e^{epsilon:g} = {factor:.4g}.{limit}",
        f"In terms of odds: somebody who sees the result, and even knows all other records, can become surer about "
        f"{other} by a factor of at most {factor:.4g} in the odds. A guess that was even (50%) beforehand is right "
        f"with at most {posterior:.3g}% afterwards. This holds whatever else they know, whatever computers they have.",
        "It holds because what is computed from the data (one number, or one for each block of records) is made random "
        "before anything is released. The noise is drawn exactly, from the operating system's randomness; everything "
        "after that (the decision, the p-value, the pictures, this page) is computed from the noisy numbers alone.",
    ]


def unprotected(neighbours: str, unit: str | None, kind: str) -> list[str]:
    """What is public or not protected, one line each."""
    lines = []
    if neighbours != "add-remove":
        lines.append("The number of records n is taken to be public.")
    lines.append(
        "The question itself is public: the hypotheses, epsilon, all settings on this page, and that it was asked. "
        "They must have been chosen without looking at these data."
    )
    if unit is None:
        lines.append(
            "One record is one person's contribution. Somebody with several records is protected less: k records "
            "multiply epsilon by k. Name the column that identifies people (unit=) to protect all rows of a person."
        )
    lines.append(
        "What is true of people in general is not hidden: to find that out is the purpose. If the result shows a fact "
        "about everybody, it shows it of those who took part, and of those who did not."
    )
    lines.append(
        "Every further result from the same data adds its own epsilon. A ledger keeps count; without one, you must."
    )
    if kind == "detect":
        lines.append("The order of the records in time is used; that a record has a certain place in it is public.")
    lines.append(
        "How long the computation took, and access to the machine and the raw data, are outside of the guarantee."
    )
    return lines


def answer(kind: str, result: Any) -> str:
    """The result in a sentence."""
    if kind == "detect":
        if result.changed is False:
            return f"No change was found in {result.n} records."
        sure = 1 - result.beta
        return (
            f"The records changed at index {result.index} of {result.n}, give or take {result.accuracy} records: if "
            f"there was one change, at least so far from both ends, this is right with probability {sure:g} at least."
        )
    against = "some law away from P" if kind == "fit" else "the alternative Q"
    says = "the null hypothesis P" if result.decision == "null" else against
    text = f"The test decides for {says}."
    if result.pvalue is not None:
        shown = "below 1e-9" if result.pvalue < 1e-9 else f"{result.pvalue:.4g}"
        text += f" Were P true, so extreme a noisy statistic would have probability {shown} (the p-value)."
    return text
