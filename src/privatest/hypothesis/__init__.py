"""P or Q: designed tests, their exact laws and what they release."""

from privatest.hypothesis.curves import Curves
from privatest.hypothesis.private_test import PrivateTest
from privatest.hypothesis.release import Release
from privatest.hypothesis.total import Bounded, NoisyTotal

__all__ = ["Bounded", "Curves", "NoisyTotal", "PrivateTest", "Release"]
