"""The documentation as a site (docs/site), as far as it goes without PyPI: links, reference, pages, drawings."""

import pathlib
import re
import subprocess
import sys
import unittest.mock

import tool_case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/site"))
sys.dont_write_bytecode = True
import build  # noqa: E402
import check_site  # noqa: E402
import headers  # noqa: E402
import links  # noqa: E402
import manual  # noqa: E402
import pages  # noqa: E402
import pictures  # noqa: E402
import stage  # noqa: E402
import terminal  # noqa: E402

README_LINES_MAX = 66  # a screen

HEADER = """/* Fruit. Errors: none.
 *
 * What will hurt you
 *   - fr_eat() is for good, and
 *     spw_eat() more so. */
#ifndef FRUIT_H
#define FRUIT_H

#include <stddef.h>

/* Bytes at *fruit. -EINVAL
 * where there are none:
 *   first     one thing
 *   second    another */
int spw_eat(const char* fruit);
int spw_taste(const char* fruit);

/* ---- Trees. They grow. ---- */

struct spw_tree {
  size_t size; /* in metres */
};
#endif
"""


def md(text):
    """Markdown from a text that has § for the sign of headings: tidy.py takes what comes after that for a comment."""
    return text.replace("§", "\N{NUMBER SIGN}")


class Repository(tool_case.ToolCase):
    """A small one of git's in a folder."""

    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", self.folder], check=True)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(md(text))

    def broken(self):
        return links.broken_links(self.folder, links.tracked(self.folder))


class Links(Repository):
    def test_every_link_of_the_repository_leads_somewhere(self):
        self.assertEqual(links.broken_links(self.source, links.tracked(self.source)), [])

    def test_a_link_to_nowhere_is_found_with_its_line(self):
        self.write(
            "README.md", "§ One\n\n[a](docs/b.md) [c](docs/b.md§two) [d](docs) [e](https://a.example) [f](§one)\n"
        )
        self.write("docs/b.md", "§ Two\n")
        self.assertEqual(self.broken(), [])
        self.write("docs/b.md", "§ Three\n\n![p](p.svg)\n[`code` in text](../../outside.md)\n")
        self.assertEqual(
            self.broken(),
            [
                md("README.md:3: docs/b.md§two: docs/b.md has no such heading"),
                "docs/b.md:3: p.svg: no such file in the repository",
                "docs/b.md:4: ../../outside.md: no such file in the repository",
            ],
        )

    def test_what_stands_in_code_is_no_link_and_no_heading(self):
        self.write("README.md", "`[a](b.md)` ``x ` [a](b.md)``\n\n```\n[a](b.md)\n§ Not one\n```\n[c](§not-one)\n")
        self.assertEqual(self.broken(), [md("README.md:7: §not-one: README.md has no such heading")])

    def test_headings_have_the_anchors_of_code_hosts(self):
        text = "§ A `b.h`, and [c](d.md)!\n§§ Same\n§§ Same\n§§ With _under_score {§its-own}\n"
        self.assertEqual(links.anchors(md(text)), {"a-bh-and-c", "same", "same-1", "its-own"})


class Reference(tool_case.ToolCase):
    def test_a_page_says_what_a_header_says(self):
        page = headers.page("include/fruit/fruit.h", HEADER)
        for part in (
            "§ fruit.h\n",
            "§include <fruit/fruit.h>",
            "**What will hurt you**",
            "- fr_eat() is for good, and\n  [`spw_eat()`](§spw_eat) more so.",
            "§§ `spw_eat`, `spw_taste` {§spw_eat}",
            "Bytes at \\*fruit. `-EINVAL`{.unbroken}",
            "```text\n  first     one thing\n",
            "§§ Trees\n\nThey grow.",
            "§§§ `spw_tree` {§spw_tree}",
            "size_t size; /* in metres */",
        ):
            self.assertIn(md(part), page)
        self.assertNotIn("FRUIT_H", page)

    def test_every_function_of_every_header_has_its_place(self):
        for file in sorted((self.source / "include/spillway").iterdir()):
            text = file.read_text()
            page = headers.page(f"include/spillway/{file.name}", text)
            names = set(
                re.findall(r"^[\w* ]*?\b(spw_\w+)\(", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), re.MULTILINE)
            )
            for name in names:
                self.assertRegex(page, rf"(?m)^[^\n`]*\b{name}\(", file.name)
            if file.suffix == ".h":
                self.assertGreater(page.count(md("\n§§ ")) + page.count(md("\n§§§ ")), 4, file.name)
            self.assertEqual(page.count("```") % 2, 0, file.name)
            places = set(re.findall(md(r"\{§([\w.-]+)\}"), page))
            self.assertLessEqual(set(re.findall(md(r"\]\(§([\w.-]+)\)"), page)), places, file.name)

    def test_a_class_is_shown_without_its_private_part_and_bodies(self):
        page = headers.page(
            "include/spillway/spillway.hpp", (self.source / "include/spillway/spillway.hpp").read_text()
        )
        self.assertIn("void push_back(const T& value);", page)
        self.assertIn("explicit region(std::size_t length, std::size_t block_bytes = 0);", page)
        for hidden in ("private:", "header_bytes", "std::swap", "return"):
            self.assertNotIn(hidden, page.replace("returned", ""))


class Pages(Repository):
    def staged(self):
        to = self.folder / "build"
        made = stage.Stage(
            self.folder, to, links.tracked(self.folder), {"spw_eat.3": "spw_eat.3", "spw_taste.3": "spw_eat.3"}
        )
        made.run()
        return {file.relative_to(to).as_posix(): file.read_text() for file in to.rglob("*.md")}, made

    def test_links_lead_to_pages_and_sources(self):
        self.write(
            "README.md",
            "§ R\n[g](docs/GLOSSARY.md§word), `src/cache/cache.h`, `cache.h`, `other.h`, spw_taste(3)\n\n"
            "```\nspw_taste(3)\n```\n",
        )
        self.write("docs/GLOSSARY.md", "§ G\n[back](../README.md) [dir](../src/cache) [lib](../src/lib)\n")
        self.write("src/cache/README.md", "§ C\n`cache.h`\n")
        self.write("src/cache/cache.h", "// c\n")
        self.write("src/lib/x.cc", "")
        made, staged = self.staged()
        self.assertIn(
            md(
                "[g](glossary.md§word), [`src/cache/cache.h`](source/src/cache/cache.h.html), "
                "[`cache.h`](source/src/cache/cache.h.html), `other.h`, "
                "[spw_taste(3)](reference/man/spw_eat.3.md)"
            ),
            made["index.md"],
        )
        self.assertIn("```\nspw_taste(3)\n```", made["index.md"])
        self.assertIn(
            "[back](index.md) [dir](folders/src/cache.md) [lib](source/src/lib/index.html)", made["glossary.md"]
        )
        self.assertIn("[`cache.h`](../../source/src/cache/cache.h.html)", made["folders/src/cache.md"])
        self.assertEqual(staged.sources, {"src/cache/cache.h", "src/lib"})

    def test_a_file_is_taken_in_when_it_is_there(self):
        self.write("docs/guide/python.md", "§ Python\n\n<!-- include: python/README.md -->\n")
        self.write("README.md", "§ R\n")
        self.assertEqual(self.staged()[0]["python.md"], md("§ Python\n\n"))
        self.write("python/README.md", "§ The module\n\n```\n§ a comment\n```\n§§ More\n[r](../README.md)\n")
        self.write("README.md", "§ R\n[p](python/README.md)\n")
        made, _ = self.staged()
        self.assertEqual(
            made["python.md"],
            md("§ Python\n\n§§ The module\n\n```\n§ a comment\n```\n§§§ More\n[r](index.md)\n"),
        )
        self.assertIn("[p](python.md)", made["index.md"])
        self.assertNotIn("folders/python.md", made)

    def test_a_drawing_stands_in_its_page_and_follows_its_colours(self):
        self.write("docs/guide/start.md", "§ S\n![What it shows](pictures/x.svg) ![Chart](pictures/y.svg)\n")
        self.write("docs/guide/pictures/x.svg", '<svg class="spw-picture"><style>.a { b: c }</style><rect/></svg>\n')
        self.write("docs/guide/pictures/y.svg", "<svg></svg>\n")
        self.write("README.md", "")
        made, _ = self.staged()
        self.assertIn(
            '<figure class="spw-figure">\n<svg class="spw-picture"><rect/></svg>\n</figure>', made["start.md"]
        )
        self.assertIn("![Chart](pictures/y.svg)", made["start.md"])
        self.assertTrue((self.folder / "build/pictures/y.svg").is_file())

    def test_a_link_to_nowhere_ends_it(self):
        self.write("README.md", "[x](missing.h)")
        with self.assertRaisesRegex(stage.Broken, r"README\.md: a link to missing\.h: there is no such file"):
            self.staged()

    def test_every_document_has_a_page(self):
        files = links.tracked(self.source)
        shown = {file for _, group in pages.chosen(files) for _, file in group} | set(pages.INCLUDED)
        documents = [name for name in files if name.endswith(".md")]
        self.assertGreater(len(documents), 40)
        self.assertEqual([name for name in documents if name not in shown], [])
        paths = [pages.site_path(file) for _, group in pages.chosen(files) for _, file in group]
        self.assertEqual(len(paths), len(set(paths)))

    def test_the_readme_is_a_screen(self):
        lines = (self.source / "README.md").read_text().splitlines()
        self.assertLessEqual(len(lines), README_LINES_MAX, "what is more belongs to docs/guide")

    def test_manual_pages_that_stand_for_others_are_these(self):
        known = manual.pages(self.source / "docs/man")
        self.assertEqual((known["spw_unmap.3"], known["spw_map.3"]), ("spw_map.3", "spw_map.3"))
        self.assertIn(
            "- [spw_map(3)](man/spw_map.3.md): regions of memory on a store (`spw_map`, ",
            manual.index(self.source / "docs/man", known),
        )


class Drawings(tool_case.ToolCase):
    def test_drawings_are_what_their_program_makes(self):
        self.assertEqual(pictures.stale(), [], "run docs/site/pictures.py")

    def test_the_picture_of_the_readme_shows_what_was_recorded(self):
        folder = self.source / "docs/guide/pictures"
        recorded = (folder / "demo.txt").read_text().splitlines()
        import record

        self.assertEqual(
            (folder / "demo.svg").read_text(), terminal.svg(recorded, record.TITLE), "run docs/site/record.py --draw"
        )
        with self.assertRaisesRegex(ValueError, "a line of 121 characters; 120 at most"):
            terminal.svg(["x" * 121], "")


class Site(tool_case.ToolCase):
    def test_what_is_wrong_with_a_site_is_found(self):
        (self.folder / "a.html").write_text(
            md(
                '<h1 id="top">A</h1><a href="b.html§there">1</a><a href="b.html§gone">2</a><a href="c.html">3</a>\n'
                '<a href="https://example.org">4</a><script src="//cdn.example.org/x.js"></script>'
            )
        )
        (self.folder / "b.html").write_text(
            md('<p id="there"></p><a href="a.html">1</a><a href="§gone">2</a><img src="data:image/png;base64,AA==">')
        )
        (self.folder / "x.css").write_text("@import url(https://fonts.example.org);")
        wrong, count = check_site.problems(self.folder)
        self.assertEqual(
            wrong,
            [
                md(line)
                for line in (
                    "a.html:2: loads //cdn.example.org/x.js",
                    "a.html:1: b.html§gone: there is no such place in b.html",
                    "a.html:1: c.html: there is no such file in the site",
                    "b.html:1: §gone: there is no such place in b.html",
                    "x.css: loads from //fonts.",
                )
            ],
        )
        self.assertEqual(count, 8)

    def test_without_pypi_it_ends_with_one_line(self):
        def make(environment, **_):
            (environment / "bin").mkdir(parents=True)
            python = environment / "bin/python"
            python.write_text(
                md("§!/bin/sh\necho 'WARNING: trying again' >&2\necho 'ERROR: no route to the index' >&2\nexit 1\n")
            )
            python.chmod(0o755)

        with (
            unittest.mock.patch.object(build, "ENVIRONMENT", self.folder / "environment"),
            unittest.mock.patch.object(build.venv, "create", make),
            self.assertRaisesRegex(
                build.Failed,
                r"^PyPI did not give what docs/site/requirements\.txt names; [^\n]* ERROR: no route to the index$",
            ),
        ):
            build.prepare()


if __name__ == "__main__":
    tool_case.main()
