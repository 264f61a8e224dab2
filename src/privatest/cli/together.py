"""Options that belong together: a ledger, a data set and a request; an alternative or a distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privatest import errors
from privatest.cli.output import Fact

__all__ = ["PAID", "budget", "check_payment", "one_of", "paid"]

PAID = ("ledger", "dataset", "request")


def check_payment(asked: Mapping[str, Any]) -> None:
    """All three or none."""
    named = [name for name in PAID if name in asked]
    if named and len(named) < len(PAID):
        missing = ", ".join(f"--{name}" for name in PAID if name not in named)
        raise errors.InvalidInput(f"--{', --'.join(named)} without {missing}: the three go together.")


def paid(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger, opened, and who pays for what; nothing where nobody pays."""
    if "ledger" not in asked:
        return {}
    import privatest as pt

    ledger = pt.Ledger(asked["ledger"], create=False)
    return {"ledger": ledger, "dataset": asked["dataset"], "request": asked["request"]}


def budget(asked: Mapping[str, Any]) -> list[Fact]:
    """What is left after a run, as a line of its table."""
    if "ledger" not in asked:
        return [("budget", "no ledger", "note somewhere that this epsilon is spent")]
    import privatest as pt

    with pt.Ledger(asked["ledger"], create=False) as ledger:
        left, granted = ledger.left(asked["dataset"]), ledger.granted(asked["dataset"])
    return [("budget", f"{float(left):g} left", f"of {float(granted):g} for data set {asked['dataset']}")]


def one_of(settings: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """An alternative or a distance: what the command line says replaces the other one in the problem file.

    A file may name both, the distance for ``fit``; then the alternative is the more precise question.
    """
    if given["distance"] is None:
        if "alternative" in settings:
            settings.pop("distance", None)
    elif given["alternative"] is None:
        settings.pop("alternative", None)
    return settings
