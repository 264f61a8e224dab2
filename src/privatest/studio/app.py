"""The studio's application, with its routes and the answers to errors, and the server that serves it.

The server is uvicorn. It listens on the loopback interface by default.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi import Path as Part
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import privatest as pt
from privatest import errors, options
from privatest.studio.access import UPLOAD, Guard, Receive, Scope, Send, Token
from privatest.studio.job_queues import LOOK, NEEDED, RUNNING, Busy, Lane
from privatest.studio.monitors import NOUNS, Monitors
from privatest.studio.planning_requests import FIRST, RecordsBody, body, controls, description
from privatest.studio.planning_requests import JOBS as PLANNING_JOBS
from privatest.studio.runs import DEMO, KINDS, STAYS, Budgets, Folder, Uploads, address_of

Json = dict[str, Any]

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LONGEST_MESSAGE = 600


class Refusal(BaseModel):
    """A refusal: one or two sentences that say what to do."""

    error: str


REFUSALS: dict[int | str, Json] = {
    status: {"model": Refusal, "description": words}
    for status, words in {
        401: "the key is missing",
        403: "the request comes from another site",
        409: "the ledger refuses: over budget, or the request's name is taken",
        413: "too large",
        421: "wrong host name",
        422: "bad input",
        429: "too many questions wait",
    }.items()
}
MonitorName = Annotated[str, Part(max_length=64, examples=["monitor-1"])]


class Answer(JSONResponse):
    """An answer as JSON in ASCII, without NaN, so that any text can be sent."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=True, allow_nan=False).encode("ascii")


class Studio(FastAPI):
    """The application behind its guard: the framework, its middleware and its telemetry see only what may pass."""

    guard: Guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)

    async def inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the guard let pass."""
        await super().__call__(scope, receive, send)


def build(
    *,
    folder: str | os.PathLike[str] | None,
    ledger: Any,
    token: str | None,
    hosts: Sequence[str],
    max_upload: int,
    max_seconds: float,
) -> FastAPI:
    """Build the application. The arguments are those of :func:`privatest.studio.create_app`."""
    if not isinstance(max_upload, int) or isinstance(max_upload, bool) or max_upload < 1:
        raise errors.InvalidInput(f"max_upload={max_upload!r} must be a whole number of bytes, at least 1.")
    if not isinstance(max_seconds, int | float) or isinstance(max_seconds, bool) or not 1 <= max_seconds <= 1e6:
        raise errors.InvalidInput(f"max_seconds={max_seconds!r} must be a number of seconds from 1 to 1,000,000.")
    secret, places, uploads, budgets = Token(token), Folder(folder), Uploads(), Budgets(ledger)
    followed = {route: Monitors(places, budgets, route) for route in NOUNS}
    longer = f"Start the studio with a larger max_seconds for larger files, or simplify P and Q. {STAYS}"
    lanes = {
        "look": Lane(seconds=20, nice=LOOK),
        "design": Lane(seconds=60, nice=4),
        "needed": Lane(seconds=60, nice=NEEDED, stoppable=True),
        "sizes": Lane(seconds=120, nice=12, stoppable=True),
        "tables": Lane(seconds=240, nice=12, stoppable=True),
        "about": Lane(seconds=30, remembers=False, remedy="Check that the ledger and the folder respond."),
        "runs": Lane(
            seconds=max_seconds,
            memory=RUNNING,
            nice=2,
            stoppable=True,
            workers=2,
            remembers=False,
            reuses=False,  # so that no record remains in any process
            remedy=longer,
        ),
    }

    def close() -> None:
        """End all processes and remove all uploads."""
        for lane in lanes.values():
            lane.close()
        for each in followed.values():
            each.close()
        uploads.close()
        budgets.close()

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        _warm(lanes)
        try:
            yield
        finally:
            close()

    app = Studio(
        title="privatest studio",
        version=pt.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=life,
        default_response_class=Answer,
        responses=REFUSALS,
        # Requests name questions and data sets. No variable of the environment may cause their export.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.token, app.state.launch, app.state.waits = secret.text, secret.launch, secret.waits
    app.state.lanes, app.state.monitors, app.state.close = lanes, followed["/monitors"], close
    app.guard = Guard(app.inside, token=secret, hosts=tuple(hosts), max_upload=max_upload)
    _add_refusals(app)
    _add_page(app)
    _add_planning(app, lanes)
    _add_runs(app, lanes, places, uploads, budgets, max_upload)
    for route, each in followed.items():
        _add_followed(app, route, each)
    return app


def _warm(lanes: dict[str, Lane]) -> None:
    """Start the workers on the first requests of a page, beginning with the requests of its first answer."""

    def first(job: str) -> Json:
        return body(f"/{job}")(**FIRST[job]).model_dump()

    def then(_first: Any) -> None:
        for name in ("design", "about", "sizes", "tables"):
            job = name if name in FIRST else "look"
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                lanes[name].warm(job, first(job))

    lanes["needed"].warm("size", first("size")).add_done_callback(then)
    lanes["look"].warm("look", first("look"))


def _add_refusals(app: FastAPI) -> None:
    """Add the answers to errors."""

    @app.exception_handler(errors.PrivatestError)
    async def ours(_request: Request, error: Exception) -> Answer:
        paid = isinstance(error, errors.BudgetExceeded | errors.LedgerError)
        return Answer({"error": str(error)[:LONGEST_MESSAGE]}, 409 if paid else 422)

    @app.exception_handler(Busy)
    async def busy(_request: Request, error: Exception) -> Answer:
        return Answer({"error": str(error)}, 429)

    @app.exception_handler(Exception)
    async def unknown(_request: Request, _error: Exception) -> Answer:
        return Answer({"error": "An error occurred in the studio. Its details are not shown."}, 500)

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Answer:
        # The message has the place and the rule, never the value.
        details = error.errors()
        # P may be text or a table. Of the two errors, show the one for the kind that was given.
        first = next((each for each in details if each["type"] not in {"string_type", "dict_type"}), details[0])
        where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        return Answer({"error": f"{where[:200]}: {first['msg']}."[:LONGEST_MESSAGE]}, 422)

    @app.exception_handler(HTTPException)
    async def other(_request: Request, error: HTTPException) -> Answer:
        if error.status_code == 400:  # a body that is not JSON
            return Answer({"error": "The body cannot be read as JSON."}, 422)
        return Answer({"error": f"{error.detail}."}, error.status_code)


def _add_page(app: FastAPI) -> None:
    """Add the page and its files."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(_files()["studio.html"], media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name == "plotly.min.js":
            return Response(_plotly(), media_type="text/javascript")
        if name not in _files() or name.endswith(".html"):
            raise HTTPException(404, "Not found")
        return Response(_files()[name], media_type=TYPES[Path(name).suffix])


@cache
def _files() -> dict[str, bytes]:
    """Return the files to serve by name, so that no request becomes a path."""
    return {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}


@cache
def _plotly() -> bytes:
    """Return the script of plotly."""
    import plotly  # type: ignore[import-untyped, unused-ignore]

    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()


AnswerJob = Callable[[BaseModel, Request], Awaitable[Json]]


def _add_question(app: FastAPI, request: str, answer: AnswerJob) -> None:
    """Add a route whose body and summary are those of the table of options."""

    async def endpoint(body: Any, request: Request) -> Answer:
        return Answer(await answer(body, request))

    endpoint.__annotations__["body"] = body(request)
    summary = description(request).partition(". ")[0].rstrip(".")
    app.post(f"/api{request}", name=request.strip("/").replace("/", "_"), summary=summary)(endpoint)


LANES = {"look": "look", "design": "design", "groups": "needed"} | dict.fromkeys(
    ("plan", "along", "estimate_size", "groups_size"), "sizes"
)
"""The lanes of planning jobs; other jobs are computed in the lane of tables."""


def _lane_of(job: str, settings: Json) -> str:
    """Return the lane of a planning job: a quick job has another lane than a slow one of the same name."""
    if job == "size":
        return "sizes" if settings["bound"] else "needed"
    if job == "estimate":
        return "sizes" if settings["bound"] else "design"
    if job == "theory":
        return "needed" if len(settings["epsilons"]) == 1 else "sizes"
    return LANES.get(job, "tables")


def _add_planning(app: FastAPI, lanes: dict[str, Lane]) -> None:
    """Add the planning requests, which read no data."""

    def ask(job: str) -> AnswerJob:
        async def answer(body: BaseModel, request: Request) -> Json:
            settings = body.model_dump()
            return await lanes[_lane_of(job, settings)].answer(job, settings, request.is_disconnected)

        return answer

    for request in options.QUESTIONS:
        job = request.removeprefix("/").replace("/", "_")
        if request.startswith("/") and job in PLANNING_JOBS:
            _add_question(app, request, ask(job))


def _add_runs(
    app: FastAPI, lanes: dict[str, Lane], places: Folder, uploads: Uploads, budgets: Budgets, max_upload: int
) -> None:
    """Add the requests that concern data: files, budgets, uploads and runs."""

    @app.get("/api/about", summary="Version, limits, files that can be named, and budgets")
    async def about(request: Request) -> Answer:
        where = {"folder": places.root, "ledger": budgets.packed() if budgets.has_ledger else None}
        files_and_budgets = await lanes["about"].answer("about", where, request.is_disconnected)
        files_and_budgets["files"] = [*places.demo_files, *files_and_budgets["files"]]
        limits = {"kinds": list(KINDS), "max_upload": max_upload}
        available = {"folder": places.root is not None or bool(places.demo_files), "ledger": budgets.has_ledger}
        demo = DEMO if places.demo_files else None
        return Answer(
            {"version": pt.__version__, **available, "demo": demo, **limits, **controls(), **files_and_budgets}
        )

    @app.post("/api/demo", summary="Made-up data and a ledger for them, where no ledger was given at start")
    async def demo() -> Answer:
        await run_in_threadpool(budgets.demonstrate, places)
        return Answer({"dataset": DEMO, "files": list(places.demo_files)})

    @app.get("/api/working", summary="The computations that run or wait, with their progress")
    async def working() -> Answer:
        return Answer({"working": [each for lane in lanes.values() for each in lane.working()]})

    async def columns(body: BaseModel, request: Request) -> Json:
        settings = body.model_dump()
        path = str(await run_in_threadpool(address_of, settings["source"], places, uploads))
        return await lanes["about"].answer("columns", {"settings": settings, "path": path}, request.is_disconnected)

    _add_question(app, "/columns", columns)

    binary = {"schema": {"type": "string", "format": "binary"}}

    @app.post(
        UPLOAD,
        summary="Upload a data file as the body; the answer names it for a run",
        openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": binary}}},
    )
    async def upload(request: Request, name: Annotated[str, Field(min_length=1, max_length=255)]) -> Answer:
        word, file = uploads.new(name)
        size = 0
        try:
            with file:
                async for chunk in request.stream():
                    size += len(chunk)
                    await run_in_threadpool(file.write, chunk)
        except ClientDisconnect:  # also how the guard ends a body that is too large
            os.unlink(file.name)
            raise errors.InvalidInput("The upload was interrupted. Upload the file again.") from None
        if size == 0:
            os.unlink(file.name)
            raise errors.InvalidInput("The body is empty. Send the file's bytes as the body.")
        uploads.keep(word, file.name)
        return Answer({"upload": word, "bytes": size})

    def run(job: str) -> AnswerJob:
        async def answer(body: BaseModel, request: Request) -> Json:
            settings, ledger = body.model_dump(), budgets.packed()
            paths = {
                name: str(await run_in_threadpool(address_of, settings[name], places, uploads))
                for name in ("source", "treatment")
                if settings.get(name) is not None
            }
            arguments = {"settings": settings, "paths": paths, "ledger": ledger}
            return await lanes["runs"].answer(job, arguments, request.is_disconnected)

        return answer

    for name in (question for question in options.QUESTIONS if question.startswith("/run/")):
        _add_question(app, name, run(name.removeprefix("/").replace("/", "_")))


def _add_followed(app: FastAPI, route: str, followed: Monitors) -> None:
    """Add the requests that start, read, feed and stop monitors or sequential tests."""
    noun = {"/monitors": "a monitor", "/sequentials": "a sequential test"}[route]

    async def start(body: BaseModel, request: Request) -> Json:
        return await followed.start(body.model_dump(), request.is_disconnected)

    _add_question(app, route, start)

    @app.get(f"/api{route}", summary=f"The {route[1:]} of this studio", name=f"list {route}")
    async def listed() -> Answer:
        return Answer({route[1:]: await followed.listed()})

    @app.get(f"/api{route}/{{name}}", summary=f"What {noun} has released", name=f"state of {route}")
    async def state(name: MonitorName) -> Answer:
        return Answer(await followed.state(name))

    @app.post(f"/api{route}/{{name}}/records", summary=f"Send records to {noun}", name=f"feed {route}")
    async def feed(name: MonitorName, body: RecordsBody) -> Answer:
        return Answer(await followed.feed(name, body.lines))

    @app.post(f"/api{route}/{{name}}/stop", summary=f"Stop {noun}", name=f"stop {route}")
    async def stop(name: MonitorName) -> Answer:
        return Answer(await followed.stop(name))


OPENED_WITHIN = 120.0
"""Seconds after which the file that opens the page is deleted."""
HANDOVER = """<!doctype html><meta charset="utf-8"><title>privatest studio</title>
<script>location.replace("{address}");</script><p><a href="{address}">Open the studio</a></p>
"""


class _Server(uvicorn.Server):
    """A server that ends computations before connections, so that no request keeps it from ending."""

    def __init__(self, app: FastAPI) -> None:
        # No access log, because it would record the times and names of requests.
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=5,
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.close()
        await super().shutdown(sockets)


def run(
    *,
    port: int,
    folder: str | os.PathLike[str] | None,
    ledger: Any,
    open_browser: bool,
    host: str,
    limits: dict[str, Any],
) -> None:
    """Serve the studio. The arguments are those of :func:`privatest.studio.serve`."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 2**16:
        raise errors.InvalidInput(f"port={port!r} must be a whole number from 0 (any free one) to 65535.")
    app = build(folder=folder, ledger=ledger, token=None, hosts=allowed_hosts(host), **limits)
    with contextlib.ExitStack() as left:
        listening = left.enter_context(_listen(host, port))
        left.callback(app.state.close)
        server = _Server(app)
        left.enter_context(_signals(server))
        name = f"[{host}]" if ":" in host else host
        site = f"http://{name}:{listening.getsockname()[1]}/"
        word = app.state.launch()
        asks = sys.stdin is not None and sys.stdin.isatty()
        more = "Enter prints the address of another page, " if asks else ""
        print(f"The studio is open at {site}#launch={word}", file=sys.stderr)
        print(f"The address opens one page. {more}Ctrl-C ends the studio.", file=sys.stderr, flush=True)
        if not _loopback(host):
            print(
                "Others can reach it without encryption, and need only that address. Use a network that you trust.",
                file=sys.stderr,
            )
        if open_browser:
            place = Path(tempfile.mkdtemp(prefix="privatest-launch-"))  # for this user's eyes only
            left.callback(shutil.rmtree, place, ignore_errors=True)
            threading.Thread(target=_open, args=[app, site, word, place], daemon=True).start()
        if asks:
            threading.Thread(target=_print_more, args=[app, site], daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


@contextlib.contextmanager
def _signals(server: _Server) -> Iterator[None]:
    """End the studio, with its uploads and processes, when its terminal closes, as Ctrl-C does."""

    def hang_up(_number: int, _frame: Any) -> None:
        server.should_exit = True

    def terminate(number: int, _frame: Any) -> None:  # uvicorn ends first, and raises it again
        sys.exit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hang_up)
        if hasattr(signal, "SIGTTIN"):  # in the background, reading Enter must not stop the studio
            before[signal.SIGTTIN] = signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open(app: FastAPI, site: str, word: str, place: Path) -> None:
    """Open the page by a private file, because every user of the machine can read a browser's command line."""
    file = place / "open.html"
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as writing:
        writing.write(HANDOVER.format(address=f"{site}#launch={word}"))
    time.sleep(0.5)  # the server is about to listen
    webbrowser.open(file.as_uri())
    end = time.monotonic() + OPENED_WITHIN
    while app.state.waits(word) and time.monotonic() < end:
        time.sleep(0.5)
    shutil.rmtree(place, ignore_errors=True)


def _print_more(app: FastAPI, site: str) -> None:
    """Print the address of another page when Enter is pressed. sys.stdin is not used: its lock outlives the thread."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            print(f"{site}#launch={app.state.launch()}", file=sys.stderr, flush=True)


def allowed_hosts(host: str) -> tuple[str, ...]:
    """Return the host names under which a studio that listens on ``host`` is served."""
    names = ["127.0.0.1", "localhost", "::1"]
    if not _loopback(host):
        names += [host, socket.gethostname(), socket.getfqdn()]
        with contextlib.suppress(OSError):
            names += [str(address[4][0]) for address in socket.getaddrinfo(socket.gethostname(), None)]
    return tuple(dict.fromkeys(name.lower() for name in names))


def _loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the host and port."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise errors.InvalidInput(
            f"The studio cannot listen on host={host!r}, port={port}: {error.strerror or error}. "
            "Use port=0 for any free port."
        ) from None
    return listening
