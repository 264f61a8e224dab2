"""Kill -9 at random instants during requests: python -m tests.ledger.kills [path or URL] --instants 300

--budget "zcdp(1000000)" grants the budget in another notion.

Three processes ask the same requests at the same time, each noting in a file of its own what it was given. At
random instants one of them, or all, are killed with SIGKILL and replaced. After every kill the ledger is
verified (what is new; in the end everything) and the draws on record are noted; at last every unfinished request is
finished, and all that was ever given out, and every draw that was ever seen on record, is compared with what is there.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from privatest.ledger import Ledger
from privatest.ledger.hash_chain import HashChain, LedgerRow
from privatest.ledger.ledger import charge_text
from privatest.privacy import Zcdp

WORKERS = 3
EPSILON = Fraction(1, 10)
PHASES = ["starting", "asking", "drawing", "charging", "releasing", "recording"]
MATTER = {"charging", "releasing", "recording"}
CELL = struct.Struct("<II")  # phase, request


class Forgetful(Ledger):
    """Broken on purpose: goes on from what it drew itself, also when another draw and release are on record."""

    def _charge(self, *ask: Any) -> tuple[dict[str, LedgerRow], bool]:
        rows, _ = super()._charge(*ask)
        return {"charge": rows["charge"]._replace(release=charge_text(ask[-1]))}, True

    def _record(self, dataset: str, request: str, kind: str, text: str) -> LedgerRow:
        return super()._record(dataset, request, kind, text)._replace(release=text)


class Killer:
    """The processes, what they are doing, and what they were given."""

    def __init__(self, ledger: Ledger, folder: Path, seed: int) -> None:
        self.ledger = ledger
        self.folder = folder
        self.random = random.Random(seed)
        self.board = mmap.mmap(-1, CELL.size * WORKERS)  # shared with the children
        self.processes = [self.start(place) for place in range(WORKERS)]

    def start(self, place: int) -> int:
        """Begin a little before the newest request, so that what a kill left unfinished is taken up again."""
        newest = max(CELL.unpack_from(self.board, CELL.size * k)[1] for k in range(WORKERS))
        CELL.pack_into(self.board, CELL.size * place, 0, newest)
        process = os.fork()
        if process:
            return process
        try:
            self.work(place, max(0, newest - 3))
        except BaseException as error:
            print(f"worker: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)

    def work(self, place: int, first: int) -> None:
        notes = os.open(self.folder / f"{os.getpid()}.notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        number = first
        while True:
            CELL.pack_into(self.board, CELL.size * place, 1, number)

            def draw(number: int = number) -> str:
                CELL.pack_into(self.board, CELL.size * place, 2, number)
                time.sleep(self.random.random() * 0.004)
                drawn = os.urandom(8).hex()
                CELL.pack_into(self.board, CELL.size * place, 3, number)
                return drawn

            def release(drawn: str, number: int = number) -> dict[str, str]:
                CELL.pack_into(self.board, CELL.size * place, 4, number)
                time.sleep(self.random.random() * 0.04)
                CELL.pack_into(self.board, CELL.size * place, 5, number)
                return {"noise": drawn}

            given = self.ledger.perform(
                dataset="claims", request=f"r{number}", epsilon=EPSILON, design="kill", draw=draw, release=release
            )
            os.write(notes, f"r{number} {given['noise']}\n".encode())
            number += 1

    def kill(self) -> list[str]:
        """Kill one worker or all of them, and say what they were doing."""
        places = range(WORKERS) if self.random.random() < 0.25 else [self.random.randrange(WORKERS)]
        for place in places:
            os.kill(self.processes[place], signal.SIGKILL)
        doing = []
        for place in places:
            _, status = os.waitpid(self.processes[place], 0)
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "a worker failed by itself"
            doing.append(PHASES[CELL.unpack_from(self.board, CELL.size * place)[0]])
        for place in places:
            self.processes[place] = self.start(place)
        return doing

    def stop(self) -> None:
        for process in self.processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)

    def given(self) -> set[tuple[str, str]]:
        """Everything that was ever given out, by anybody; a last line may be cut, between two pages of the system."""
        whole = [path.read_text().rpartition("\n")[0] for path in self.folder.glob("*.notes")]
        lines = [line for text in whole for line in text.splitlines()]
        return {(request, noise) for request, noise in map(str.split, lines)}


def check(ledger: Ledger, given: set[tuple[str, str]]) -> tuple[int, int]:
    """Read the history without the ledger's own verification and look for what must never be."""
    charged: dict[str, Any] = {}
    drawn: dict[str, str] = {}
    released: dict[str, str] = {}
    for entry in ledger.history("claims"):
        assert entry.request is not None or entry.kind == "grant"
        if entry.kind == "charge":
            assert entry.request not in charged, "charged twice"
            charged[str(entry.request)] = entry.epsilon
            drawn[str(entry.request)] = entry.about["draw"]
        elif entry.kind == "release":
            assert entry.request in charged, "a release without its charge"
            assert entry.request not in released, "two releases"
            assert entry.release is not None
            released[str(entry.request)] = entry.release["noise"]
    for request, noise in released.items():
        assert noise == drawn[request], "released, and not what was drawn"
    for request, noise in given:
        assert released[request] == noise, "given out, and not what is on record"
    rho, spent = sum((epsilon**2 / 2 for epsilon in charged.values()), Fraction(0)), ledger.spent("claims")
    assert spent == (Zcdp(rho) if isinstance(spent, Zcdp) else sum(charged.values()))
    return len(charged), len(released)


def follow(chain: HashChain, ledger: Ledger) -> dict[str, str]:
    """What `verify` does, taken up where the last call ended, so that it does not slow down; the draws on record."""
    with ledger._store.read() as book:
        rows, head = book.rows(chain.head.rows, 10**6), book.head()
    for row in rows:
        chain.extend(row)
    chain.finish(head)
    return {str(row.request): row.about["draw"] for row in rows if row.kind == "charge"}


def kills(target: str, instants: int, seed: int, kind: type[Ledger], budget: str = "1000000") -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder, kind(target, timeout=120) as ledger:
        ledger.grant("claims", privacy=budget)
        began = time.monotonic()
        for k in range(10):
            ledger.perform(
                dataset="claims",
                request=f"warm-{k}",
                epsilon=EPSILON,
                design="kill",
                draw=str,
                release=lambda drawn: {"noise": drawn},
            )
        # From one kill to the next: up to as long as each of the processes needs for four requests.
        longest = (time.monotonic() - began) / 10 * WORKERS * 4
        killer = Killer(ledger, Path(folder), seed)
        doing: Counter[str] = Counter()
        met, seen = 0, {}
        chain = HashChain(repr(ledger))
        try:
            # At least so many, and until the phases that matter were all met, whatever the machine is busy with.
            while met < instants or not doing.keys() >= MATTER:
                time.sleep(killer.random.random() * longest)
                doing.update(killer.kill())
                met += 1
                seen |= follow(chain, ledger)
        finally:
            killer.stop()
        ledger.verify()
        charged, released = check(ledger, killer.given())
        before = ledger.spent("claims")
        for entry in [entry for entry in ledger.history("claims") if entry.kind == "charge"]:
            request = {"dataset": "claims", "request": entry.request, "epsilon": EPSILON, "design": "kill"}
            found = ledger.perform(**request, draw=lambda: "afterwards", release=lambda drawn: {"noise": drawn})
            assert found["noise"] == seen.get(str(entry.request), found["noise"]), "another draw than was on record"
        assert ledger.spent("claims") == before, "finishing what was charged costs nothing"
        assert ledger.verify() == 1 + 2 * charged
        assert check(ledger, killer.given()) == (charged, charged)
        return {
            "instants": met,
            "killed while": dict(doing),
            "given out": len(killer.given()),
            "charged": charged,
            "released before the last kill": released,
            "draws seen on record and kept": f"{len(seen)} of {len(seen)}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?")
    parser.add_argument("--instants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--budget", default="1000000")
    options = parser.parse_args()
    kind = Forgetful if options.broken else Ledger
    with tempfile.TemporaryDirectory() as folder:
        target = options.target or str(Path(folder) / "ledger.db")
        print(json.dumps({"seed": options.seed, **kills(target, options.instants, options.seed, kind, options.budget)}))


if __name__ == "__main__":
    main()
