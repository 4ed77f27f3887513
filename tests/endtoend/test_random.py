"""Random operations on more data than the cap, whose outcome is that of a native run."""
import pytest
from kit import Config, Kit, SMALL, UNOPTIMISED, MEDIUM, WIDE

TINY_LARGE_BLOCKS = Config(("-O2",), "21M", "64K", "combining")
THREADED = Config(("-O2",), "12M", "4K", "dedicated")
QUIET = ("-Wno-deprecated-declarations",)  # libstdc++'s own, in std::stable_sort


def _seeds(kit: Kit, part: str, seeds: range, *configs: Config) -> None:
    for seed in seeds:
        kit.same_as_native("random.cc", part, seed, configs=configs, flags=QUIET)


def test_random_operations_end_as_natively(kit: Kit) -> None:
    _seeds(kit, "brief", range(1, 3), SMALL, TINY_LARGE_BLOCKS)


def test_random_operations_of_threads_end_as_natively(kit: Kit) -> None:
    _seeds(kit, "brief_threads", range(1, 3), UNOPTIMISED, THREADED)


@pytest.mark.slow
def test_long_random_operations_end_as_natively(kit: Kit) -> None:
    _seeds(kit, "longer", range(100, 103), SMALL, UNOPTIMISED, MEDIUM, TINY_LARGE_BLOCKS, WIDE)


@pytest.mark.slow
def test_long_random_operations_of_threads_end_as_natively(kit: Kit) -> None:
    _seeds(kit, "longer_threads", range(100, 102), SMALL, UNOPTIMISED, MEDIUM)
