"""Kill a monitoring process at random instants, restore it, and look for anything released twice, lost or misplaced.

python -m tests.changepoint.kills --instants 200
python -m tests.changepoint.kills --instants 40 --broken    # writes its state too late: must be caught

The process logs every release and every alarm it shows, and whatever it finds when it is restored. Half of the streams
run at epsilon 60, where the noise is less than one record's weight but once in 10^26 draws: their releases must be the
blocks' own totals, to that.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from privatest.changepoint.monitor import Monitor
from privatest.changepoint.released import SumBlocks
from privatest.changepoint.watch import Watch
from privatest.changepoint.watches import Targets, pair_watch
from privatest.errors import InvalidDocument
from privatest.pairs import make_pair

LONGEST = 0.04
"""Seconds that a process may live: time for some dozens of blocks."""
OLD, NEW = 160, 4000


@dataclass
class Findings:
    """What was seen of all streams."""

    kills: int = 0
    streams: int = 0
    releases: int = 0
    restores: int = 0
    problems: list[str] = field(default_factory=list)


def designs() -> list[Watch]:
    """A noisy one and one whose noise is 0."""
    pair = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
    return [pair_watch(pair, Fraction(e), "cusum", Targets(0.1, 1e7, None)) for e in (1, 60)]


def child(watch: Watch, stream: np.ndarray, state: Path, log: Path, seed: int, broken: bool) -> None:
    """Watch the stream from wherever the state says, in portions of all sizes, logging what is shown."""
    rng = np.random.default_rng(seed)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        monitor = Monitor.load(state)
        os.write(out, b"R\n")
    except InvalidDocument:
        if state.exists():
            raise
        monitor = Monitor.of(watch)
        monitor.save(state)
    kept = monitor._stream.file
    shown = 0
    while True:
        if broken:
            monitor._stream.file = None
        place = monitor.seen
        if rng.random() < 0.3:
            monitor.update(int(stream[place]))
        else:
            monitor.update_many(stream[place : place + int(rng.integers(1, 25))])
        released, blocks = list(monitor._stream.released), monitor.seen // watch.block
        first = blocks - len(released)
        lines = [f"B {first + i} {value}\n" for i, value in enumerate(released) if first + i >= shown]
        shown = blocks
        if monitor.alarm is not None:
            lines.append(f"A {monitor.alarm.index} {monitor.alarm.seen}\n")
        if lines:
            os.write(out, "".join(lines).encode())
        if rng.random() < 0.2:
            monitor._stream.file = kept
            monitor.save(state)


def inspect(watch: Watch, stream: np.ndarray, log: str, found: Findings) -> bool:
    """Note problems in a log; whether the stream has come to its alarm."""
    released: dict[int, int] = {}
    alarms = set()
    for line in log.splitlines():
        kind, *numbers = line.split()
        if kind == "R":
            continue
        one, two = (int(number) for number in numbers)
        if kind == "A":
            alarms.add((one, two))
        elif released.setdefault(one, two) != two:
            found.problems.append(f"block {one} was released twice, as {released[one]} and as {two}")
    if len(alarms) > 1:
        found.problems.append(f"two alarms: {alarms}")
    if not alarms:
        return False
    ((index, seen),) = list(alarms)[:1]
    blocks = watch.blocks
    assert isinstance(blocks, SumBlocks)
    if sorted(released) != list(range(seen // watch.block)):
        found.problems.append("a block was never released, or one after the alarm was")
        return True
    votes = blocks.votes(np.array([released[i] for i in sorted(released)]))
    progress, hit = watch.rule.feed(watch.rule.begin, votes)  # type: ignore[arg-type]
    if hit is None or ((hit + 1) * watch.block, progress.start * watch.block) != (seen, index):
        found.problems.append(f"the alarm {index, seen} is not what the releases call for")
    if watch.epsilon > 50:
        scores = blocks.values_of(stream[:seen].tolist()).reshape(-1, watch.block).sum(axis=1)
        away = [abs(2 * int(total) - released[i]) for i, total in zip(sorted(released), scores, strict=True)]
        if max(away) >= blocks.noise.width:
            found.problems.append("a release is not that of its records")
    found.releases += len(released)
    found.restores += log.count("R\n")
    return True


def run(instants: int, seed: int, broken: bool = False) -> Findings:
    """Kill this many times."""
    rng, found, made = np.random.default_rng(seed), Findings(), designs()
    with tempfile.TemporaryDirectory() as folder:
        while found.kills < instants and not (broken and found.problems):
            watch = made[found.streams % len(made)]
            stream = np.concatenate([rng.random(OLD) < 0.2, rng.random(NEW) < 0.8]).astype(np.int64)
            state, log = Path(folder, f"{found.streams}.json"), Path(folder, f"{found.streams}.log")
            log.touch()
            found.streams += 1
            while True:
                process = os.fork()
                if process == 0:
                    try:
                        child(watch, stream, state, log, int(rng.integers(2**31)) + found.kills, broken)
                    except BaseException as error:  # reported by way of the log, which then cannot be read
                        os.write(2, f"{error!r}\n".encode())
                    os._exit(1)
                time.sleep(float(rng.uniform(0.002, LONGEST)))
                os.kill(process, signal.SIGKILL)
                status = os.waitpid(process, 0)[1]
                if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                    found.problems.append("a process ended by itself")
                    break
                found.kills += 1
                if inspect(watch, stream, log.read_text(), found) or found.problems:
                    break
    return found


def main() -> None:
    """Print what was found; exit with 1 on any problem (with --broken: on none)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", action="store_true")
    chosen = parser.parse_args()
    found = run(chosen.instants, chosen.seed, chosen.broken)
    print(
        f"{found.kills} kills over {found.streams} streams, {found.restores} restores, "
        f"{found.releases} blocks released: {len(found.problems)} problems"
    )
    for problem in found.problems[:10]:
        print(" ", problem)
    raise SystemExit(bool(found.problems) != chosen.broken)


if __name__ == "__main__":
    main()
