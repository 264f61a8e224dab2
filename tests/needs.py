"""What a test needs besides Python packages: skipped without it on a laptop, failed without it on CI."""

from __future__ import annotations

import os

import pytest

__all__ = ["missing", "required"]


def required() -> bool:
    """Whether nothing may be skipped."""
    return os.environ.get("PRIVATEST_REQUIRE_ALL") == "1" or os.environ.get("CI") == "true"


def missing(what: str) -> None:
    """Say how to get what is missing: `what` is a sentence such as "Java is not installed. Get it: ..."."""
    if required():
        pytest.fail(what)
    pytest.skip(what)
