"""Access to the studio: who may talk to it, and how much they may send. Every request and every answer passes here.

A request is refused, in this order, if its Host is not ours (DNS rebinding), if its Origin is another site or another
site's page fetches (request forgery), if it lacks the key, or if its body is too large, announced or not. Only the page
itself, which holds no data, is open to everybody. An uncaught exception becomes one sentence without a traceback.

A studio has one key, which every request must carry, and launch words, each of which opens one page: the page trades
the word for the key, once (``POST /api/key``). So an address with a word is worthless after the page has opened,
wherever it was written down. The header that holds a secret goes no further than this module: the framework, its logs
and its traces never see it. Secrets are drawn here and compared in constant time; they are no noise and touch no
release.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from privatest import errors

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

log = logging.getLogger("privatest.studio")

SHORTEST = 16
MOST_WORDS = 16
MAX_BODY = 2**20
UPLOAD = "/api/upload"
KEY = "/api/key"
ENTER = "Open the address that was printed at start, or enter the word after launch= on the page. "
AGAIN = "An address opens one page. Press Enter in the studio's terminal to print another one."

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OURS = {"same-origin", "none"}
"""Values of Sec-Fetch-Site in requests from the page itself or from the address bar."""


class Token:
    """The key and its launch words. Its representation shows neither."""

    def __init__(self, text: str | None = None) -> None:
        if text is not None and (len(text) < SHORTEST or not text.isascii() or not text.isprintable() or " " in text):
            raise errors.InvalidInput(
                f"token must be at least {SHORTEST} printable ASCII characters without spaces. Or leave it out."
            )
        self.text = secrets.token_urlsafe(32) if text is None else text
        self._words: list[str] = []
        self._lock = threading.Lock()

    def matches(self, text: str | None) -> bool:
        """Return whether ``text`` is the key, in a time that does not depend on it."""
        return text is not None and _same(text, self.text)

    def launch(self) -> str:
        """Return a new launch word. If there are too many unused words, the oldest becomes invalid."""
        with self._lock:
            self._words = [*self._words[1 - MOST_WORDS :], secrets.token_urlsafe(24)]
            return self._words[-1]

    def redeem(self, word: str) -> bool:
        """Return whether the word is an unused launch word, and mark it as used."""
        with self._lock:
            used = [each for each in self._words if _same(word, each)]
            self._words = [each for each in self._words if each not in used]
            return bool(used)

    def waits(self, word: str) -> bool:
        """Return whether the word is unused."""
        with self._lock:
            return word in self._words

    def __repr__(self) -> str:
        return "Token(...)"


def _same(text: str, secret: str) -> bool:
    """Compare a text with a secret in constant time."""
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: Any, *, token: Token, hosts: Sequence[str], max_upload: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {host.lower() for host in hosts}
        self._max_upload = max_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0].lower() != b"authorization"]}
        limit = self._max_upload if scope["path"] == UPLOAD else MAX_BODY
        announced = headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced[:20]) > limit:
            await _answer(send, *_too_large(limit))
            return
        await self._pass(scope, receive, send, limit)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, dict[str, str]] | None:
        """Return the status and the content of a refusal, or None if the request may pass."""
        host = headers.get("host", "").lower()
        if _hostname(host) not in self._hosts:
            return _refused(421, "The studio is not served under this host name. Open the address printed at start.")
        page = scope["method"] == "GET" and scope["path"] == "/"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin.lower() != f"{scope.get('scheme', 'http')}://{host}":
            return _refused(403, "The request comes from another site's page.")
        if site is not None and site not in OURS and not page:
            return _refused(403, "The request comes from another site's page.")
        kind, _, word = headers.get("authorization", "").partition(" ")
        if scope["method"] == "POST" and scope["path"] == KEY:
            if kind.lower() == "launch" and self._token.redeem(word):
                return 200, {"key": self._token.text}
            return _refused(401, "This launch word is wrong or was used before. " + ENTER + AGAIN)
        if page or (scope["method"] == "GET" and scope["path"].startswith("/static/")):
            return None
        if kind.lower() == "bearer" and self._token.matches(word):
            return None
        return _refused(401, ENTER + AGAIN)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        """Pass the request on and count its body; answer 413 if the body is too large."""
        seen, over, started = 0, False, False

        async def counted() -> Message:
            nonlocal seen, over
            if over:
                return {"type": "http.disconnect"}
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > limit:
                    over = True
                    return {"type": "http.disconnect"}
            return message

        async def dressed(message: Message) -> None:
            nonlocal started
            if over:
                return
            if message["type"] == "http.response.start":
                started = True
                others = [
                    pair for pair in message.get("headers", []) if pair[0].lower().decode("latin-1") not in HEADERS
                ]
                message = {**message, "headers": others + _encoded(HEADERS)}
            await send(message)

        try:
            await self._app(scope, counted, dressed)
        except Exception as error:
            # Only the kind: a message or a traceback could quote what was computed from data.
            if not over:
                log.error("%s %s ended with %s", scope["method"], scope["path"], type(error).__name__)
                if not started:
                    await _answer(send, 500, {"error": "An error occurred in the studio. Its details are not shown."})
        if over and not started:
            await _answer(send, *_too_large(limit))


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by lower-case name. The values of a repeated header are joined, so that they match nothing."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = text if key not in headers else f"{headers[key]}, {text}"
    return headers


def _hostname(host: str) -> str:
    """Return a host without its port, and an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _refused(status: int, sentence: str) -> tuple[int, dict[str, str]]:
    return status, {"error": sentence}


def _too_large(limit: int) -> tuple[int, dict[str, str]]:
    return _refused(413, f"The body is larger than {limit} bytes, the largest that is accepted here.")


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


async def _answer(send: Send, status: int, content: dict[str, str]) -> None:
    body = json.dumps(content).encode()
    headers = {**HEADERS, "content-type": "application/json", "content-length": str(len(body))}
    if status == 413:
        headers["connection"] = "close"
    await send({"type": "http.response.start", "status": status, "headers": _encoded(headers)})
    await send({"type": "http.response.body", "body": body})
