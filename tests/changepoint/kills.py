"""Kill a monitoring process at random instants, restore it, and look for anything released twice, lost or misplaced.

python -m tests.changepoint.kills --instants 200
python -m tests.changepoint.kills --instants 200 --sequential   # sequential tests, of unequal blocks
python -m tests.changepoint.kills --instants 200 --persons  # of persons, two of whose three rows count
python -m tests.changepoint.kills --instants 40 --broken    # writes its state too late, forgets persons: must be caught

The process logs every release and every alarm it shows, and whatever it finds when it is restored. Half of the streams
run at epsilon 60, where the noise is less than one record's weight but once in 10^26 draws: their releases must be the
blocks' own totals, to that.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privatest.engines.rows_per_person import Turns
from privatest.errors import InvalidDocument
from privatest.hypotheses import make_pair
from privatest.privacy import Pure, Tulap
from privatest.scores import clamped_score
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.block_schedule import voting_blocks
from privatest.streams.blocks import SumBlocks
from privatest.streams.monitor import Monitor, MonitorTargets, pair_plan
from privatest.streams.monitor_plan import MonitorPlan
from privatest.streams.sequential_plan import Boundaries
from tests.sequential.plans import deciding

LONGEST = 0.04
"""Seconds that a process may live: time for some dozens of blocks."""
OLD, NEW = 160, 4000
ROWS = 2
"""Rows of a person that count."""
NEVER = 5000
"""As many as it never takes to catch what is broken: some, of a busy machine fifty, and then it is over."""


@dataclass
class Findings:
    """What was seen of all streams."""

    kills: int = 0
    streams: int = 0
    releases: int = 0
    restores: int = 0
    problems: list[str] = field(default_factory=list)


def designs() -> list[MonitorPlan]:
    """A noisy one and one whose noise is 0."""
    pair = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
    return [pair_plan(pair, Fraction(e), "cusum", MonitorTargets(0.1, 1e7, None)) for e in (1, 60)]


def sequential_designs() -> list[SequentialPlan]:
    """The same of sequential tests, with boundaries so far apart that a verdict takes some dozens of blocks."""
    made = []
    for epsilon, far in ((Fraction(1), 1500), (Fraction(60), 9000)):
        score = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 1)
        noise = Tulap(epsilon, score.width)
        first, later = (voting_blocks(score, noise, n, monotone=False) for n in (7, 3))
        made.append(deciding(first, later, Boundaries(-far, far)))
    return made


Plan = MonitorPlan | SequentialPlan


def raised(watch: Plan, progress: Any, seen: int) -> str:
    """What is raised then, on one line."""
    return json.dumps(watch.result(progress, 0, seen), separators=(",", ":"))


def owner(place: int) -> int:
    """Whose a row is, of persons: each has three, 20 rows apart."""
    return place // 60 * 20 + place % 20


def counting(stream: np.ndarray) -> np.ndarray:
    """The records that count of persons with ``ROWS`` rows; in the places of the others None."""
    taken: Counter[int] = Counter()
    found = stream.astype(object)
    for place in range(len(stream)):
        taken[owner(place)] += 1
        if taken[owner(place)] > ROWS:
            found[place] = None
    return found


def child(
    watch: MonitorPlan | SequentialPlan, stream: np.ndarray, state: Path, log: Path, seed: int, broken: bool
) -> None:
    """Watch the stream from wherever the state says, in portions of all sizes, logging what is shown."""
    persons = watch.max_rows_per_unit is not None
    rng = np.random.default_rng(seed)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    of: Any = Sequential if isinstance(watch, SequentialPlan) else Monitor
    try:
        monitor = of.load(state)
        os.write(out, b"R\n")
    except InvalidDocument:
        if state.exists():
            raise
        monitor = of.of(watch)
        monitor.save(state)
    kept = monitor._file
    turns = monitor._turns
    if broken and turns is not None:
        monitor._turns = Turns(turns.most, turns.key)  # forgets whom it has seen
    shown = 0
    while True:
        if broken and not persons:
            monitor._file = None
        place = monitor.seen
        if monitor._result is not None and of is Sequential:
            pass  # refuses more: the verdict is logged again below
        elif rng.random() < 0.3:
            monitor.update(int(stream[place]), **({"unit": owner(place)} if persons else {}))
        else:
            end = place + int(rng.integers(1, 25))
            whose = {"unit": [owner(at) for at in range(place, end)]} if persons else {}
            monitor.update_many(stream[place:end], **whose)
        released, blocks = list(monitor._released), monitor._progress.blocks
        first = blocks - len(released)
        lines = [f"B {first + i} {value}\n" for i, value in enumerate(released) if first + i >= shown]
        shown = blocks
        if monitor._result is not None:
            lines.append(f"A {raised(watch, monitor._progress, monitor._result.seen)}\n")
        if lines:
            os.write(out, "".join(lines).encode())
        if rng.random() < 0.2:
            monitor._file = kept
            monitor.save(state)


def inspect(watch: MonitorPlan | SequentialPlan, stream: np.ndarray, log: str, found: Findings) -> bool:
    """Note problems in a log; whether the stream has come to its alarm, or its verdict."""
    released: dict[int, int] = {}
    alarms = set()
    for line in log.splitlines():
        kind, *words = line.split(maxsplit=1)
        if kind == "R":
            continue
        if kind == "A":
            alarms.add(words[0])
            continue
        one, two = (int(number) for number in words[0].split())
        if released.setdefault(one, two) != two:
            found.problems.append(f"block {one} was released twice, as {released[one]} and as {two}")
    if len(alarms) > 1:
        found.problems.append(f"two alarms: {alarms}")
    if not alarms:
        return False
    said = next(iter(alarms))
    seen = json.loads(said)["seen"]
    blocks = watch.blocks
    assert isinstance(blocks, SumBlocks)
    if sorted(released) != list(range(len(released))) or watch.records(len(released)) != seen:
        found.problems.append("a block was never released, or one after the alarm was")
        return True
    votes = watch.votes([released[i] for i in sorted(released)], 0)
    progress, hit = watch.rule.feed(watch.rule.begin, votes)  # type: ignore[arg-type]
    if hit is None or hit + 1 != len(released) or raised(watch, progress, seen) != said:
        found.problems.append(f"the alarm {said} is not what the releases call for")
    if seen > len(stream):
        found.problems.append("more records were released than there are")
    elif watch.privacy.epsilon > 50:
        scores = blocks.values_of(stream[:seen].tolist())
        starts = [watch.records(i) for i in range(len(released))]
        totals = np.add.reduceat(scores, starts)
        away = [abs(2 * int(total) - released[i]) for i, total in zip(sorted(released), totals, strict=True)]
        if max(away) >= blocks.noise.width:
            found.problems.append("a release is not that of its records")
    found.releases += len(released)
    found.restores += log.count("R\n")
    return True


def run(instants: int, seed: int, broken: bool = False, sequential: bool = False, persons: bool = False) -> Findings:
    """Kill this many times."""
    rng, found = np.random.default_rng(seed), Findings()
    made: list[Any] = list(sequential_designs() if sequential else designs())
    if persons:
        made = [replace(watch, max_rows_per_unit=ROWS, notion=Pure(watch.notion.loss * ROWS)) for watch in made]
    with tempfile.TemporaryDirectory() as folder:
        while found.kills < instants and not (broken and found.problems):
            watch = made[found.streams % len(made)]
            old = 0.5 if sequential else 0.2  # a change; of a sequential test, records that say little at first
            stream = np.concatenate([rng.random(OLD) < old, rng.random(NEW) < 0.8]).astype(np.int64)
            state, log = Path(folder, f"{found.streams}.json"), Path(folder, f"{found.streams}.log")
            log.touch()
            found.streams += 1
            heard = counting(stream) if persons else stream
            while True:
                before = _lines(log)
                process = os.fork()
                if process == 0:
                    try:
                        child(watch, stream, state, log, int(rng.integers(2**31)) + found.kills, broken)
                    except BaseException as error:  # reported by way of the log, which then cannot be read
                        os.write(2, f"{error!r}\n".encode())
                    os._exit(1)
                if rng.random() < 0.8:  # mostly a process that has shown something, however busy the machine is
                    patience = time.monotonic() + 5
                    while _lines(log) == before and time.monotonic() < patience:
                        time.sleep(0.001)
                    time.sleep(float(rng.exponential(0.002)))  # then soon: a quick machine is done in a moment
                else:
                    time.sleep(float(rng.uniform(0.002, LONGEST)))
                os.kill(process, signal.SIGKILL)
                status = os.waitpid(process, 0)[1]
                if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                    found.problems.append("a process ended by itself")
                    break
                found.kills += 1
                if inspect(watch, heard, _whole(log), found) or found.problems:
                    break
    return found


def _whole(log: Path) -> str:
    """The log, without a last line that a kill has cut: the system may stop a write between two of its pages."""
    whole = log.read_bytes().rpartition(b"\n")
    if whole[2]:
        os.truncate(log, len(whole[0] + whole[1]))
    return (whole[0] + whole[1]).decode()


def _lines(log: Path) -> int:
    """Releases and alarms that were logged."""
    return sum(line[0] != "R" for line in log.read_text().splitlines())


def main() -> None:
    """Print what was found; exit with 1 on any problem (with --broken: on none)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--sequential", action="store_true", help="sequential tests in place of monitors")
    parser.add_argument("--persons", action="store_true", help="of persons, whose rows beyond two do not count")
    chosen = parser.parse_args()
    found = run(chosen.instants, chosen.seed, chosen.broken, chosen.sequential, chosen.persons)
    print(
        f"{found.kills} kills over {found.streams} streams, {found.restores} restores, "
        f"{found.releases} blocks released: {len(found.problems)} problems"
    )
    for problem in found.problems[:10]:
        print(" ", problem)
    raise SystemExit(bool(found.problems) != chosen.broken)


if __name__ == "__main__":
    main()
