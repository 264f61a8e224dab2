"""Private goodness of fit: do the data come from P, or from some law at a distance from it? Arguments: proof.md."""

from privatest.fit.design import fit_design, fit_sample_size, goodness_of_fit
from privatest.fit.designed import FitTest
from privatest.fit.release import FitRelease

__all__ = ["FitRelease", "FitTest", "fit_design", "fit_sample_size", "goodness_of_fit"]
