// The tool's commands. Each takes what was parsed from the command line and returns the exit code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spw::tool {

struct RunArguments {
  std::map<std::string, std::string> values;  // option name -> value, as given
  bool check_program = true;
  std::vector<std::string> program;  // name and arguments
  std::string report_file;           // an HTML page; "": none
  std::string metrics_address;       // "": none
};

// Checks everything that can be checked before the program runs, then becomes the program; returns only to refuse.
int run_program(const RunArguments& arguments);

struct AdviseArguments {
  RunArguments run;
  std::string json_file;  // "": none
  std::string svg_file;
};
// The program's exit code, after what more memory would be worth was said on standard error.
int advise(const AdviseArguments& arguments);

// `store`: the directory to look at; empty: where the store would be by default.
int run_doctor(const std::string& store, bool as_json);

int show_stats(const std::string& file);

// Of a file: exit code 1, it is damaged. Of rbd:POOL: the images that runs have left behind there are removed; exit
// code 1, not all of them could be.
int check_file_or_pool(const std::string& name);
// In a process of its own (process/image_removal.h): waits until the one that started it has ended.
int remove_image_at_end(const std::string& store, const std::string& image);

struct TopArguments {
  uint64_t process = 0;  // 0: of the only run there is, or one of a list
  double interval_s = 1;
  uint64_t count = 0;  // of looks; 0: until it is stopped, or the process ends
  bool trace = false;  // what happened to blocks, line by line, instead of a picture
  bool plain = false;  // text, on a terminal too
  bool wait = false;   // until there is one
};
int show_top(const TopArguments& arguments);

std::vector<std::string> option_page_names();
// `page`: one of these; "": all of them.
int list_options(std::string_view page, bool as_markdown);

}  // namespace spw::tool
