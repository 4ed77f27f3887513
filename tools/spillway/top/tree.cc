// tree_rows() of top/processes.h.
#include <algorithm>
#include <map>
#include <tuple>

#include "top/processes.h"

namespace spw::tool::top {

namespace {

// The greatest first; of equal ones the least number.
auto rank(const Process& process, ProcessSort sort) {
  double value = 0;
  if (sort == ProcessSort::kMisses) value = process.misses_s.value_or(-1);
  if (sort == ProcessSort::kResident) value = static_cast<double>(process.resident_bytes);
  if (sort == ProcessSort::kShare) value = process.cap_share().value_or(-1);
  return std::tuple(-value, process.id);
}

class Tree {
 public:
  Tree(const std::vector<Process>& processes, ProcessSort sort, bool is_utf8)
      : processes_(processes), sort_(sort), is_utf8_(is_utf8), is_placed_(processes.size()) {
    std::map<uint64_t, size_t> places;
    for (size_t i = 0; i < processes.size(); ++i) places.emplace(processes[i].id, i);
    std::vector<size_t> roots;
    for (size_t i = 0; i < processes.size(); ++i) {
      const bool has_parent =
          places.count(processes[i].parent) != 0 && processes[i].parent != processes[i].id;
      (has_parent ? children_[processes[i].parent] : roots).push_back(i);
    }
    for (const size_t root : sorted(roots)) place(root, "", "");
    // Numbers were reused while they were read, so that some are their own ancestors.
    for (size_t i = 0; i < processes.size(); ++i) place(i, "", "");
  }
  std::vector<TreeRow> rows;

 private:
  std::vector<size_t> sorted(std::vector<size_t> places) const {
    std::sort(places.begin(), places.end(),
              [&](size_t a, size_t b) { return rank(processes_[a], sort_) < rank(processes_[b], sort_); });
    return places;
  }
  // `branch`: before its own name; `below`: before those of what is below it.
  void place(size_t process, const std::string& branch, const std::string& below) {
    if (is_placed_[process]) return;
    is_placed_[process] = true;
    rows.push_back({process, branch});
    const auto children = children_.find(processes_[process].id);
    if (children == children_.end()) return;
    const std::vector<size_t> order = sorted(children->second);
    for (const size_t child : order) {
      const bool is_last = child == order.back();
      const char* const turn = is_utf8_ ? (is_last ? "└─ " : "├─ ") : (is_last ? "`- " : "|- ");
      const char* const pass = is_last ? "   " : is_utf8_ ? "│  " : "|  ";
      place(child, below + turn, below + pass);
    }
  }

  const std::vector<Process>& processes_;
  const ProcessSort sort_;
  const bool is_utf8_;
  std::vector<bool> is_placed_;
  std::map<uint64_t, std::vector<size_t>> children_;  // by the parent's number
};

}  // namespace

std::vector<TreeRow> tree_rows(const std::vector<Process>& processes, ProcessSort sort, bool is_utf8) {
  return Tree(processes, sort, is_utf8).rows;
}

}  // namespace spw::tool::top
