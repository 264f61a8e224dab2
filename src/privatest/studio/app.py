"""The studio's application: routes, and which answer an error becomes.

The studio served by uvicorn, on the loopback interface unless told otherwise.
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
from privatest import errors
from privatest.studio.answering import FIRST, RecordsBody, body, controls
from privatest.studio.guard import UPLOAD, Guard, Receive, Scope, Send, Token
from privatest.studio.lanes import LOOK, NEEDED, RUNNING, Busy, Lane
from privatest.studio.monitors import NOUNS, Monitors
from privatest.studio.runs import DEMO, KINDS, STAYS, Budgets, Folder, Uploads, address_of

Json = dict[str, Any]

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LONGEST_MESSAGE = 600


class Refusal(BaseModel):
    """What every refusal looks like: one or two sentences that say what to do."""

    error: str


REFUSALS: dict[int | str, Json] = {
    status: {"model": Refusal, "description": words}
    for status, words in {
        401: "no key",
        403: "asked by another site",
        409: "the ledger refuses: over budget, or the request's name stands for something else",
        413: "too large",
        421: "asked under another host name",
        422: "bad input",
        429: "too many questions wait",
    }.items()
}
MonitorName = Annotated[str, Part(max_length=64, examples=["monitor-1"])]


class Answer(JSONResponse):
    """JSON in ASCII, without NaN: whatever text came in can go out."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=True, allow_nan=False).encode("ascii")


class Studio(FastAPI):
    """The application inside its guard: the framework, its middleware and its telemetry see what may pass."""

    guard: Guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)

    async def inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the guard lets pass."""
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
    """See :func:`privatest.studio.create_app`."""
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
        "about": Lane(seconds=30, remembers=False, remedy="Does the ledger answer, and the folder?"),
        "runs": Lane(
            seconds=max_seconds,
            memory=RUNNING,
            nice=2,
            stoppable=True,
            workers=2,
            remembers=False,
            kept=False,  # of a run no record is left in any process
            remedy=longer,
        ),
    }

    def close() -> None:
        """End all processes and remove all uploads, now."""
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
        # Requests hold what is asked of whose data; a variable in the environment is no leave to export that.
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
    """Start the workers on what a page asks first, those of its first answer before the others."""

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
    @app.exception_handler(errors.PrivatestError)
    async def ours(_request: Request, error: Exception) -> Answer:
        paid = isinstance(error, errors.BudgetExceeded | errors.LedgerError)
        return Answer({"error": str(error)[:LONGEST_MESSAGE]}, 409 if paid else 422)

    @app.exception_handler(Busy)
    async def busy(_request: Request, error: Exception) -> Answer:
        return Answer({"error": str(error)}, 429)

    @app.exception_handler(Exception)
    async def unknown(_request: Request, _error: Exception) -> Answer:
        return Answer({"error": "Something went wrong inside the studio. Nothing of it is shown here."}, 500)

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Answer:
        # Where and which rule; never what was given.
        found = error.errors()
        # P may be text or a table; of what is wrong with both, say what is wrong with the one that was meant.
        first = next((each for each in found if each["type"] not in {"string_type", "dict_type"}), found[0])
        where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        return Answer({"error": f"{where[:200]}: {first['msg']}."[:LONGEST_MESSAGE]}, 422)

    @app.exception_handler(HTTPException)
    async def other(_request: Request, error: HTTPException) -> Answer:
        if error.status_code == 400:  # a body that is no JSON at all
            return Answer({"error": "The body cannot be read as JSON."}, 422)
        return Answer({"error": f"{error.detail}."}, error.status_code)


def _add_page(app: FastAPI) -> None:
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
    """All there is to serve, by name: no request ever becomes a path."""
    return {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}


@cache
def _plotly() -> bytes:
    import plotly  # type: ignore[import-untyped, unused-ignore]

    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()


Asked = Callable[[BaseModel, Request], Awaitable[Json]]


def _add_question(app: FastAPI, request: str, summary: str, answer: Asked) -> None:
    """A route whose body is that of the table of questions."""

    async def asked(body: Any, request: Request) -> Answer:
        return Answer(await answer(body, request))

    asked.__annotations__["body"] = body(request)
    app.post(f"/api{request}", name=request.strip("/").replace("/", "_"), summary=summary)(asked)


def _add_planning(app: FastAPI, lanes: dict[str, Lane]) -> None:
    def lane_of(job: str, asked: Json) -> str:
        if job == "size":
            return "sizes" if asked["bound"] else "needed"
        if job == "estimate":
            return "sizes" if asked["bound"] else "design"
        if job == "groups":
            return "needed"
        if job in ("along", "estimate_size", "groups_size"):
            return "sizes"
        if job == "plan":
            return "sizes"
        if job == "theory":
            return "needed" if len(asked["epsilons"]) == 1 else "sizes"
        return job if job in lanes else "tables"

    def ask(job: str) -> Asked:
        async def answer(body: BaseModel, request: Request) -> Json:
            asked = body.model_dump()
            return await lanes[lane_of(job, asked)].answer(job, asked, request.is_disconnected)

        return answer

    for job, summary in {
        "look": "Decomposition, and the curves of the paper's first figure",
        "design": "The tuned test on n records, its exact error rates and the law of its statistic",
        "size": "Records that a goal needs, and how many no private test can do without",
        "plan": "The same with all that says how good it is",
        "theory": "The theorem at several epsilons",
        "power": "Exact error rates at several n",
        "along": 'How probably a test says "alternative", along a parameter of what the records come from',
        "compare": "Every test side by side",
        "notions": "Records under a notion of privacy and what it converts into",
        "estimate": "How long an estimate's interval will be, and the length that none falls below",
        "estimate/size": "Records that an interval of some length needs",
        "groups": "How likely a lift is found in two groups",
        "groups/size": "Records that finding a lift needs",
    }.items():
        _add_question(app, f"/{job}", summary, ask(job.replace("/", "_")))


def _add_runs(
    app: FastAPI, lanes: dict[str, Lane], places: Folder, uploads: Uploads, budgets: Budgets, max_upload: int
) -> None:
    @app.get("/api/about", summary="Version, limits, files that can be named, and budgets")
    async def about(request: Request) -> Answer:
        where = {"folder": places.root, "ledger": budgets.packed() if budgets.given else None}
        found = await lanes["about"].answer("about", where, request.is_disconnected)
        found["files"] = [*places.made_up, *found["files"]]
        limits = {"kinds": list(KINDS), "max_upload": max_upload}
        given = {"folder": places.root is not None or bool(places.made_up), "ledger": budgets.given}
        demo = DEMO if places.made_up else None
        return Answer({"version": pt.__version__, **given, "demo": demo, **limits, **controls(), **found})

    @app.post("/api/demo", summary="Made-up data and a ledger for them, where no ledger was given at start")
    async def demo() -> Answer:
        await run_in_threadpool(budgets.demonstrate, places)
        return Answer({"dataset": DEMO, "files": list(places.made_up)})

    @app.get("/api/working", summary="What is being computed, since when, and how far it has come")
    async def working() -> Answer:
        return Answer({"working": [each for lane in lanes.values() for each in lane.working()]})

    async def columns(body: BaseModel, request: Request) -> Json:
        asked = body.model_dump()
        path = str(await run_in_threadpool(address_of, asked["source"], places, uploads))
        return await lanes["about"].answer("columns", {"asked": asked, "path": path}, request.is_disconnected)

    _add_question(app, "/columns", "The names of a file's columns, for whoever holds the data", columns)

    binary = {"schema": {"type": "string", "format": "binary"}}

    @app.post(
        UPLOAD,
        summary="Hand over a data file, as the body; the answer names it for a run",
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
            raise errors.InvalidInput("The upload was cut short. Upload it again.") from None
        if size == 0:
            os.unlink(file.name)
            raise errors.InvalidInput("The body is empty. Send the file's bytes as the body.")
        uploads.keep(word, file.name)
        return Answer({"upload": word, "bytes": size})

    def run(job: str) -> Asked:
        async def answer(body: BaseModel, request: Request) -> Json:
            asked, ledger = body.model_dump(), budgets.packed()
            paths = {
                name: str(await run_in_threadpool(address_of, asked[name], places, uploads))
                for name in ("source", "treatment")
                if asked.get(name) is not None
            }
            arguments = {"asked": asked, "paths": paths, "ledger": ledger}
            return await lanes["runs"].answer(job, arguments, request.is_disconnected)

        return answer

    for job, summary in {
        "test": "Run a test once on a file, charged to the ledger",
        "change": "Locate a change once in a file, charged to the ledger",
        "estimate": "Estimate a parameter once from a file, charged to the ledger",
        "groups": "Compare two groups once, charged to the ledger",
    }.items():
        _add_question(app, f"/run/{job}", summary, run(f"run_{job}"))


def _add_followed(app: FastAPI, route: str, followed: Monitors) -> None:
    noun = {"/monitors": "a monitor", "/sequentials": "a sequential test"}[route]

    async def start(body: BaseModel, request: Request) -> Json:
        return await followed.start(body.model_dump(), request.is_disconnected)

    _add_question(app, route, f"Start {noun}, charged to the ledger", start)

    @app.get(f"/api{route}", summary=f"All of this studio: {route[1:]}", name=f"list {route}")
    async def listed() -> Answer:
        return Answer({route[1:]: await followed.listed()})

    @app.get(f"/api{route}/{{name}}", summary=f"What {noun} has released", name=f"state of {route}")
    async def state(name: MonitorName) -> Answer:
        return Answer(await followed.state(name))

    @app.post(f"/api{route}/{{name}}/records", summary=f"Hand records to {noun}", name=f"feed {route}")
    async def feed(name: MonitorName, body: RecordsBody) -> Answer:
        return Answer(await followed.feed(name, body.lines))

    @app.post(f"/api{route}/{{name}}/stop", summary=f"Follow {noun} no more", name=f"stop {route}")
    async def stop(name: MonitorName) -> Answer:
        return Answer(await followed.stop(name))


OPENED_WITHIN = 120.0
"""Seconds after which the file that opens the page goes, opened or not."""
HANDOVER = """<!doctype html><meta charset="utf-8"><title>privatest studio</title>
<script>location.replace("{address}");</script><p><a href="{address}">Open the studio</a></p>
"""


class _Server(uvicorn.Server):
    """Computations end before connections do: no request keeps the server from ending."""

    def __init__(self, app: FastAPI) -> None:
        # No access log: it would tell when was asked for what.
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
    """See :func:`privatest.studio.serve`."""
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
        more = "Enter prints the address of another one, " if asks else ""
        print(f"The studio is open at {site}#launch={word}", file=sys.stderr)
        print(f"The address opens one page. {more}Ctrl-C ends the studio.", file=sys.stderr, flush=True)
        if not _loopback(host):
            print("Others can reach it, unencrypted, and need only that address. Trust the network.", file=sys.stderr)
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
    """A terminal that closes ends the studio as Ctrl-C does: uploads and processes go with it."""

    def hang_up(_number: int, _frame: Any) -> None:
        server.should_exit = True

    def terminate(number: int, _frame: Any) -> None:  # uvicorn ends first, and raises it again
        sys.exit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hang_up)
        if hasattr(signal, "SIGTTIN"):  # in the background Enter is for others; asking for it must not stop us
            before[signal.SIGTTIN] = signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open(app: FastAPI, site: str, word: str, place: Path) -> None:
    """Open the page by way of a file: what is written on a browser's command line, every user of the machine reads."""
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
    """The address of another page whenever Enter is pressed. Not through sys.stdin, whose lock would outlive us."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            print(f"{site}#launch={app.state.launch()}", file=sys.stderr, flush=True)


def allowed_hosts(host: str) -> tuple[str, ...]:
    """The names under which a page that listens on ``host`` may be asked for."""
    names = ["127.0.0.1", "localhost", "::1"]
    if not _loopback(host):
        names += [host, socket.gethostname(), socket.getfqdn()]
        with contextlib.suppress(OSError):
            names += [str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)]
    return tuple(dict.fromkeys(name.lower() for name in names))


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise errors.InvalidInput(
            f"The studio cannot listen on host={host!r}, port={port}: {error.strerror or error}. "
            "Try port=0, any free one."
        ) from None
    return listening
