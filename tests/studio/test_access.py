"""Who may ask: each refusal, and what every answer carries."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient

from privatest.studio import create_app
from privatest.studio.access import HEADERS, MAX_BODY, Guard, Token

TOKEN = "a-token-of-the-tests-0123456789"
OPEN = ["/", "/static/studio.js", "/static/plotly.min.js"]
SHUT = ["/api/about", "/api/openapi.json", "/api/monitors", "/nothing"]
PATHS = OPEN + SHUT


@pytest.fixture
def stranger(studio: Any) -> TestClient:
    """Somebody without the key."""
    return TestClient(studio.app, base_url="http://127.0.0.1", follow_redirects=False)


@pytest.mark.parametrize("path", SHUT)
def test_without_the_key_nothing_is_answered(stranger: TestClient, path: str) -> None:
    for method in ("GET", "POST", "PUT", "HEAD", "OPTIONS"):
        answer = stranger.request(method, path)
        assert answer.status_code == 401
        assert method == "HEAD" or set(answer.json()) == {"error"}


@pytest.mark.parametrize("path", OPEN)
def test_the_page_is_for_everybody_and_holds_nothing(studio: Any, stranger: TestClient, path: str) -> None:
    word = studio.app.state.launch()
    answer = stranger.get(path)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    for secret in (TOKEN, word, str(studio.folder), "claims"):
        assert secret not in answer.text
    assert stranger.post(path).status_code == 401


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é" * 40])
def test_a_wrong_key_is_refused(stranger: TestClient, token: str) -> None:
    assert stranger.get("/api/about", headers={"authorization": f"Bearer {token}".encode()}).status_code == 401
    assert stranger.post("/api/key", headers={"authorization": f"Launch {token}".encode()}).status_code == 401


def test_the_key_counts_in_its_header_alone(stranger: TestClient) -> None:
    """Neither in an address nor in a cookie, which every port of this host would be sent."""
    assert stranger.get("/api/about", params={"token": TOKEN, "key": TOKEN}).status_code == 401
    assert stranger.get("/api/about", headers={"cookie": f"key={TOKEN}; token={TOKEN}"}).status_code == 401
    assert stranger.get("/api/about", headers={"authorization": TOKEN}).status_code == 401
    assert stranger.get("/api/about", headers={"authorization": f"Launch {TOKEN}"}).status_code == 401
    assert stranger.get("/api/about", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_launch_word_works_once(studio: Any, stranger: TestClient) -> None:
    word, other = studio.app.state.launch(), studio.app.state.launch()
    assert stranger.get("/api/about", headers={"authorization": f"Bearer {word}"}).status_code == 401
    assert stranger.get("/api/key", headers={"authorization": f"Launch {word}"}).status_code == 401
    assert studio.app.state.waits(word)
    first, second = (stranger.post("/api/key", headers={"authorization": f"Launch {word}"}) for _ in range(2))
    assert first.json() == {"key": TOKEN}
    assert second.status_code == 401
    assert not studio.app.state.waits(word)
    assert studio.app.state.waits(other)
    assert "set-cookie" not in first.headers
    assert first.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("header", [{"origin": "http://evil.example"}, {"sec-fetch-site": "same-site"}])
def test_another_site_cannot_use_a_launch_word_up(studio: Any, stranger: TestClient, header: dict[str, str]) -> None:
    word = studio.app.state.launch()
    answer = stranger.post("/api/key", headers={"authorization": f"Launch {word}", **header})
    assert answer.status_code == 403
    assert studio.app.state.waits(word)


def test_nothing_inside_the_guard_sees_a_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The framework exports traces and request data where a variable says so: there is none to be had."""
    from opentelemetry import trace

    seen: list[Any] = []

    class Spy:
        def __getattr__(self, name: str) -> Any:
            def told(*args: Any, **more: Any) -> Any:
                seen.append((name, args, more))
                return Spy()

            return told

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: Any) -> None:
            pass

    monkeypatch.setattr(trace, "get_tracer_provider", Spy)
    for name in ("FASTAPI_OTEL_AUTO_CONFIGURE", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.setenv(name, "true" if "AUTO" in name else "http://127.0.0.1:9")
    app = create_app(token=TOKEN, folder=tmp_path)
    inside: list[Any] = []

    @app.middleware("http")
    async def watching(request: Any, then: Any) -> Any:
        inside.append((str(request.url), list(request.headers.items())))
        return await then(request)

    client = TestClient(app, base_url="http://127.0.0.1")
    word = app.state.launch()
    client.get("/")
    client.post("/api/key", headers={"authorization": f"Launch {word}"})
    client.get("/api/about", headers={"Authorization": f"Bearer {TOKEN}"})
    assert len(inside) == 2
    assert seen == []
    assert all(secret not in repr(inside) for secret in (TOKEN, word, "uthorization"))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.", "", "[::1", "127.0.0.2"]
)
def test_a_wrong_host_is_refused(studio: Any, host: str) -> None:
    assert studio.client.get("/api/about", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        "http://127.0.0.1:81",
        "http://localhost",
        "http://127.0.0.1.evil.example",
    ],
)
def test_a_foreign_origin_is_refused_though_the_key_is_there(studio: Any, origin: str) -> None:
    before = studio.ledger_bytes
    for path in ("/api/run/test", "/api/look"):
        assert studio.client.post(path, json={}, headers={"origin": origin}).status_code == 403
    assert studio.client.get("/api/about", headers={"origin": origin}).status_code == 403
    assert studio.ledger_bytes == before


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_fetch_from_another_site_is_refused_even_without_an_origin(studio: Any, site: str) -> None:
    assert studio.client.get("/api/about", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize(
    "path", [*PATHS, "/nothing", "/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/studio.html"]
)
def test_every_answer_carries_the_headers(studio: Any, stranger: TestClient, path: str) -> None:
    for client in (studio.client, stranger):
        answer = client.get(path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_nothing_but_the_listed_files_is_served(studio: Any) -> None:
    for name in ("studio.html", "..%2fapp.py", "%2e%2e/app.py", "app.py", "__init__.py", "%00", "a" * 5000):
        assert studio.client.get(f"/static/{name}").status_code == 404


def test_a_large_body_is_refused_announced_or_not(studio: Any) -> None:
    large = b"[" + b" " * MAX_BODY + b"]"
    assert studio.client.post("/api/look", content=large).status_code == 413
    assert studio.client.post("/api/look", content=iter([large[:1000]] * 2000)).status_code == 413
    assert studio.client.post("/api/look", content=b"{}", headers={"content-length": "1e3"}).status_code in {413, 422}


def test_a_large_upload_is_refused_announced_or_not(studio: Any) -> None:
    piece = b"1\n" * 5000
    for content in (piece * 30, iter([piece] * 30)):
        answer = studio.client.post("/api/upload", params={"name": "a.csv"}, content=content)
        assert answer.status_code == 413
        assert "error" in answer.json()


def test_a_websocket_is_refused() -> None:
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    guard = Guard(None, token=Token(TOKEN), hosts=["127.0.0.1"], max_upload=1)
    asyncio.run(guard({"type": "websocket"}, receive, send))
    assert sent == ["websocket.close"]


def test_an_exception_that_nobody_caught_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("the record 4711 is odd")

    guard = Guard(broken, token=Token(TOKEN), hosts=["testserver"], max_upload=1)
    answer = TestClient(guard).get("/api/x", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 500
    assert "4711" not in answer.text + caplog.text


def test_a_second_host_or_origin_header_matches_nothing(studio: Any) -> None:
    twice = [("origin", "http://127.0.0.1"), ("origin", "http://evil.example")]
    assert studio.client.get("/api/about", headers=twice).status_code == 403


def test_tokens_are_fresh_and_never_shown() -> None:
    one, other = Token(), Token()
    assert one.text != other.text
    assert len(one.text) >= 40
    word = one.launch()
    assert one.text not in repr(one)
    assert word not in repr(one)
    assert word != one.text
