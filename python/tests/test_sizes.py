import numpy as np
import pytest
from spillway._sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4G", 4 << 30),
        ("512M", 512 << 20),
        ("1.5 GiB", 3 << 29),
        ("64kb", 64 << 10),
        (" 7 ", 7),
        ("9b", 9),
        (".5K", 512),
        ("2T", 2 << 40),
        ("9007199254740993", 9007199254740993),
        (4096, 4096),
        (np.int64(5), 5),
        (0, 0),
    ],
)
def test_sizes_are_read_as_the_tool_reads_them(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize(
    "text", ["4GG", "", "G", "-1", "1e3", "4 G B", "4Gi", "0x10", "9e99", "1.2.3K", "99999999T", -1]
)
def test_what_is_no_size_is_refused_by_name(text):
    with pytest.raises(ValueError, match="memory is"):
        parse_size(text, "memory")


@pytest.mark.parametrize("thing", [1.5, None, [], b"4G"])
def test_other_types_are_refused(thing):
    with pytest.raises(TypeError, match="whole number of bytes"):
        parse_size(thing)


def test_sizes_are_written_with_units():
    assert [format_size(n) for n in (0, 1023, 1024, 3 << 29, 5 << 50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 GiB",
        "5120.0 TiB",
    ]
