"""R-MAT graphs of the benchmarks, each built once a run."""
import pathlib

from . import machine

EDGE_FACTOR = 16


def scale_of(full: int, divisor: int) -> int:
    """log2 of the nodes when the data shall be 1 / divisor of what `full` makes."""
    return full - (divisor - 1).bit_length()


def bytes_of(scale: int) -> int:
    """Rows and their offsets, and what PageRank adds."""
    return (EDGE_FACTOR * 8 + 8 + 8) << scale


def bytes_while_built(scale: int) -> int:
    return (EDGE_FACTOR * 24 + 32) << scale


def file_of(programs, scale: int) -> pathlib.Path:
    """Nothing of it is in the page cache."""
    file = programs.store / f"graph-{scale}"
    if not file.exists():
        made = programs.native("graph", "--scale", scale, "--edge-factor", EDGE_FACTOR, "--save", file, "--run", "bfs",
                               "--verify", "no", "--progress", "off")
        if not made.ok:
            raise RuntimeError(f"making the graph: {made.why_failed()}")
    machine.drop_page_cache(file)
    return file
