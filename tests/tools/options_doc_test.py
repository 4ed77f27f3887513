"""docs/OPTIONS.md and the manual page say what options.inc says."""
import tool_case


class OptionsDoc(tool_case.ToolCase):
    def test_the_page_is_current(self):
        made = self.expect_done("options", "--markdown").stdout
        self.assertEqual((self.source / "docs/OPTIONS.md").read_text(), made, "run scripts/update_options_doc.sh")

    def test_the_manual_page_names_every_option(self):
        page = (self.source / "docs/man/spillway.1").read_text().replace("\\-", "-")
        for line in self.expect_done("options").stdout.splitlines():
            if line.startswith("--"):
                self.assertRegex(page, rf"(?m)^\.BI {line.split()[0]} ")


if __name__ == "__main__":
    tool_case.main()
