"""configure, limit, statistics: in processes of their own."""

import pytest
import spillway


def test_statistics_are_zero_before_the_first_use_and_then_count(good):
    said = good(
        """
        import spillway
        print(spillway.statistics() == spillway.Statistics(), spillway.is_preloaded())
        spillway.configure(memory="32M", block="16K")
        array = spillway.empty(1 << 20, "u1")
        array[:] = 1
        now = spillway.statistics()
        print(now.memory_limit_bytes == 32 << 20, now.block_bytes, now.managed_bytes, now)
        """
    )
    lines = said.splitlines()
    assert lines[0] == "True False"
    assert lines[1].startswith("True 16384 1048576 0 misses, read 0 B, wrote 0 B, waited 0.00 s; 1.0 MiB of 1.0 MiB in")


def test_a_difference_counts_what_came_in_between():
    before = spillway.Statistics(misses=5, managed_bytes=10, waited_ns=1)
    after = spillway.Statistics(misses=7, managed_bytes=4, waited_ns=4)
    assert after - before == spillway.Statistics(misses=2, managed_bytes=4, waited_ns=3)
    with pytest.raises(TypeError):
        after - 1
    with pytest.raises(AttributeError):
        after.misses = 3


WRONG = [
    ({"memory": "4GG"}, "ValueError", "memory is a number with a unit"),
    ({"memory": -5}, "ValueError", "memory is from 0"),
    ({"memory": 1.5}, "TypeError", "memory is a whole number"),
    ({"memory": "1M"}, "SpillwayError", "accepted: a size from 8.0 MiB"),
    ({"store": "/not/there"}, "SpillwayError", "the store directory /not/there: it does not exist"),
    ({"store": "/dev/null"}, "SpillwayError", "it is not a directory"),
    ({"store": "/proc"}, "SpillwayError", "no file can be made there"),
    ({"store": ""}, "ValueError", "not an empty text"),
    ({"store": "sparse:"}, "SpillwayError", "sparse:"),
    ({"blok": "4K"}, "SpillwayError", "is not an option"),
    ({"block": "5000"}, "SpillwayError", "power of two"),
    ({"policy": "fastest"}, "SpillwayError", "policy=fastest"),
    ({"engine": "translated"}, "SpillwayError", "engine"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG)
def test_wrong_options_are_exceptions_and_the_process_goes_on(good, options, kind, text):
    said = good(
        f"""
        import spillway
        try: spillway.configure(**{options!r})
        except Exception as error: print(type(error).__name__, error)
        spillway.configure(memory="32M")
        print(spillway.full(3, 7).tolist())
        """
    )
    assert said.startswith(kind + " ") and text in said and said.endswith("\n[7, 7, 7]\n") and said.count("\n") == 2


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("SPILLWAY_MEMORY", "4GG", "4GG"),
        ("SPILLWAY_STORE", "/not/there", "it does not exist"),
        ("SPILLWAY_BLOCK", "5000", "power of two"),
    ],
)
def test_so_are_wrong_options_of_the_environment(run, name, value, text):
    done = run("import spillway; spillway.empty(3)", **{name: value})
    assert done.returncode == 1 and "SpillwayError" in done.stderr and text in done.stderr.splitlines()[-1]


def test_options_of_the_environment_hold_and_configure_is_over_them(good):
    code = """
    import spillway, sys
    if sys.argv[1:]: spillway.configure(memory=sys.argv[1])
    spillway.empty(3)
    print(spillway.statistics().memory_limit_bytes >> 20)
    """
    assert good(code, SPILLWAY_MEMORY="48M") == "48\n"
    assert good(code, "40M", SPILLWAY_MEMORY="48M") == "40\n"


def test_what_is_in_use_cannot_be_configured(good):
    said = good(
        """
        import spillway
        spillway.configure(memory="32M")
        spillway.configure(memory="48M")
        spillway.empty(3)
        try: spillway.configure(memory="64M")
        except spillway.SpillwayError as error: print(error.errno, error.strerror)
        print(spillway.statistics().memory_limit_bytes >> 20)
        """
    )
    assert said == "16 options are set before managed memory is used\n48\n"


def test_what_spills_goes_to_the_store(good, tmp_path):
    said = good(
        """
        import os, sys, spillway
        spillway.configure(memory="32M", store=sys.argv[1])
        array = spillway.ones(16 << 20)
        paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        links = [os.readlink(path) for path in paths if os.path.islink(path)]
        print(any(link.startswith(sys.argv[1] + "/") for link in links), os.listdir(sys.argv[1]))
        """,
        str(tmp_path),
    )
    assert said == "True []\n"


def test_only_a_run_ends_with_a_line_about_it(run):
    code = """
    import spillway, sys
    if sys.argv[1:]: spillway.configure(quiet=sys.argv[1])
    if not spillway.is_preloaded(): spillway.configure(memory="32M")
    array = spillway.ones(16 << 20)
    """
    assert run(code).stderr == ""
    assert "spilled" in run(code, "off").stderr
    assert "spilled" in run(code, preloaded=True).stderr


def test_the_cap_holds(good):
    said = good(
        """
        import spillway, numpy as np
        spillway.configure(memory="96M")
        array = spillway.empty(32 << 20)
        for begin in range(0, array.size, 1 << 20): array[begin : begin + (1 << 20)] = begin
        status = open("/proc/self/status")
        held = sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon", "RssShmem")))
        print(held // 1024)
        """
    )
    assert int(said) <= 96 + 32


def test_limit_without_the_preload_says_how_to_start(good):
    said = good(
        """
        import spillway
        spillway.configure(memory="32M")
        for use in ("call", "with"):
            try:
                if use == "call": spillway.limit("16M")
                else:
                    with spillway.limit("16M"): print("never")
            except spillway.NotPreloadedError as error:
                print(isinstance(error, RuntimeError), error)
        """
    )
    assert said.count("True ") == 2 and said.count("python -m spillway run --memory 4G script.py") == 2


def test_limit_of_a_run(good, tmp_path):
    said = good(
        """
        import spillway, sys, os
        def cap(): return spillway.statistics().memory_limit_bytes >> 20
        with spillway.limit("48M") as limit:
            print(cap(), isinstance(limit, spillway.Limit))
            with spillway.limit(32 << 20, store=os.environ["SPILLWAY_STORE"] + "/."): print(cap())
            print(cap())
        print(cap())
        try:
            with spillway.limit("40M"): 1 / 0
        except ZeroDivisionError: print(cap())
        for memory, store in (("1G", None), ("1K", None), ("40M", "/"), ("40M", "/no")):
            try: spillway.limit(memory, store=store)
            except spillway.SpillwayError as error: print(error.strerror)
        print(cap())
        spillway.limit("40M")
        print(cap())
        """,
        preloaded=True,
        SPILLWAY_STORE=str(tmp_path),
    )
    lines = said.splitlines()
    assert lines[:5] == ["48 True", "32", "48", "64", "64"]
    assert "above that of the start, 64.0 MiB" in lines[5] and "cannot be below" in lines[6]
    assert f"spills to {tmp_path}" in lines[7] and "--store /" in lines[7]
    assert "the store directory /no: it does not exist" in lines[8]
    assert lines[9:] == ["64", "40"]


def test_a_run_manages_all_arrays(good):
    said = good(
        """
        import numpy as np, spillway
        array = np.ones(16 << 20)
        own = spillway.ones(1000)
        with spillway.numpy_allocator("64K"): other = array[: 1 << 20] * 2
        print(spillway.is_preloaded(), spillway.is_managed(array), spillway.is_managed(own), spillway.is_managed(other))
        with spillway.pin(array[:1000]): print(spillway.statistics().pinned_bytes > 0)
        try: spillway.configure(memory="1G")
        except spillway.SpillwayError as error: print(error.errno, "--memory=1073741824" in str(error))
        print(array.sum() == array.size, other.sum())
        """,
        preloaded=True,
    )
    assert said == "True True True True\nTrue\n16 True\nTrue 2097152.0\n"


def test_a_library_that_cannot_be_loaded_is_an_exception_with_a_way_out(run):
    """glibc's reserve for thread-local variables may be taken by others that were loaded before."""
    code = "import spillway\ntry: spillway.empty(3)\nexcept spillway.SpillwayError as error: print(error)"
    said = run(code, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=0:glibc.rtld.nns=1").stdout
    assert not said or ("static TLS" in said and "python -m spillway run" in said and said.count("\n") == 1)
    assert run(code, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=4096").stdout == ""


def test_import_is_light(good):
    assert good("import sys, spillway; print('numpy' in sys.modules)") == "False\n"
    assert good("import spillway; print(all(hasattr(spillway, name) for name in dir(spillway)))") == "True\n"
    with pytest.raises(AttributeError, match="no attribute 'emtpy'"):
        spillway.emtpy


def test_without_numpy_its_parts_say_so(run):
    done = run(
        """
        import sys
        sys.modules["numpy"] = None
        import spillway
        spillway.configure(memory="32M")
        print(spillway.version(), spillway.statistics())
        spillway.empty
        """
    )
    assert done.stdout.startswith("0.") and "spillway.empty needs numpy: pip install numpy" in done.stderr
