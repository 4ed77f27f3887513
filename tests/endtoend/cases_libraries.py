"""Libraries of templates from Debian's packages, compiled into programs, on managed memory."""
import os

from kit import Kit, SMALL, Skipped


def _same(kit: Kit, source: str, header: str, *parts: str) -> None:
    if not os.path.exists(header):
        raise Skipped(f"{header} is missing (./dev setup installs it)")
    for part in parts:
        kit.same_as_native(source, part, configs=(SMALL,), flags=("-w", f"-isystem{EIGEN}"))


EIGEN = "/usr/include/eigen3"


def eigen_solves_equations_beyond_the_cap(kit: Kit) -> None:
    _same(kit, "eigen.cc", f"{EIGEN}/Eigen/Dense", "dense", "sparse")


def boost_graph_walks_graphs_beyond_the_cap(kit: Kit) -> None:
    _same(kit, "boost_graph.cc", "/usr/include/boost/graph/adjacency_list.hpp", "vectors", "nodes", "order")


def hnswlib_builds_and_searches_an_index_beyond_the_cap(kit: Kit) -> None:
    _same(kit, "hnswlib.cc", "/usr/include/hnswlib/hnswlib.h", "index", "threads")
