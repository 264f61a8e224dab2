"""What no private test can beat: lower bounds, certificates, and the best test itself on finite domains."""

from privatest.bounds.lower_bound import advantage_bound as advantage_bound
from privatest.bounds.lower_bound import lower_bound as lower_bound
from privatest.bounds.optimum import HistogramTest as HistogramTest
from privatest.bounds.optimum import Optimum as Optimum
from privatest.bounds.optimum import optimum as optimum
