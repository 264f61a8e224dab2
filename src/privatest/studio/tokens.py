"""The secrets of a studio: one key, which every question must carry, and launch words, each good for one page.

A word opens nothing by itself: it is traded for the key, once (``POST /api/key``). So an address that holds a word is
worth nothing after the page has opened, wherever the address has been written down. Drawn here, compared in
constant time; they are no noise and touch no release.
"""

from __future__ import annotations

import hmac
import secrets
import threading

from privatest import errors

__all__ = ["Token"]

SHORTEST = 16
MOST_WORDS = 16


class Token:
    """The key and its launch words; neither ever appears in a representation."""

    def __init__(self, text: str | None = None) -> None:
        if text is not None and (len(text) < SHORTEST or not text.isascii() or not text.isprintable() or " " in text):
            raise errors.InvalidInput(
                f"token must be at least {SHORTEST} printable ASCII characters without spaces. Left out, one is made."
            )
        self.text = secrets.token_urlsafe(32) if text is None else text
        self._words: list[str] = []
        self._lock = threading.Lock()

    def matches(self, given: str | None) -> bool:
        """Whether ``given`` is the key; takes the same time whatever it is."""
        return given is not None and _same(given, self.text)

    def launch(self) -> str:
        """A new launch word; the oldest of those that nobody used goes if there are too many."""
        with self._lock:
            self._words = [*self._words[1 - MOST_WORDS :], secrets.token_urlsafe(24)]
            return self._words[-1]

    def redeem(self, word: str) -> bool:
        """Whether the word is a launch word that nobody has used. It is used now."""
        with self._lock:
            found = [each for each in self._words if _same(word, each)]
            self._words = [each for each in self._words if each not in found]
            return bool(found)

    def waits(self, word: str) -> bool:
        """Whether the word can still be used."""
        with self._lock:
            return word in self._words

    def __repr__(self) -> str:
        return "Token(...)"


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
