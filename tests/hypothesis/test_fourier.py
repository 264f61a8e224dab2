"""Lengths of transforms, beside scipy's."""

from __future__ import annotations

import numpy as np
from scipy import fft

from privatest.hypothesis.fourier import fast_length


def test_lengths_are_scipys() -> None:
    sizes = [*range(1, 3000), *np.random.default_rng(1).integers(1, 1 << 28, 2000).tolist()]
    assert [fast_length(size) for size in sizes] == [fft.next_fast_len(size, real=True) for size in sizes]
