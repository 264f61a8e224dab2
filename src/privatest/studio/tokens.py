"""The word that opens the page: made here, compared in constant time. It is no noise and touches no release."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from privatest import errors

__all__ = ["Token"]

SHORTEST = 16


class Token:
    """A secret that never appears in a representation."""

    def __init__(self, text: str | None = None) -> None:
        if text is not None and (len(text) < SHORTEST or not text.isascii() or not text.isprintable() or " " in text):
            raise errors.InvalidInput(
                f"token must be at least {SHORTEST} printable ASCII characters without spaces. Left out, one is made."
            )
        self.text = secrets.token_urlsafe(32) if text is None else text
        # Cookies are shared by all ports of a host; the name keeps two studios apart and tells nothing of the secret.
        self.cookie = "privatest_" + hashlib.sha256(self.text.encode()).hexdigest()[:12]

    def matches(self, given: str | None) -> bool:
        """Whether ``given`` is the secret; takes the same time whatever it is."""
        return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self.text.encode())

    def __repr__(self) -> str:
        return "Token(...)"
