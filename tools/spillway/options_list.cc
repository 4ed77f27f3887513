#include <fmt/core.h>

#include "commands.h"
#include "messages.h"
#include "process/options.h"

namespace spw::tool {

namespace {

constexpr const char* kMarkdownHead =
    "# Options\n\n"
    "Every option is an argument of `spillway run` and an environment variable that the runtime of a "
    "recompiled program reads\n"
    "itself; an argument wins. Sizes take the units K, M, G and T, powers of 1024. A value that is not "
    "accepted stops the\n"
    "program before it starts, with one line that says what is. A program with rights of its own "
    "(set-user-ID, set-group-ID, file\n"
    "capabilities) takes no option from the environment, and says so.\n\n"
    "This page is written by `scripts/update_options_doc.sh` from `src/process/options.inc`; a test compares "
    "the two.\n";

constexpr const char* kMarkdownTail =
    "\n## For tests of the runtime\n\n"
    "`SPILLWAY_TEST_FAULTS` injects errors into the spill store's requests: `read:5:EIO,write:3+:ENOSPC`. "
    "The rules are described\n"
    "in `src/store/fault_plan.h`. `SPILLWAY_TEST_FRAME_WAIT_MS` is for how long a full or failing store is "
    "waited for instead of\n"
    "30 s.\n"
    "`SPILLWAY_TEST_USERFAULT=user` takes page faults of user mode only, as where the kernel serves no "
    "faults of system calls;\n"
    "`SPILLWAY_TEST_USERFAULT=none` pretends that userfaultfd is forbidden. With `SPILLWAY_TEST_ALLOCATIONS` "
    "set each\n"
    "allocation of the runtime's own asks the kernel first, so that one that says no can refuse any of them "
    "(`tests/faults`).\n"
    "`SPILLWAY_TEST_EXTENTS=eager` brings everything that can be an extent in as one, not only streams.\n";

struct Page {
  process::OptionPage page;
  std::string_view name, title, about;
};
constexpr Page kPages[] = {
    {process::OptionPage::essential, "essential", "What you have to know",
     "`spillway run --help` shows these."},
    {process::OptionPage::tuning, "tuning", "What may make a program faster",
     "`spillway options tuning` lists these. None of them is needed."},
    {process::OptionPage::measuring, "measuring", "What exists to measure",
     "For comparisons, and to look into a program; `spillway options measuring` lists these."},
};

void print_option(const process::OptionInfo& info, bool as_markdown) {
  const std::string variable = process::environment_variable(info.name);
  const std::string accepted = process::accepted_values(info.accepts);
  if (as_markdown)
    fmt::print(
        "\n### --{}\n\n{}. {}\n\n- Environment: `{}`\n- Accepted: {}\n- Default: {}\n- Example: `--{}={}`\n",
        info.name, info.help, info.doc, variable, accepted, info.fallback, info.name, info.example);
  else
    fmt::print("--{} ({})\n    {}\n    accepted: {}\n    default:  {}\n", info.name, variable, info.help,
               accepted, info.fallback);
}

}  // namespace

std::vector<std::string> option_page_names() {
  std::vector<std::string> names;
  for (const Page& page : kPages) names.emplace_back(page.name);
  return names;
}

int list_options(std::string_view wanted, bool as_markdown) {
  if (as_markdown) fmt::print("{}", kMarkdownHead);
  for (const Page& page : kPages) {
    if (!wanted.empty() && page.name != wanted) continue;
    if (as_markdown)
      fmt::print("\n## {}\n\n{}\n", page.title, page.about);
    else
      fmt::print("{}{}\n\n", page.page == kPages[0].page || !wanted.empty() ? "" : "\n", page.title);
    for (const process::OptionInfo& info : process::option_infos())
      if (info.page == page.page) print_option(info, as_markdown);
  }
  if (as_markdown) fmt::print("{}", kMarkdownTail);
  return kExitOk;
}

}  // namespace spw::tool
