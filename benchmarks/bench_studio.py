"""From slider to redrawn picture in a real Chromium: ``python benchmarks/bench_studio.py`` prints median and p95.

Two things are timed. Densities: from the moment at which the epsilon slider moves to the frame in which the picture of
P and Q for that epsilon is painted, over 100 moves. Statistic: the same for the picture of the tuned test, which
follows when the slider rests (exact error rates and a tuned clamp take longer), over 20 moves. Meanwhile the page fills
in its slower curves, as it does for a user.

``python benchmarks/bench_studio.py --siege`` instead asks a studio in a process of its own 100 questions at once, 10 of
which never end or want more than there is, while a prober asks for the page again and again, and prints the slowest
answers and the memory of the server and of its workers before and after.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from playwright.sync_api import sync_playwright

import privatest as pt
from privatest.studio import create_app

QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
ARGUMENTS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{word}" for word in QUIET)]
PROBLEMS = {
    "normal(0, 1) against normal(0.5, 1)": "#kind=normal&null=0, 1&alternative=0.5, 1&epsilon=0.5&n=100",
    "bernoulli(0.4) against bernoulli(0.6)": "#kind=bernoulli&null=0.4&alternative=0.6&epsilon=0.5&n=100",
}
# Moves the slider and gives the milliseconds to the frame after the drawing for the new epsilon.
MOVE = """async ([id, place]) => {
  const slider = document.getElementById('epsilon');
  slider.value = String(place);
  const wanted = String(Number((10 ** Number(slider.value)).toPrecision(3)));
  const start = performance.now();
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  return new Promise((done, failed) => {
    const look = () => {
      const there = document.getElementById(id).dataset.epsilon === wanted;
      if (there) requestAnimationFrame(() => done(performance.now() - start));
      else if (performance.now() - start > 60000) failed(new Error('not drawn within a minute: ' + id));
      else setTimeout(look, 1);
    };
    look();
  });
}"""


COIN = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1.0}
ENDLESS = {
    "null": "mixture(0.5, poisson(1e18), 0.5, cauchy(0, 1e-9))",
    "alternative": "poisson(1.1e18)",
    "epsilon": 0.01,
}
LONG = {
    "null": "cauchy(0, 1)",
    "alternative": "mixture(0.5, cauchy(0.01, 1), 0.5, student_t(2, 0, 1))",
    "epsilon": 0.01,
}
WIDE = {side: {f"<a href=//x>{i}</a>": 1 / 1000 for i in range(1000)} for side in ("null", "alternative")}
PAID = {"dataset": "claims", "source": {"path": "tosses.csv"}, "column": "toss"}
HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("/api/look", {**ENDLESS, "null": "poisson(1e18)"}),
    ("/api/design", {**LONG, "n": 10**9}),
    ("/api/size", {**LONG, "bound": True}),
    ("/api/power", {**LONG, "n": [10**k for k in range(1, 9)]}),
    ("/api/compare", LONG),
    ("/api/theory", {**{k: v for k, v in LONG.items() if k != "epsilon"}, "epsilons": [1e-6] * 40}),
    ("/api/run/test", {**LONG, **PAID, "request": "endless", "n": 10**9}),
    ("/api/run/change", {**LONG, **PAID, "request": "endless change", "source": {"path": "huge.csv"}}),
    ("/api/monitors", {**LONG, "dataset": "claims", "request": "endless monitor"}),
    ("/api/look", {**WIDE, "epsilon": 1e-6}),
]
HONEST = [
    ("GET", "/", None),
    ("GET", "/static/plotly.min.js", None),
    ("GET", "/api/about", None),
    ("POST", "/api/look", COIN),
]
LEAVES_AFTER = 30.0
"""Seconds after which whoever asked something hostile goes away."""


def siege() -> None:
    """100 questions at once, 10 of them hostile."""
    with tempfile.TemporaryDirectory() as where:
        rng = np.random.default_rng(5)
        for name, count in (("tosses.csv", 400), ("huge.csv", 5_000_000)):
            np.savetxt(Path(where, name), rng.integers(0, 2, count), fmt="%d", header="toss", comments="")
        ledger = pt.Ledger(Path(where, "ledger.db"))
        ledger.grant("claims", epsilon=100)
        settings = f"folder={where!r}, ledger={where + '/ledger.db'!r}, open_browser=False"
        code = f"from privatest.studio import serve; serve({settings})"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stderr is not None
            found = re.search(r"(http://[^/]+)/#launch=(\S+)", process.stderr.readline())
            assert found is not None
            _besiege(process.pid, *found.groups())
        finally:
            process.send_signal(signal.SIGINT)
            start = time.perf_counter()
            process.wait(60)
            print(json.dumps({"ended_after_s": round(time.perf_counter() - start, 2)}))


def _besiege(pid: int, address: str, word: str) -> None:
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=0)
    with httpx.Client(base_url=address, timeout=600, trust_env=False, limits=limits) as client:
        _until_it_answers(client)
        client.headers["authorization"] = (
            "Bearer " + client.post("/api/key", headers={"authorization": f"Launch {word}"}).json()["key"]
        )
        client.post("/api/look", json=COIN)
        time.sleep(3)
        before, stop, probes = memory(pid), threading.Event(), []

        def probe() -> None:
            while not stop.is_set():
                probes.append(timed(client, "GET", "/", None)[1])
                time.sleep(0.02)

        prober = threading.Thread(target=probe)
        prober.start()
        asks = [("POST", path, body, LEAVES_AFTER) for path, body in HOSTILE]
        asks += [(*HONEST[i % len(HONEST)], 600.0) for i in range(90)]
        with ThreadPoolExecutor(100) as pool:
            done = list(pool.map(lambda ask: timed(client, *ask), asks))
        most = memory(pid)
        time.sleep(6)
        stop.set()
        prober.join()
        worst: dict[str, float] = collections.defaultdict(float)
        for (_, path, *_), (status, seconds) in zip(asks[10:], done[10:], strict=True):
            worst[path] = max(worst[path], seconds)
            assert status == 200, (path, status)
        print(
            json.dumps(
                {
                    "hostile": [
                        [path, status, round(s, 1)] for (path, _), (status, s) in zip(HOSTILE, done, strict=False)
                    ]
                }
            )
        )
        print(json.dumps({"slowest_s": {path: round(seconds, 3) for path, seconds in worst.items()}}))
        print(
            json.dumps(
                {
                    "page": {
                        "asked": len(probes),
                        "slowest_s": round(max(probes), 3),
                        "median_s": round(float(np.median(probes)), 4),
                    }
                }
            )
        )
        print(
            json.dumps(
                {"memory_MiB": {"before": before, "when_all_were_answered": most, "six_seconds_later": memory(pid)}}
            )
        )


def timed(client: httpx.Client, method: str, path: str, body: Any, seconds: float = 600.0) -> tuple[int | str, float]:
    """Status and seconds of one question; whoever asked leaves when the time is up."""
    start = time.perf_counter()
    try:
        status: int | str = client.request(method, path, json=body, timeout=seconds).status_code
    except httpx.ReadTimeout:
        status = "left"
    return status, time.perf_counter() - start


def _until_it_answers(client: httpx.Client) -> None:
    for _ in range(400):
        try:
            client.get("/")
            return
        except httpx.ConnectError:
            time.sleep(0.05)


def memory(pid: int) -> dict[str, int]:
    """MiB that the server holds, that its workers hold together, and how many there are (Linux)."""
    workers = [
        int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()
    ]
    return {"server": _held(pid), "workers": sum(map(_held, workers)), "processes": len(workers)}


def _held(pid: int) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) // 1024 if found else 0


def measure(page: Any, chart: str, moves: int, pause: float) -> list[float]:
    """Milliseconds for each move, at places that never repeat (an answer that is remembered would be quicker)."""
    first = {"chart-densities": -1.50, "chart-law": -1.505}[chart]
    places = np.random.default_rng(1).permutation(np.arange(moves)) * 0.02 + first + 0.01
    page.evaluate(MOVE, [chart, 0.9])  # everything is loaded and warm
    found = []
    for place in places:
        page.wait_for_timeout(1000 * pause)
        found.append(page.evaluate(MOVE, [chart, round(float(place), 2)]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=100)
    parser.add_argument("--siege", action="store_true", help="100 questions at once, 10 of them hostile")
    asked = parser.parse_args()
    if asked.siege:
        siege()
        return
    moves = asked.moves
    app = create_app()
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1360, "height": 900})
            page.goto(f"{address}/#launch={app.state.launch()}")
            page.wait_for_selector("html[data-ready=yes]")
            for name, settings in PROBLEMS.items():
                page.goto("about:blank")
                page.goto(address + "/" + settings)
                page.wait_for_selector("#chart-law[data-n='100']", timeout=60_000)
                time.sleep(1)
                for chart, count, pause in (("chart-densities", moves, 0.05), ("chart-law", moves // 5, 0.3)):
                    times = measure(page, chart, count, pause)
                    median, p95 = np.percentile(times, [50, 95])
                    found = {"pair": name, "chart": chart, "moves": len(times)}
                    print(
                        json.dumps({**found, "median_ms": round(float(median), 1), "p95_ms": round(float(p95), 1)}),
                        flush=True,
                    )
            browser.close()
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


if __name__ == "__main__":
    main()
