"""`spillway stats FILE`."""
import json

import tool_case

REPORT = {
    "schema": 1,
    "facts": {"program": "./sort", "process": 7, "engine": "translated", "store": "file:/mnt/nvme", "block_bytes": 4096,
              "memory_cap_bytes": 1 << 30, "frames": 1000, "frames_peak": 900, "metadata_bytes": 4096,
              "resident_peak_bytes": 1 << 30, "wall_seconds": 2.5},
    "levels": {},
    "foreign": [{"library": "/usr/lib/libz.so", "function": "crc32", "faults": 700}],
    "write_amplification": None,
    "counters": {"private_hits": 3, "private_misses": 1, "store_write_bytes": 8192, "bytes_dirtied": 4096},
}


class Stats(tool_case.ToolCase):
    def written(self, report):
        file = self.folder / "run.json"
        file.write_text(report if isinstance(report, str) else json.dumps(report))
        return file

    def test_a_report_is_shown(self):
        text = self.expect_done("stats", self.written(REPORT)).stdout
        for part in ("./sort (process 7) ran 2.500 s", "cap 1.0 GiB", "file:/mnt/nvme", "75.00 %",
                     "write amplification 2.000", "700 faults in crc32 of /usr/lib/libz.so"):
            self.assertIn(part, text)

    def test_what_older_versions_did_not_write_is_not_made_up(self):
        self.assertNotIn("system calls", self.expect_done("stats", self.written(REPORT)).stdout)
        newer = dict(REPORT, facts=REPORT["facts"] | {"system_call_faults": "served"})
        self.assertIn("faults of system calls: served\n", self.expect_done("stats", self.written(newer)).stdout)

    def test_what_is_no_report_is_refused(self):
        for text in ("", "hello", "{}", "[1]", '{"schema": 1}', '{"schema": "1", "facts": {}}'):
            file = self.written(text)
            self.expect_refused(f"{file}: it is no report of Spillway", "stats", file)

    def test_numbers_that_no_report_has_are_refused(self):
        for number in (-1, 1e300, 2.5, "1", None):
            file = self.written(dict(REPORT, facts=REPORT["facts"] | {"frames": number}))
            self.expect_refused(f"{file}: it is no report of Spillway", "stats", file)
        file = self.written(dict(REPORT, counters={"private_hits": -3}))
        self.expect_refused(f"{file}: it is no report of Spillway", "stats", file)

    def test_words_that_a_terminal_obeys_are_written_out(self):
        hostile = dict(REPORT, facts=REPORT["facts"] | {"program": "\x1b]0;sort\x07", "engine": "a\nb"},
                       foreign=[{"library": "\u202e", "function": "\x7f", "faults": 7}])
        text = self.expect_done("stats", self.written(hostile)).stdout
        for part in ("\\x1b]0;sort\\x07", "a\\x0ab", "\\u202e", "\\x7f"):
            self.assertIn(part, text)
        self.assertFalse(set(text) & set("\x1b\x07\x7f\u202e"), text)

    def test_another_schema_is_refused(self):
        file = self.written(dict(REPORT, schema=2))
        self.expect_refused(f"{file}: a report of schema 2, and this version reads 1", "stats", file)

    def test_missing_files(self):
        self.expect_refused("/nowhere/run.json: No such file or directory", "stats", "/nowhere/run.json")
        self.expect_refused("FILE is required; spillway stats --help", "stats")


if __name__ == "__main__":
    tool_case.main()
