"""Private goodness of fit: do the data come from P, or from some law at a distance from it? Arguments: proof.md."""

from privatest.fit.fit_test import FitRelease as FitRelease
from privatest.fit.fit_test import FitTest as FitTest
from privatest.fit.fit_test import design_fit as design_fit
from privatest.fit.fit_test import goodness_of_fit as goodness_of_fit
