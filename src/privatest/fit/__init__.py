"""Private goodness of fit: do the data come from P, or from some law at a distance from it? Arguments: proof.md."""

from privatest.fit.fit_test import FitRelease, FitTest, design_fit, goodness_of_fit

__all__ = ["FitRelease", "FitTest", "design_fit", "goodness_of_fit"]
