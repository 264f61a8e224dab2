"""What no private test can beat: lower bounds, certificates, and the best test itself on finite domains."""

from privatest.bounds.lower_bound import advantage_bound, lower_bound
from privatest.bounds.optimum import HistogramTest, Optimum, optimum

__all__ = ["HistogramTest", "Optimum", "advantage_bound", "lower_bound", "optimum"]
