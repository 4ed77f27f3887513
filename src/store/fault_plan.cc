#include "store/fault_plan.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <optional>
#include <string>

namespace spw::store {

namespace {

struct ErrorName {
  std::string_view name;
  int error;
};
constexpr ErrorName kErrors[] = {{"EIO", EIO},     {"ENOSPC", ENOSPC}, {"EAGAIN", EAGAIN},
                                 {"EINTR", EINTR}, {"ENOMEM", ENOMEM}, {"EOPNOTSUPP", EOPNOTSUPP},
                                 {"EROFS", EROFS}, {"EDQUOT", EDQUOT}};
constexpr std::string_view kDamages[] = {"none", "flip", "zeros", "torn", "lost", "elsewhere"};  // by Damage
constexpr std::string_view kOps[] = {"read", "write", "discard", "sync"};                        // by Op

// Takes the text before the next `separator` off the front.
std::string_view take(std::string_view& text, char separator) {
  size_t end = text.find(separator);
  std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void damage(Damage how, std::byte* data, uint64_t bytes, uint64_t salt) {
  constexpr uint64_t kSpread =
      0x9E3779B97F4A7C15;  // any odd number: salts that are near each other give bits that are not
  if (bytes == 0) return;
  const uint64_t bit = (salt + 1) * kSpread % (8 * bytes);
  if (how == Damage::kFlip) data[bit / 8] ^= std::byte(1 << bit % 8);
  if (how == Damage::kZeros) std::memset(data, 0, bytes);
  if (how == Damage::kTorn) std::memset(data + bytes / 2, 0x5A, bytes - bytes / 2);
}

Result<FaultPlan::Rule> FaultPlan::parse_rule(std::string_view text) {
  Status bad(EINVAL, "not a fault rule: \"" + std::string(text) + "\"");
  Rule rule;
  std::string_view op = take(text, ':');
  std::string_view nth = take(text, ':');
  rule.and_all_after = nth.ends_with('+');
  if (rule.and_all_after) nth.remove_suffix(1);
  auto first = number(nth);
  if (!first || *first == 0) return bad;
  rule.first = *first;
  if (op == "short") {
    rule.any_transfer = true;
    rule.fault.shorten = true;
    return text.empty() ? Result<Rule>(rule) : bad;
  }
  const auto* op_at = std::ranges::find(kOps, op);
  if (op_at == std::end(kOps)) return bad;
  rule.op = static_cast<Op>(op_at - kOps);
  std::string_view what = take(text, ':');
  if (what == "delay") {
    auto microseconds = number(text);
    if (!microseconds) return bad;
    rule.fault.delay_ns = *microseconds * 1000;
    return rule;
  }
  if (const auto* damage_at = std::ranges::find(kDamages, what); damage_at != std::end(kDamages)) {
    rule.fault.damage = static_cast<Damage>(damage_at - kDamages);
    const bool is_transfer = rule.op == Op::kRead || rule.op == Op::kWrite;
    return is_transfer && rule.fault.damage != Damage::kNone && text.empty() ? Result<Rule>(rule) : bad;
  }
  const auto* error_at = std::ranges::find(kErrors, what, &ErrorName::name);
  if (error_at == std::end(kErrors)) return bad;
  rule.fault.error = error_at->error;
  rule.fault.failures_left = UINT_MAX;
  if (!text.empty()) {
    auto failures = text.starts_with('x') ? number(text.substr(1)) : std::nullopt;
    if (!failures || *failures == 0 || *failures >= UINT_MAX) return bad;
    rule.fault.failures_left = static_cast<unsigned>(*failures);
  }
  return rule;
}

Result<std::unique_ptr<FaultPlan>> FaultPlan::parse(std::string_view spec) {
  auto plan = std::make_unique<FaultPlan>();
  if (Status status = plan->add(spec); !status) return status;
  return plan;
}

Status FaultPlan::add(std::string_view spec) {
  std::vector<Rule> added;
  while (!spec.empty()) {
    auto rule = parse_rule(take(spec, ','));
    if (!rule) return rule.status();
    added.push_back(*rule);
  }
  std::lock_guard lock(mutex_);
  rules_.insert(rules_.end(), added.begin(), added.end());
  return Status::ok();
}

void FaultPlan::clear() {
  std::lock_guard lock(mutex_);
  rules_.clear();
}

uint64_t FaultPlan::requests(Op op) {
  std::lock_guard lock(mutex_);
  return requests_[static_cast<size_t>(op)];
}

Fault FaultPlan::next(Op op) {
  std::lock_guard lock(mutex_);
  ++requests_[static_cast<size_t>(op)];
  bool is_transfer = op == Op::kRead || op == Op::kWrite;
  Fault fault;
  for (const Rule& rule : rules_) {
    if (rule.any_transfer ? !is_transfer : rule.op != op) continue;
    uint64_t count = rule.any_transfer ? requests_[0] + requests_[1] : requests_[static_cast<size_t>(op)];
    if (rule.and_all_after ? count < rule.first : count != rule.first) continue;
    if (rule.fault.error != 0) {
      fault.error = rule.fault.error;
      fault.failures_left = rule.fault.failures_left;
    }
    if (rule.fault.damage != Damage::kNone) fault.damage = rule.fault.damage;
    fault.shorten |= rule.fault.shorten;
    fault.delay_ns = std::max(fault.delay_ns, rule.fault.delay_ns);
  }
  return fault;
}

}  // namespace spw::store
