"""P or Q: designed tests, how they are built and what they release."""

from privatest.decision.private_test import PrivateTest
from privatest.decision.run import Release

__all__ = ["PrivateTest", "Release"]
