"""Which files of the repository the site shows, in which order. A file that does not exist yet is left out."""

# (title of a group, its pages: (title, file)); a group without a title is on top. Files marked by `made:` are written
# by the build.
Group = tuple[str, list[tuple[str, str]]]
PAGES: list[Group] = [
    (
        "",
        [
            ("Overview", "README.md"),
            ("Start here", "docs/guide/start.md"),
            ("How it works", "docs/guide/how_it_works.md"),
        ],
    ),
    (
        "Using it",
        [
            ("Ways in", "docs/guide/ways_in.md"),
            ("Tuning", "docs/guide/tuning.md"),
            ("Python", "docs/guide/python.md"),
            ("Rust", "docs/guide/rust.md"),
            ("C and C++", "docs/guide/c_and_cpp.md"),
            ("Containers", "docs/guide/containers.md"),
            ("Packages", "packaging/README.md"),
            ("Programs", "docs/PROGRAMS.md"),
        ],
    ),
    (
        "What holds",
        [
            ("Promises", "docs/guide/promises.md"),
            ("Limits", "docs/guide/limits.md"),
            ("Security", "SECURITY.md"),
            ("Benchmarks", "docs/BENCHMARKS.md"),
            ("Scaling", "docs/SCALING.md"),
            ("Nightly runs", "docs/NIGHTLY.md"),
        ],
    ),
    (
        "Inside",
        [
            ("Architecture", "docs/ARCHITECTURE.md"),
            ("The five papers", "docs/guide/papers.md"),
            ("Glossary", "docs/GLOSSARY.md"),
            ("Dependencies", "docs/DEPENDENCIES.md"),
            ("Contributing", "CONTRIBUTING.md"),
            ("How this site is made", "docs/site/README.md"),
        ],
    ),
    (
        "How-tos",
        [
            ("Write your own policy", "docs/howto/write_your_own_policy.md"),
            ("Add an eviction policy", "docs/howto/add_an_eviction_policy.md"),
            ("Add a store", "docs/howto/add_a_store.md"),
            ("Add an interposed function", "docs/howto/add_an_interposed_function.md"),
            ("Add an option", "docs/howto/add_an_option.md"),
            ("Add a counter", "docs/howto/add_a_counter.md"),
        ],
    ),
    (
        "Reference",
        [
            ("Options", "docs/OPTIONS.md"),
            ("The report", "docs/STATS.md"),
            ("spillway.h", "made:include/spillway/spillway.h"),
            ("spillway.hpp", "made:include/spillway/spillway.hpp"),
            ("durable.h", "made:include/spillway/durable.h"),
            ("policy.h", "made:include/spillway/policy.h"),
            ("Manual pages", "made:docs/man"),
            ("Changelog", "CHANGELOG.md"),
        ],
    ),
]
# Files that a page takes in when they are there, where it says `<!-- include: FILE -->`.
INCLUDE = r"^<!-- include: (\S+) -->\n"
INCLUDED = {"python/README.md": "docs/guide/python.md", "rust/README.md": "docs/guide/rust.md"}
FOLDERS = "Folders"  # every other markdown file of the repository, which are READMEs mostly


def chosen(files: list[str]) -> list[Group]:
    """Those of PAGES that are there, and a group of all others. `files`: of the repository, from its root."""
    known = set(files)
    groups = [
        (title, [page for page in pages if page[1].startswith("made:") or page[1] in known]) for title, pages in PAGES
    ]
    shown = {file for _, pages in groups for _, file in pages}
    others = [name for name in files if name.endswith(".md") and name not in shown and name not in INCLUDED]
    groups.insert(-1, (FOLDERS, [(name.removesuffix("/README.md").removesuffix(".md"), name) for name in others]))
    return groups


def site_path(file: str) -> str:
    """Where the page of a file is, from the site's root: README.md is the front page, a folder's README that of it."""
    if file == "README.md":
        return "index.md"
    if file.startswith("made:"):
        name = file.removeprefix("made:").rpartition("/")[2]
        return f"reference/{name}.md"
    path = file.removeprefix("docs/guide/").removeprefix("docs/")
    if path.endswith("/README.md"):
        return "folders/" + path.removesuffix("/README.md") + ".md"
    return path[:-3].lower() + ".md"
