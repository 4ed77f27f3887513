"""`spillway doctor`, `--help` and `--version`."""
import json
import resource
import subprocess

import tool_case

IDS = ["kernel", "processors", "memory", "managed_space", "address_limit", "overcommit", "store", "direct_io", "io_uring",
       "libaio", "huge_pages", "userfaultfd", "call_dispatch", "vectored_release", "page_map", "mglru"]


class Doctor(tool_case.ToolCase):
    def test_json_has_every_finding(self):
        document = json.loads(self.expect_done("doctor", "--store", self.folder, "--json").stdout)
        self.assertTrue(document["usable"])
        self.assertEqual([f["id"] for f in document["findings"]], IDS)
        for finding in document["findings"]:
            self.assertIn(finding["verdict"], ("ok", "note", "missing"))
            self.assertTrue(finding["found"], finding)
            self.assertEqual(bool(finding["costs"]), finding["verdict"] != "ok", finding)

    def test_text_ends_with_the_verdict(self):
        done = self.expect_done("doctor", "--store", self.folder)
        self.assertTrue(done.stdout.endswith("Spillway can run here.\n"))

    def test_a_missing_store_directory_is_essential(self):
        done = self.call("doctor", "--store", "/nowhere", "--json")
        self.assertEqual(done.returncode, 1)
        document = json.loads(done.stdout)
        self.assertFalse(document["usable"])
        missing = [f for f in document["findings"] if f["verdict"] == "missing"]
        self.assertEqual([f["id"] for f in missing], ["store"])
        self.assertTrue(missing[0]["mend"])

    def test_a_limit_on_address_space_is_essential(self):
        limit = 1 << 40
        done = subprocess.run([self.tool, "doctor", "--store", self.folder], capture_output=True, text=True,
                              env=tool_case.clean_environment(), timeout=30,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("missing  managed address space: Cannot allocate memory", done.stdout)
        self.assertIn("ulimit -v unlimited", done.stdout)

    def test_the_store_is_the_one_a_run_would_use(self):
        done = self.expect_done("doctor", env={"SPILLWAY_STORE": str(self.folder)})
        self.assertIn(f"store {self.folder}: ", done.stdout)

    def userfaultfd(self, pretended):
        done = self.expect_done("doctor", "--store", self.folder, "--json", env={"SPILLWAY_TEST_USERFAULT": pretended})
        return next(f for f in json.loads(done.stdout)["findings"] if f["id"] == "userfaultfd")

    def test_what_the_lack_of_userfaultfd_costs(self):
        forbidden = self.userfaultfd("none")
        self.assertEqual(forbidden["verdict"], "note")
        self.assertIn("page faults are served by access rights", forbidden["costs"])
        self.assertTrue(forbidden["mend"])
        restricted = self.userfaultfd("user")
        self.assertIn(restricted["found"], ("user mode only", forbidden["found"]))

    def test_bad_words(self):
        self.expect_refused("--jsn: unknown option; did you mean --json?", "doctor", "--jsn")
        self.expect_refused("more: unknown option or argument; spillway doctor --help", "doctor", "more")
        self.expect_refused("SPILLWAY_MEMORY=x: accepted: ", "doctor", env={"SPILLWAY_MEMORY": "x"})


class Help(tool_case.ToolCase):
    def test_help_shows_the_commands_and_an_example(self):
        text = self.expect_done("--help").stdout
        for part in ("run", "doctor", "stats", "options", "spillway-clang++ -O3", "spillway run --memory 4G"):
            self.assertIn(part, text)

    def options_of(self, *page):
        return [line.split()[0] for line in self.expect_done("options", *page).stdout.splitlines() if line.startswith("--")]

    def test_help_of_run_fits_a_screen_and_shows_what_one_has_to_know(self):
        text = self.expect_done("run", "--help").stdout
        self.assertLessEqual(len(text.splitlines()), 24)
        essential = self.options_of("essential")
        self.assertLessEqual({"--memory", "--store", "--map-files", "--buffer", "--stats"}, set(essential))
        for option in self.options_of():
            self.assertEqual(f"  {option} " in text, option in essential, option)
        for page in ("tuning", "measuring"):
            self.assertIn(f"spillway options {page}", text)

    def test_every_option_is_on_one_page(self):
        pages = [self.options_of(page) for page in ("essential", "tuning", "measuring")]
        self.assertTrue(all(len(page) > 3 for page in pages), pages)
        self.assertEqual(sum(pages, []), self.options_of())
        self.expect_refused("PAGE: others not in", "options", "others")

    def test_version_names_the_abi(self):
        self.assertRegex(self.expect_done("--version").stdout, r"^spillway \d+\.\d+\.\d+ \(ABI \d+\)\n$")


if __name__ == "__main__":
    tool_case.main()
