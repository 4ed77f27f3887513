// spillway: runs recompiled programs, says what the machine offers, lists the options and shows reports.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <new>

#include "abi/abi.h"
#include "base/need.h"
#include "commands.h"
#include "completion.h"
#include "completion_command.h"
#include "messages.h"
#include "process/image_removal.h"
#include "process/options.h"

namespace spw::tool {

namespace {

// Before what libraries make of themselves at the start, which takes memory, too.
__attribute__((constructor(101))) void end_where_memory_ends() {
  std::set_new_handler([] { cannot_go_on("get memory", ENOMEM); });
}

constexpr const char* kHelpEnd =
    "\nFrom nothing to a run:\n"
    "  spillway-clang++ -O3 sort.cpp -o sort\n"
    "  spillway doctor --store /mnt/nvme\n"
    "  spillway run --memory 4G --store /mnt/nvme --stats text -- ./sort data\n";

constexpr const char* kRunHelpEnd =
    "Sizes take the units K, M, G and T. Each option is also an environment variable (SPILLWAY_MEMORY for "
    "--memory),\n"
    "which recompiled programs read without this command too. `spillway options` says what each accepts, and "
    "lists\n"
    "those that are not shown here: `spillway options tuning`, and `spillway options measuring`.\n"
    "Signals, Ctrl-C and the exit code are the program's own. Exit code 2: a bad option, store or program.";

constexpr const char* kNotShown = "";  // CLI11: a group of options that --help leaves out

// Everything the command line can hold, in one place for the parser.
struct Arguments {
  RunArguments run;  // of `run` and of `advise`
  bool no_check = false;
  std::string advise_json;
  std::string advise_svg;
  std::string doctor_store;
  bool doctor_json = false;
  std::string stats_file;
  std::string checked;
  TopArguments top;
  bool options_markdown = false;
  std::string options_page;
  std::string completion_shell;
};

// Stands for --NAME=on without a value.
bool is_switch(const process::OptionInfo& info) { return info.name == "quiet" || info.name == "encrypt"; }

// How many words of the command line belong to `run` or `advise` itself: up to and with "--", or up to the first word
// that is no option and no option's value. The rest is the program's and is never parsed.
int run_words(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return i + 1;
    if (!word.starts_with('-')) return i;
    const auto infos = process::option_infos();
    const bool takes_next =
        word == "--json" || word == "--svg" || word == "--report" || word == "--metrics" ||
        std::any_of(infos.begin(), infos.end(), [&](const process::OptionInfo& info) {
          return word.starts_with("--") && word.substr(2) == info.name && !is_switch(info);
        });
    if (takes_next) ++i;
  }
  return argc;
}

const char* value_word(process::ValueKind kind) {
  switch (kind) {
    case process::ValueKind::kSize:
    case process::ValueKind::kPowerOfTwoSize:
      return "SIZE";
    case process::ValueKind::kCount:
      return "COUNT";
    case process::ValueKind::kChoice:
      return "NAME";
    case process::ValueKind::kChoiceOrFile:
      return "NAME|FILE";
    case process::ValueKind::kStore:
      return "DIRECTORY|STORE,...";
    case process::ValueKind::kPatterns:
      return "PATTERNS";
    case process::ValueKind::kFile:
      return "FILE";
    case process::ValueKind::kReportTarget:
      return "off|text|FILE";
  }
  return "";
}

void add_run_options(CLI::App* run, Arguments& arguments) {
  run->footer(kRunHelpEnd);
  for (const process::OptionInfo& info : process::option_infos()) {
    const std::string name(info.name);
    CLI::Option* option = run->add_option("--" + name, arguments.run.values[name],
                                          fmt::format("{} [{}]", info.help, info.fallback))
                              ->group(info.page == process::OptionPage::essential ? "Options" : kNotShown)
                              ->type_name(is_switch(info) ? "" : value_word(info.accepts.kind))
                              ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    if (is_switch(info)) option->expected(0, 1)->default_str("");
  }
  run->add_option("--report", arguments.run.report_file, "write a page about the run to this file (HTML)")
      ->type_name("FILE");
  run->add_option("--metrics", arguments.run.metrics_address,
                  "serve what the run does as OpenMetrics: a port, HOST:PORT, or the path of a socket")
      ->type_name("ADDRESS");
  run->add_option("PROGRAM", arguments.run.program,
                  "the program and its arguments; -- before it is optional");
  run->add_flag("--no-check", arguments.no_check,
                "start the program even if it cannot be examined or preloaded");
}

void add_run(CLI::App& app, Arguments& arguments) {
  add_run_options(
      app.add_subcommand("run", "run a program, recompiled or as it is, on more data than fits in memory"),
      arguments);
  CLI::App* advise =
      app.add_subcommand("advise", "run a program and say what more memory would be worth to it");
  add_run_options(advise, arguments);
  advise->add_option("--json", arguments.advise_json, "write the curve to this file as JSON")
      ->type_name("FILE");
  advise->add_option("--svg", arguments.advise_svg, "draw the curve into this file")->type_name("FILE");
}

void add_others(CLI::App& app, Arguments& arguments) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "say what this machine offers, and how to mend what is missing");
  doctor->add_option("--store", arguments.doctor_store, "directory to examine for spilled data [as for run]");
  doctor->add_flag("--json", arguments.doctor_json, "print JSON");
  CLI::App* stats = app.add_subcommand("stats", "show a report that --stats=FILE wrote");
  stats->add_option("FILE", arguments.stats_file, "the report")->required();
  CLI::App* check =
      app.add_subcommand("check", "check a file of durable sections, or a Ceph pool for images left behind");
  check->add_option("FILE", arguments.checked, "a persistent region that no program has open, or rbd:POOL")
      ->required();
  CLI::App* top =
      app.add_subcommand("top", "watch running programs: memory, misses, disk, processes, allocations");
  top->add_option("PID", arguments.top.process,
                  "its process id; without one: the run there is, or a list to choose from");
  top->add_option("--interval", arguments.top.interval_s, "seconds between two looks [1]")
      ->check(CLI::Range(0.05, 3600.0));
  top->add_option("--count", arguments.top.count,
                  "as text, and end after so many looks [when the program ends]");
  top->add_flag("--plain", arguments.top.plain,
                "as text, one look below the other; so also where it is no terminal");
  top->add_flag("--trace", arguments.top.trace, "what happened to blocks, a line each");
  top->add_flag("--wait", arguments.top.wait, "wait for a program to run, or for PID to use managed memory");
  top->footer("\nOn a terminal, F1 or ? explains the keys and the numbers; q quits.\n");
  CLI::App* options =
      app.add_subcommand("options", "list every option: values, default, environment variable");
  options->add_option("PAGE", arguments.options_page, "only these: essential, tuning or measuring")
      ->check(CLI::IsMember(option_page_names()));
  options->add_flag("--markdown", arguments.options_markdown, "print docs/OPTIONS.md");
  CLI::App* completion = app.add_subcommand("completion",
                                            "print a script by which a shell completes this command; in "
                                            "~/.bashrc: eval \"$(spillway completion bash)\"");
  completion->add_option("SHELL", arguments.completion_shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kShells), std::end(kShells))));
}

// The line for a word that no option of the command answers to.
int refuse_unknown(const CLI::App& app, const std::string& word) {
  std::vector<std::string_view> names;
  const CLI::App* command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  for (const CLI::Option* option : command->get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  const std::string name = word.substr(0, word.find('='));
  const size_t dashes = std::min(name.find_first_not_of('-'), name.size());
  const std::string_view near =
      dashes == 0 ? "" : process::nearest_word(std::string_view(name).substr(dashes), names);
  const std::string help =
      command == &app ? "spillway --help" : "spillway " + command->get_name() + " --help";
  if (!near.empty()) return refuse(fmt::format("{}: unknown option; did you mean --{}?", name, near));
  return refuse(fmt::format("{}: unknown option or argument; {} lists what there is", name, help));
}

int refuse_command(const CLI::App& app, std::string_view word) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({}))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return refuse(fmt::format("{}: no such command; there are {}", word, names));
}

int dispatch(const CLI::App& app, Arguments& arguments) {
  for (const char* name : {"run", "advise"}) {
    if (!app.got_subcommand(name)) continue;
    const CLI::App* run = app.get_subcommand(name);
    std::erase_if(arguments.run.values,
                  [&](const auto& entry) { return run->count("--" + entry.first) == 0; });
    for (auto& [option, value] : arguments.run.values)
      if (value.empty() && (option == "quiet" || option == "encrypt")) value = "on";
    arguments.run.check_program = !arguments.no_check;
    if (name == std::string_view("run")) return run_program(arguments.run);
    return advise({arguments.run, arguments.advise_json, arguments.advise_svg});
  }
  if (app.got_subcommand("doctor")) return run_doctor(arguments.doctor_store, arguments.doctor_json);
  if (app.got_subcommand("top")) return show_top(arguments.top);
  if (app.got_subcommand("check")) return check_file_or_pool(arguments.checked);
  if (app.got_subcommand("stats")) return show_stats(arguments.stats_file);
  if (app.got_subcommand("completion")) return print_completion(app, arguments.completion_shell);
  return list_options(arguments.options_page, arguments.options_markdown);
}

int tool_main(int argc, char** argv) {
  CLI::App app{"Spillway runs in-memory programs on data bigger than memory.", "spillway"};
  Arguments arguments;
  app.set_version_flag("--version", fmt::format("spillway {} (ABI {})", SPW_VERSION, SPW_ABI_VERSION));
  app.footer(kHelpEnd);
  app.require_subcommand(1);
  add_run(app, arguments);
  add_others(app, arguments);
  if (argc == 4 && std::string_view(argv[1]) == process::kRemoveAtEndCommand)
    return remove_image_at_end(argv[2], argv[3]);
  if (argc < 2) return refuse("no command is named; spillway --help says what there is");
  const std::string_view first = argv[1];
  const auto commands = app.get_subcommands({});
  const bool known = std::any_of(commands.begin(), commands.end(),
                                 [&](const CLI::App* c) { return c->get_name() == first; });
  if (!first.starts_with('-') && !known) return refuse_command(app, first);
  if (!known && first != "--help" && first != "-h" && first != "--version")
    return refuse_unknown(app, argv[1]);

  int words = argc;
  if (first == "run" || first == "advise") {
    words = run_words(argc, argv);
    arguments.run.program.assign(argv + words, argv + argc);
    if (std::string_view(argv[words - 1]) == "--") --words;
  }
  try {
    app.parse(words, argv);
  } catch (const CLI::Success& shown) {
    return app.exit(shown);
  } catch (const CLI::ExtrasError&) {
    return refuse_unknown(app, app.remaining(true).front());
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--memory: 1 required SIZE missing"
    return refuse(fmt::format("{}: it needs a value", text.substr(0, text.find(':'))));
  } catch (const CLI::RequiredError& error) {
    return refuse(fmt::format("{}; spillway {} --help says more", error.what(), first));
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  return dispatch(app, arguments);
}

}  // namespace

}  // namespace spw::tool

int main(int argc, char** argv) { return spw::tool::tool_main(argc, argv); }
