// Reads targets and compares a run with them.
#include "cli/targets.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "baregrad/error.h"
#include "bench/peers_blas.h"
#include "cli/output.h"
#include "core/printable.h"
#include "data/source.h"

namespace baregrad::cli {
namespace {

using bench::Result;

// Tolerance for a known miss: two runs on a shared machine differ by a few percent.
constexpr double kWaver = 0.9;

/// One JSON object of the file; error messages name it.
class Object {
 public:
  Object(const nlohmann::json& json, std::string where,
         std::initializer_list<std::string_view> known)
      : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) throw ValueError(where_ + ": must be an object");
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      throw ValueError(fmt::format("{}: unknown field \"{}\"; there are {}", where_, key,
                                   fmt::join(known, ", ")));
    }
  }

  bool has(const char* key) const { return json_.contains(key); }
  const nlohmann::json& at(const char* key) const {
    if (!has(key)) throw ValueError(fmt::format("{}: \"{}\" is missing", where_, key));
    return json_[key];
  }
  [[noreturn]] void complain(const char* key, std::string_view what) const {
    throw ValueError(fmt::format("{}: \"{}\" {}, not {}", where_, key, what, at(key).dump()));
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) complain(key, "must be a string");
    return at(key).get<std::string>();
  }
  double positive(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number() || !(value.get<double>() > 0)) complain(key, "must be a number above 0");
    return value.get<double>();
  }
  std::optional<double> maybe_positive(const char* key) const {
    return has(key) ? std::optional(positive(key)) : std::nullopt;
  }
  std::int64_t whole(const char* key, std::int64_t most) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number_integer() || value.get<double>() < 1 ||
        value.get<double>() > static_cast<double>(most)) {
      complain(key, fmt::format("must be a whole number from 1 to {}", most));
    }
    return value.get<std::int64_t>();
  }
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& json_;
  std::string where_;
};

Target read_row(const nlohmann::json& json, const std::string& where) {
  const Object row(json, where,
                   {"dtype", "shape", "size", "threads", "min_ratio", "min_percent_of_fma",
                    "measured", "measured_percent_of_fma", "reason"});
  constexpr std::int64_t kMostThreads = 1024;
  Target target;
  if (row.has("shape") == row.has("size")) {
    throw ValueError(where + ": must have either \"shape\" or \"size\"");
  }
  const char* field = "dtype";
  try {
    target.product.dtype = bench::matmul_dtype(row.text(field));
    field = row.has("shape") ? "shape" : "size";
    if (row.has("shape")) {
      bench::set_shape(target.product, row.text(field));
    } else {
      bench::set_square(target.product, row.whole(field, INT32_MAX));
    }
  } catch (const ValueError& error) {
    const std::string what = error.what();
    if (what.starts_with(where)) throw;
    throw ValueError(fmt::format("{}: \"{}\": {}", where, field, what));
  }
  target.product.threads = static_cast<int>(row.whole("threads", kMostThreads));
  target.min_ratio = row.positive("min_ratio");
  target.min_percent_of_fma = row.maybe_positive("min_percent_of_fma");
  target.measured = row.maybe_positive("measured");
  target.measured_percent_of_fma = row.maybe_positive("measured_percent_of_fma");
  const bool measured = target.measured || target.measured_percent_of_fma;
  if (row.has("reason")) target.reason = row.text("reason");
  if (measured == target.reason.empty()) {
    throw ValueError(where +
                     ": \"measured\" and \"reason\" come together: what a row that misses "
                     "its target reached, and why");
  }
  return target;
}

nlohmann::json parse(const std::string& path) {
  // A regular file of known length: not a pipe without a writer, not /dev/zero.
  const auto bytes = data::read_all(*data::open_file(path, "--check", 0));
  try {
    // Error messages print values recursively.
    constexpr int kDeepest = 50;
    const auto is_shallow = [&](int depth, auto&&...) {
      if (depth <= kDeepest) return true;
      throw ValueError(
          fmt::format("--check: {}: is nested deeper than {} levels", quoted_text(path), kDeepest));
    };
    return nlohmann::json::parse(bytes, is_shallow);
  } catch (const nlohmann::json::parse_error& error) {
    // The library's name of the error, in brackets, is cut off.
    const std::string_view what = error.what();
    const std::size_t end = what.find("] ");
    throw ValueError(fmt::format("--check: '{}': {}", path,
                                 what.substr(end == std::string_view::npos ? 0 : end + 2)));
  }
}

std::string percent(double value) { return fmt::format("{:.0f} %", value); }

/// A requirement on one number.
struct Bound {
  double reached;
  double wanted;
  std::optional<double> measured;
  bool met() const { return reached >= wanted; }
  bool bearable() const { return met() || (measured && reached >= kWaver * *measured); }
};

}  // namespace

TargetFile read_targets(const std::string& path) {
  const nlohmann::json json = parse(path);
  const std::string file = fmt::format("--check: '{}'", path);
  const Object top(json, file, {"about", "peers", "rows"});
  TargetFile targets;
  if (top.has("about")) top.text("about");
  if (top.has("peers")) {
    if (!top.at("peers").is_array()) top.complain("peers", "must be a list");
    const auto names = bench::peers::blas_names();
    for (const nlohmann::json& peer : top.at("peers")) {
      if (!peer.is_string() ||
          std::find(names.begin(), names.end(), peer.get<std::string>()) == names.end()) {
        top.complain("peers", fmt::format("must be of {}", fmt::join(names, ", ")));
      }
      targets.peers.push_back(peer.get<std::string>());
    }
  }
  if (!top.at("rows").is_array()) top.complain("rows", "must be a list");
  for (const nlohmann::json& row : top.at("rows")) {
    const std::string where = fmt::format("{}: rows[{}]", file, targets.rows.size());
    const Target target = read_row(row, where);
    for (std::size_t i = 0; i < targets.rows.size(); ++i) {
      if (targets.rows[i].product == target.product) {
        throw ValueError(fmt::format("{}: is the same product as rows[{}]", where, i));
      }
    }
    targets.rows.push_back(target);
  }
  if (targets.rows.empty()) throw ValueError(file + ": has no rows");
  return targets;
}

Checked check_targets(std::span<const Target> targets, std::span<const Result> results) {
  Checked checked;
  std::vector<std::vector<std::string>> lines;
  for (const Target& target : targets) {
    const bench::MatmulCase& product = target.product;
    const auto ours = std::find_if(results.begin(), results.end(), [&](const Result& r) {
      return r.implementation == bench::kOurs && r.dtype == name(product.dtype) &&
             r.shape == shape_text(product) && r.threads == product.threads;
    });
    if (ours == results.end()) continue;
    ++checked.run;
    const Bound ratio{ours->ratio, target.min_ratio, target.measured};
    const Bound fma{ours->percent_of_fma, target.min_percent_of_fma.value_or(0),
                    target.measured_percent_of_fma};
    std::string verdict = "ok";
    if (ours->ratio == 0) {
      verdict = "FAILS: no peer to compare with";
    } else if (!ratio.bearable() || !fma.bearable()) {
      verdict = "FAILS";
      if (!target.reason.empty()) {
        verdict += fmt::format(": below {:.0f} % of what was measured before", 100 * kWaver);
      }
    } else if (!ratio.met() || !fma.met()) {
      verdict = "misses, as known: " + target.reason;
    } else if (!target.reason.empty()) {
      verdict = "ok now; was known to miss: " + target.reason;
    }
    if (verdict.starts_with("FAILS")) ++checked.failed;
    lines.push_back({shape_text(product), std::string(name(product.dtype)),
                     std::to_string(product.threads), fmt::format("{:.2f}", ours->ratio),
                     fmt::format("{:.2f}", target.min_ratio), percent(ours->percent_of_fma),
                     target.min_percent_of_fma ? percent(*target.min_percent_of_fma) : "",
                     std::move(verdict)});
  }
  constexpr Heading kHeadings[] = {{"shape", true},   {"dtype", true},   {"threads", false},
                                   {"ratio", false},  {"wanted", false}, {"of FMA", false},
                                   {"wanted", false}, {"verdict", true}};
  checked.table = table_text(kHeadings, lines);
  const auto left_out = static_cast<int>(targets.size()) - checked.run;
  if (left_out > 0) checked.table += fmt::format("not run: {} more\n", left_out);
  return checked;
}

}  // namespace baregrad::cli
