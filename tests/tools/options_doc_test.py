"""docs/OPTIONS.md and the manual pages say what options.inc and the public headers say."""
import re

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


def without_comments(code):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", code, flags=re.DOTALL)


class Manual(tool_case.ToolCase):
    """Whatever a program can name has a page that names it."""

    def setUp(self):
        super().setUp()
        self.header = without_comments((self.source / "include/spillway/spillway.h").read_text())
        self.pages = {file.name: self.text_of(file) for file in (self.source / "docs/man").iterdir()}
        self.everything = "\n".join(self.pages.values())

    def text_of(self, file):
        """Of a page, or of the one that it stands for, without the fonts."""
        text = file.read_text()
        if text.startswith(".so "):
            text = (self.source / "docs/man" / text.split()[1].split("/")[1]).read_text()
        return re.sub(r"\\f[IBPR]", "", text).replace("\\-", "-")

    def test_every_function_has_a_page_that_describes_it(self):
        functions = re.findall(r"\b(spw_\w+)\(", self.header)
        self.assertGreater(len(functions), 20)
        for name in functions:
            page = self.pages.get(f"{name}.3", "")
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION"):
                part = re.search(rf"^\.SH {section}$(.*?)^\.SH", page, re.MULTILINE | re.DOTALL)
                self.assertTrue(part and re.search(rf"\b{name}\b", part[1]), f"{name}: {section} of its page")

    def test_every_structure_is_defined_with_all_its_members(self):
        structures = re.findall(r"^struct (\w+) \{(.*?)^\};", self.header, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(structures), 5)
        for name, members in structures:
            shown = re.findall(rf"^struct {name} \{{(.*?)^\}};", self.everything, re.MULTILINE | re.DOTALL)
            self.assertTrue(shown, f"no page defines struct {name}")
            member = re.compile(r"(\w+)(?:\)\([^;]*\))?;")
            self.assertEqual(member.findall(shown[0]), member.findall(members), f"struct {name}")

    def test_every_constant_is_named(self):
        names = set(re.findall(r"\b(SPW_[A-Z_]+)\b(?: =|  *[\d(])", self.header))
        self.assertGreater(len(names), 12)
        for name in names:
            self.assertRegex(self.everything, rf"\b{name}\b")

    def test_every_class_has_all_its_members_on_the_page(self):
        code = without_comments((self.source / "include/spillway/spillway.hpp").read_text())
        page = self.pages["spillway.hpp.3"]
        names = set(re.findall(r"^(?:class|inline \w+) (\w+)", code, re.MULTILINE))
        self.assertEqual(names, {"region", "allocator", "batch", "vector", "check"})
        for body in re.findall(r"^class \w+ \{(.*?)^\};", code, re.MULTILINE | re.DOTALL):
            public = body.partition(" public:")[2].partition(" private:")[0]
            names |= set(re.findall(r"^  [^\s:(][^(\n]*?[ *&](\w+)\(", public, re.MULTILINE))
        self.assertTrue({"unmap", "deallocate", "push_back", "sync"} <= names, names)
        for name in names:
            self.assertRegex(page, rf"\b{name}\b")

    def test_pages_refer_to_pages_that_are_there(self):
        for name, page in self.pages.items():
            for other, section in re.findall(r"\b(sp(?:w_|illway)[\w.-]*?) ?\((\d)\)", page):
                self.assertTrue(f"{other}.{section}" in self.pages, f"{name} refers to {other}({section})")
        for page in ("spillway-regions(7)", "spillway-tuning(7)"):
            self.assertIn(page, self.pages["spillway.1"].replace(" (", "("))


if __name__ == "__main__":
    tool_case.main()
