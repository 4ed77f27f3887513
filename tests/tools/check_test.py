"""spillway check says what is wrong with a file that is no persistent region. (Whole ones are checked by tests/endtoend/test_durable.py.)"""
import tool_case


class Check(tool_case.ToolCase):
    def test_files_that_are_no_regions(self):
        place = self.folder
        self.expect_refused("cannot open ", "check", str(place / "none"))
        (place / "short").write_bytes(b"x")
        self.expect_refused(f"{place / 'short'} is not a persistent region of this version: it is too short", "check", str(place / "short"))
        (place / "other").write_bytes(b"x" * 10_000)
        self.expect_refused(f"{place / 'other'} is not a persistent region of this version: it does not begin as one", "check", str(place / "other"))
        self.assertEqual((place / "other").read_bytes(), b"x" * 10_000)

    def test_a_file_has_to_be_named(self):
        self.expect_refused("FILE is required", "check")


if __name__ == "__main__":
    tool_case.main()
