"""What docs/site/record.py runs: it knows nothing of Spillway."""

import numpy

numbers = numpy.random.default_rng(1).random(2**27)
numbers.sort()
print(f"{numbers.nbytes >> 20} MiB sorted, median {numbers[2**26]:.6f}")
