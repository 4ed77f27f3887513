"""Libraries of templates from Debian's packages, compiled into programs, on managed memory."""
import os

import pytest
from kit import Config, Kit, SMALL

pytestmark = pytest.mark.engines("translated", "mapped")
EIGEN = "/usr/include/eigen3"
# What they keep at a time is half as much again as the frames of this.
CAP_12M = Config(("-O2",), "12M", "auto", "combining")


def _same(kit: Kit, source: str, header: str, *parts: str, config: Config) -> None:
    """Each part prints what it does natively, and did not fit."""
    if not os.path.exists(header):
        pytest.skip(f"{header} is missing (./dev setup installs it)")
    for part in parts:
        kit.report_file.unlink(missing_ok=True)
        kit.same_as_native(source, part, configs=(config,), flags=("-w", f"-isystem{EIGEN}"), env=kit.wants_report)
        kit.expect_spilled(part)


# Large headers take long to compile, and what the hints of the mapped engine miss only costs time: hnswlib stands for the three there.
@pytest.mark.slow_with("mapped")
def test_eigen_solves_equations_beyond_the_cap(kit: Kit) -> None:
    _same(kit, "eigen.cc", f"{EIGEN}/Eigen/Dense", "dense", "sparse", config=SMALL)


@pytest.mark.slow_with("mapped")
def test_boost_graph_walks_graphs_beyond_the_cap(kit: Kit) -> None:
    _same(kit, "boost_graph.cc", "/usr/include/boost/graph/adjacency_list.hpp", "vectors", "nodes", "order", config=CAP_12M)


def test_hnswlib_builds_and_searches_an_index_beyond_the_cap(kit: Kit) -> None:
    _same(kit, "hnswlib.cc", "/usr/include/hnswlib/hnswlib.h", "index", "threads", config=CAP_12M)
