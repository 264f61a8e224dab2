"""Kill a monitoring process at random instants, restore it, and look for anything released twice, lost or misplaced.

python -m tests.changepoint.kills --instants 200
python -m tests.changepoint.kills --instants 200 --sequential   # sequential tests, of unequal blocks
python -m tests.changepoint.kills --instants 200 --persons  # of persons, two of whose three rows count
python -m tests.changepoint.kills --instants 40 --broken    # writes its state too late, forgets persons: must be caught
python -m tests.changepoint.kills --histories 200           # files rotated, replaced, cut short; old states put back
python -m tests.changepoint.kills --histories 60 --broken   # three monitors, each with one mistake: must all be caught

The process logs every release and every alarm it shows, and whatever it finds when it is restored. Half of the streams
run at epsilon 60, where the noise is less than one record's weight but once in 10^26 draws: their releases must be the
blocks' own totals, to that.

A history is a monitor that follows a file, with or without a ledger, and is killed again and again, while the file
grows and is rotated, or rewritten with the same lines and more, or cut short, and while older states are put in the
place of the newest one. Whatever happens to the file must stop the process. It is then told what a user would tell it.
All run at epsilon 60: each release must be the total of the next lines that were written, in order, whichever file they
were in; a change must raise its alarm; an older state must be refused once anything that it lacks was shown.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privatest.charge import make_charge
from privatest.engines import read_lines
from privatest.engines.units import Turns
from privatest.errors import InvalidDocument, InvalidInput, PrivatestError
from privatest.followed import LineFile, ReadLines
from privatest.hypotheses import make_pair
from privatest.ledger import Ledger
from privatest.privacy import Tulap, system_source
from privatest.scores import clamped_score
from privatest.streams import Sequential, SequentialPlan
from privatest.streams.monitor import Monitor, Targets, pair_watch
from privatest.streams.schedule import voting_blocks
from privatest.streams.sequential_plan import Boundaries
from privatest.streams.state import StateFile, read_text
from privatest.streams.stream import Stream, SumBlocks
from privatest.streams.watch import Watch
from tests.ledger.server import quick_folder

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
    events: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def designs() -> list[Watch]:
    """A noisy one and one whose noise is 0."""
    pair = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
    return [pair_watch(pair, Fraction(e), "cusum", Targets(0.1, 1e7, None)) for e in (1, 60)]


def sequential_designs() -> list[SequentialPlan]:
    """The same of sequential tests, with boundaries so far apart that a verdict takes some dozens of blocks."""
    made = []
    for epsilon, far in ((Fraction(1), 1500), (Fraction(60), 9000)):
        score = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 1)
        noise = Tulap(epsilon, score.width)
        first, later = (voting_blocks(score, noise, n, monotone=False) for n in (7, 3))
        made.append(SequentialPlan(first, later, Boundaries(-far, far), 0.05, 0.05, 9, "P", "Q"))
    return made


def raised(watch: Watch | SequentialPlan, progress: Any, seen: int) -> str:
    """What is raised then, on one line."""
    return json.dumps(watch.raised(progress, 0, seen, False).to_dict(), separators=(",", ":"))


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


def child(watch: Watch | SequentialPlan, stream: np.ndarray, state: Path, log: Path, seed: int, broken: bool) -> None:
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
    kept = monitor._stream.file
    turns = monitor._stream.turns
    if broken and turns is not None:
        monitor._stream.turns = Turns(turns.most, turns.key)  # forgets whom it has seen
    shown = 0
    while True:
        if broken and not persons:
            monitor._stream.file = None
        place = monitor.seen
        if monitor._stream.alarm is not None and of is Sequential:
            pass  # refuses more: the verdict is logged again below
        elif rng.random() < 0.3:
            monitor.update(int(stream[place]), **({"unit": owner(place)} if persons else {}))
        else:
            end = place + int(rng.integers(1, 25))
            whose = {"unit": [owner(at) for at in range(place, end)]} if persons else {}
            monitor.update_many(stream[place:end], **whose)
        released, blocks = list(monitor._stream.released), monitor._stream._progress.blocks
        first = blocks - len(released)
        lines = [f"B {first + i} {value}\n" for i, value in enumerate(released) if first + i >= shown]
        shown = blocks
        if monitor._stream.alarm is not None:
            lines.append(f"A {raised(watch, monitor._stream._progress, monitor._stream.alarm.seen)}\n")
        if lines:
            os.write(out, "".join(lines).encode())
        if rng.random() < 0.2:
            monitor._stream.file = kept
            monitor.save(state)


def inspect(watch: Watch | SequentialPlan, stream: np.ndarray, log: str, found: Findings) -> bool:
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
    votes = watch.votes(np.array([released[i] for i in sorted(released)]), 0)
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
        made = [replace(watch, max_rows_per_unit=ROWS) for watch in made]
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


REFUSED = 3
"""Exit code of a process that met a file that it was told nothing about."""
BROKEN = ("counts lines across files", "reads a rewritten file as new", "takes any state")


@dataclass
class History:
    """One monitor, its file and what is true of them."""

    watch: Watch
    folder: Path
    mode: str
    charged: bool
    broken: str | None = None
    written: list[int] = field(default_factory=list)
    rotations: int = 0
    rewrites: int = 0

    def __post_init__(self) -> None:
        self.lines, self.state = self.folder / "values.txt", self.folder / "state.json"
        self.log, self.book = self.folder / "log", self.folder / "ledger.db"
        self.first = 0  # the number of the file's first line
        self.lines.touch()
        self.log.touch()
        if self.charged:
            with Ledger(self.book) as ledger:
                ledger.grant("stream", epsilon=60)

    def stream(self) -> Stream:
        """As Monitor(..., state=, ledger=) makes it, without its design's computation."""
        file = StateFile(self.state)
        asked = {"dataset": "stream", "request": "watch"} if self.charged else {}
        known = file.read() if file.exists() else None
        try:
            if known is None:
                stream = Stream(self.watch, asked, system_source, file)
            else:
                stream = Stream.restored(known, system_source, file, Watch)
            if self.charged:
                words: Any = {"price": self.watch.privacy.price, "design": stream.design, "simulated": False}
                charge = make_charge(Ledger(self.book), "stream", "watch", **words)
                assert charge is not None
                stream.begin(charge)
            elif known is None:
                stream.persist()
        except BaseException:
            file.close()
            raise
        return stream

    def life(self) -> None:
        """Follow the file until killed, logging what is shown."""
        out = os.open(self.log, os.O_WRONLY | os.O_APPEND)
        stream = self.stream()
        os.write(out, b"R\n")
        monitor = Monitor._of(stream)
        shown = 0
        for lines, place in self.arriving(stream):
            monitor.update_many(read_lines(lines), place=place)
            blocks = stream._open.start // self.watch.block
            first = blocks - len(stream.released)
            log = [f"B {first + i} {value}\n" for i, value in enumerate(stream.released) if first + i >= shown]
            shown = blocks
            if monitor.alarm is not None:
                log.append(f"A {raised(self.watch, stream._progress, monitor.alarm.seen)}\n")
            if log:
                os.write(out, "".join(log).encode())
            if monitor.alarm is not None:
                break
        time.sleep(3600)

    def arriving(self, stream: Stream) -> Iterator[ReadLines]:
        """The lines, as the command line asks for them."""
        if self.broken == BROKEN[0]:
            yield from self.counted(stream.seen)
            return
        if self.mode == "rotated":
            for number in range(1, self.rotations + 1):
                older = LineFile(f"{self.lines}.{number}")
                if stream.place is not None and stream.place["file"] == older._identity:
                    yield from older.batches(stream.seen, stream.place)
        elif self.rewrites and self.broken != BROKEN[1]:
            yield from self.counted(stream.seen)
            return
        told = self.mode == "rotated" or self.broken == BROKEN[1]
        yield from LineFile(self.lines).batches(stream.seen, stream.place, follow=True, new_file=told, wait=_nap)

    def counted(self, skipped: int) -> Iterator[ReadLines]:
        for lines, place in LineFile(self.lines).batches(follow=True, wait=_nap):
            if skipped < len(lines):
                yield ReadLines(lines[skipped:], place)
            skipped = max(skipped - len(lines), 0)

    def append(self, bits: list[int]) -> None:
        with self.lines.open("ab") as file:
            file.write(b"".join(b"%d\n" % bit for bit in bits))
        self.written += bits

    def content(self) -> bytes:
        return b"".join(b"%d\n" % bit for bit in self.written[self.first :])

    def rotate(self) -> bool:
        """Whether it could be done: a second rotation while nobody looked passes over the file in the middle."""
        if not self.state.exists():
            return False
        place = read_text(self.state.read_bytes(), "it")["place"]
        if place is None or place["file"][0] != self.lines.stat().st_ino:
            return False
        self.rotations += 1
        os.rename(self.lines, f"{self.lines}.{self.rotations}")
        self.first = len(self.written)
        self.lines.touch()
        return True

    def rewrite(self) -> None:
        self.rewrites += 1
        newer = self.folder / "newer"
        newer.write_bytes(self.content())
        os.replace(newer, self.lines)

    def shown(self) -> int:
        """Blocks that were shown."""
        lines = self.log.read_text().splitlines()
        return 1 + max((int(line.split()[1]) for line in lines if line[0] == "B"), default=-1)

    def alarmed(self) -> bool:
        """Whether an alarm was shown."""
        return any(line[0] == "A" for line in self.log.read_text().splitlines())

    def put_back(self, older: bytes, forget: bool, found: Findings) -> None:
        """An older state in the place of the newest one: refused if it lacks anything that was shown."""
        lacks = read_text(older, "it")["start"] // self.watch.block < self.shown()
        held = StateFile(self.state)
        held.read()  # the newest one has its name now
        held.close()
        newest, lock = self.state.read_bytes(), Path(f"{self.state}.lock")
        remembered = lock.read_bytes()
        self.state.write_bytes(older)
        if forget:
            lock.unlink()
        try:
            stream = self.stream()
            assert stream.file is not None
            stream.file.close()
            if lacks:
                found.problems.append("an older state would have gone on")
        except PrivatestError:
            found.events["older states refused"] += lacks
        if self.broken == BROKEN[2]:
            lock.unlink(missing_ok=True)
            return
        self.state.write_bytes(newest)
        lock.write_bytes(remembered)


def _nap(_seconds: float) -> bool:
    time.sleep(0.001)
    return False


def histories(count: int, seed: int, broken: str | None = None) -> Findings:
    """Live through this many."""
    rng, found = np.random.default_rng(seed), Findings()
    watch = designs()[1]
    for _ in range(count):
        if broken and found.problems:
            break
        with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
            mode = str(rng.choice(["rotated", "rewritten"]))
            if broken is not None:
                # An older state, too, is put back where no file is to be refused: that would be waited for.
                mode = {BROKEN[0]: "rotated"}.get(broken, "rewritten")
            charged = bool(rng.random() < 0.5) and broken != BROKEN[2]
            _live(History(watch, Path(folder), mode, charged, broken), rng, found)
        found.streams += 1
        found.events[mode] += 1
        found.events["charged"] += charged
    return found


def _live(history: History, rng: np.random.Generator, found: Findings) -> None:
    old = int(rng.integers(40, 200))
    kept: bytes | None = None
    # A broken monitor may never raise its alarm; of a sound one it means that something hangs.
    deadline = time.monotonic() + (40 if history.broken else 600)
    while not found.problems:
        process = os.fork()
        if process == 0:
            code = 1
            try:
                history.life()
            except InvalidInput as error:
                code = REFUSED if "The file" in str(error) else 1
                if code == 1:
                    os.write(2, f"{error}\n".encode())
            except BaseException as error:
                os.write(2, f"{error!r}\n".encode())
            os._exit(code)
        changed, begun = False, history.log.read_text().count("R\n")
        patience = time.monotonic() + (2 if rng.random() < 0.8 else 0)
        while history.log.read_text().count("R\n") == begun and time.monotonic() < patience:
            time.sleep(0.002)
        for _ in range(int(rng.integers(1, 6))):
            size = int(rng.integers(0, 30))
            rates = [0.2 if len(history.written) + i < old else 0.8 for i in range(size)]
            # A file that was cut and has grown beyond what was seen of it looks like one that grew.
            cut = changed and history.lines.stat().st_size == 0
            if len(history.written) < old + 400 and not cut:
                history.append((rng.random(size) < rates).astype(int).tolist())
            if rng.random() < 0.25 and not changed:
                changed = _event(history, rng, found, live=True)
            time.sleep(float(rng.uniform(0.002, 0.02)))
        refused = False
        if changed:  # which a process that began before it does not read on; after its alarm it looks no more
            until = time.monotonic() + 2
            while not refused and not history.alarmed() and time.monotonic() < until:
                ended, status = os.waitpid(process, os.WNOHANG)
                if refused := ended != 0:
                    found.events["files refused"] += 1
                    if os.waitstatus_to_exitcode(status) != REFUSED:
                        found.problems.append("a process ended by itself")
                time.sleep(0.002)
            if history.lines.stat().st_size == 0 and history.mode == "rewritten":  # it was cut short
                history.rewrite()
        if not refused:
            os.kill(process, signal.SIGKILL)
            if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) != -signal.SIGKILL:
                found.problems.append("a process ended by itself")
            found.kills += 1
            if rng.random() < 0.3:
                _event(history, rng, found, live=False)
        if inspect(history.watch, np.array(history.written), _whole(history.log), found):
            return
        if history.state.exists() and rng.random() < 0.4:
            if kept is not None:
                history.put_back(kept, history.charged and bool(rng.random() < 0.5), found)
            kept = history.state.read_bytes()
        if time.monotonic() > deadline:
            found.problems.append("a change raised no alarm")


def _event(history: History, rng: np.random.Generator, found: Findings, *, live: bool) -> bool:
    """Something happens to the file; whether it did, so that a process that reads the file must stop."""
    if history.mode == "rotated":
        done = history.rotate()
        found.events["rotations"] += done
        return done
    if not history.state.exists() or not history.written or history.shown() == 0:
        return False
    if live and rng.random() < 0.5:
        history.lines.write_bytes(b"")
        found.events["cut short"] += 1
    else:
        history.rewrite()
        found.events["rewrites"] += 1
    return True


def main() -> None:
    """Print what was found; exit with 1 on any problem (with --broken: on none)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, help="live through this many, in place of instants on plain streams")
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--sequential", action="store_true", help="sequential tests in place of monitors")
    parser.add_argument("--persons", action="store_true", help="of persons, whose rows beyond two do not count")
    chosen = parser.parse_args()
    if chosen.histories is not None:
        _main_of_histories(chosen.histories, chosen.seed, chosen.broken)
    found = run(chosen.instants, chosen.seed, chosen.broken, chosen.sequential, chosen.persons)
    print(
        f"{found.kills} kills over {found.streams} streams, {found.restores} restores, "
        f"{found.releases} blocks released: {len(found.problems)} problems"
    )
    for problem in found.problems[:10]:
        print(" ", problem)
    raise SystemExit(bool(found.problems) != chosen.broken)


def _main_of_histories(count: int, seed: int, broken: bool) -> None:
    failed = False
    for mistake in BROKEN if broken else (None,):
        found = histories(count, seed, mistake)
        seen = ", ".join(f"{number} {name}" for name, number in sorted(found.events.items()))
        who = f"a monitor that {mistake}: " if mistake else ""
        print(f"{who}{found.streams} histories ({seen}), {found.kills} kills, {found.restores} lives,")
        print(f"  {found.releases} blocks released, each history to its alarm: {len(found.problems)} problems")
        for problem in found.problems[:10]:
            print("   ", problem)
        failed |= bool(found.problems) != broken
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
