"""Many processes race for one budget. Run it: python -m tests.ledger.race [path or URL] [--same]

Every process asks 100 requests of 1/500 each, from a budget of 1. With --same all of them ask the same 100;
--requests 20 makes it 20 requests of 1/100, and so on. --budget "zcdp(0.5)" --price "pure(0.03)" takes others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from privatest.errors import BudgetExceeded
from privatest.ledger import Ledger
from privatest.ledger.budgets import Protection, price_text
from privatest.ledger.hash_chain import LedgerRow
from privatest.ledger.ledger import Request, charge_text, spent_after
from privatest.privacy import Notion, Zcdp, as_notion

PROCESSES = 16


class Unlocked(Ledger):
    """Broken on purpose: looks at the balance in one transaction and charges in another."""

    def _check_all(self) -> None:
        """It looks at nothing either."""

    def _charge(self, ask: Request, source: Any, draw: Any) -> tuple[dict[str, LedgerRow], bool]:
        spent_after(self._standing(ask.dataset), ask.price, ask.protected, Protection())
        with self._store.write() as book:
            book.tail()
            newest = self._newest(book, ask.dataset)
            spent = newest.account.after(newest.spent, ask.price)
            amounts = {"epsilon": price_text(ask.price), "granted": newest.granted, "spent": spent}
            words = {"request": ask.name, "design": ask.design, "release": charge_text(draw, source=source)}
            row = book.append("charge", ask.dataset, **words, **amounts)
        return {"charge": row}, True


def race(
    target: str, requests: int, same: bool, kind: type[Ledger], budget: str = "1", price: str | None = None
) -> dict[str, object]:
    """Fork, wait for everybody, count. The children inherit a ledger in use; that must do no harm."""
    ledger = kind(target, timeout=120)
    ledger.grant("claims", privacy=budget)
    asked = as_notion(price or Fraction(1, 5 * requests))
    began = time.monotonic()
    pipes = [child(ledger, "all" if same else str(number), requests, asked) for number in range(PROCESSES)]
    answers = [json.loads(os.fdopen(pipe).read() or "{}") for pipe in pipes]
    seconds = time.monotonic() - began
    codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in pipes]
    assert codes == [0] * PROCESSES, codes
    releases = {entry.request: entry.release for entry in ledger.history() if entry.kind == "release"}
    charges = [entry.epsilon for entry in ledger.history() if entry.kind == "charge"]
    for answer in answers:
        for request, release in answer["releases"].items():
            assert releases[request] == release, "somebody was given a release that is not on record"
    check_sum(ledger, charges)
    if kind is Ledger:
        assert ledger.verify() == 1 + len(charges) + len(releases)
    return {
        "returned": sum(len(answer["releases"]) for answer in answers),
        "refused": sum(answer["refused"] for answer in answers),
        "releases": len(releases),
        "spent": str(ledger.spent("claims")),
        "seconds": round(seconds, 2),
    }


def check_sum(ledger: Ledger, charges: list[Any]) -> None:
    """The accountant's own sum, from the charges alone, without the ledger's."""
    granted, spent = ledger.granted("claims"), ledger.spent("claims")
    if isinstance(granted, Zcdp):
        rhos = [one**2 / 2 if isinstance(one, Fraction) else one.into("zcdp").exact[0] for one in charges]
        assert sum(rhos) == (spent.rho if charges else 0)
    else:
        assert sum(charges) == spent


def child(ledger: Ledger, name: str, requests: int, asked: Notion) -> int:
    """Start one process; the pipe on which it answers."""
    ours, theirs = os.pipe()
    if os.fork() > 0:
        os.close(theirs)
        return ours
    try:
        releases: dict[str, object] = {}
        refused = 0
        for k in range(requests):
            request = {"dataset": "claims", "request": f"{name}-{k}", "privacy": asked, "design": "race"}
            try:
                releases[f"{name}-{k}"] = ledger.perform(**request, draw=lambda: {"noise": os.urandom(8).hex()})
            except BudgetExceeded:
                refused += 1
        with open(theirs, "w") as pipe:
            pipe.write(json.dumps({"releases": releases, "refused": refused}))
        os._exit(0)
    except BaseException as error:
        print(f"{name}: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--budget", default="1")
    parser.add_argument("--price")
    options = parser.parse_args()
    kind = Unlocked if options.broken else Ledger
    with tempfile.TemporaryDirectory() as folder:
        target = options.target or str(Path(folder) / "ledger.db")
        print(json.dumps(race(target, options.requests, options.same, kind, options.budget, options.price)))


if __name__ == "__main__":
    main()
