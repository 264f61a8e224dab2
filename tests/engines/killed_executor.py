"""A program for a test: sum scores on two executor processes, kill one of them meanwhile, and report in JSON."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession, functions

from privatest import engines
from tests.engines.catalogue import SCORES
from tests.engines.warehouses import SHORT_LIVED, warehouse

ROWS, TASKS = 8_000_000, 48


def executors() -> set[int]:
    """The processes of this program's own executors: descendants of the JVM that it started."""
    parents, lines = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            lines[int(entry.name)] = (entry / "cmdline").read_text()
        except (OSError, IndexError):
            continue  # gone meanwhile
    mine = set()
    for process in parents:
        above = process
        while above > 1 and above != os.getpid():
            above = parents.get(above, 0)
        if above == os.getpid() and "CoarseGrainedExecutorBackend" in lines[process] and "java" in lines[process]:
            mine.add(process)
    return mine


def main() -> None:
    builder = SparkSession.builder.master("local-cluster[2,1,512]")
    settings = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": warehouse(),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    tracker = session.sparkContext.statusTracker()
    score = SCORES["dyadic"].score
    numbers = (functions.col("id") * 7919 % 100003) / functions.lit(10000.0) - functions.lit(5.0)
    frame = session.range(0, ROWS, 1, numPartitions=TASKS).select(numbers.alias("x"))
    report: dict[str, int] = {"killed": 0, "tasks": TASKS}
    seen: set[int] = set()
    finished = threading.Event()

    def kill_one() -> None:
        while not finished.is_set():
            seen.update(executors())
            for stage in tracker.getActiveStageIds():
                found = tracker.getStageInfo(stage)
                some = found is not None and found.numTasks == TASKS and 3 <= found.numCompletedTasks < TASKS - 10
                if some and not report["killed"]:
                    victim = min(executors())
                    report["tasks done when killed"] = found.numCompletedTasks
                    os.kill(victim, signal.SIGKILL)
                    report["killed"] = victim
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    total = engines.total(score, frame)
    for _ in range(3000):  # the replacement may start after the last task
        if len(seen) >= 3:
            break
        time.sleep(0.1)
    finished.set()
    killer.join()
    ids = np.arange(ROWS, dtype=np.int64)
    expected = int(score.of_numbers((ids * 7919 % 100003) / 10000.0 - 5.0).sum())
    session.stop()
    print(json.dumps({**report, "executors seen": len(seen), "total": total, "expected": expected}))


if __name__ == "__main__":
    main()
