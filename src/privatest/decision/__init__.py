"""P or Q: designed tests, how they are built and what they release."""

from privatest.decision.design import Release
from privatest.decision.private_test import PrivateTest

__all__ = ["PrivateTest", "Release"]
