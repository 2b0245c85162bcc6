// A recorded graph as a table for a terminal.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "baregrad/graph.h"
#include "core/message.h"
#include "core/utf8.h"
#include "graph/text.h"
#include "graph/walk.h"

namespace baregrad::graph {

namespace {

using autograd::Edge;
using autograd::Node;

constexpr std::size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;
constexpr std::size_t kSavedColumn = 4;
/// The most inputs that are listed: a concat may have thousands.
constexpr std::size_t kMostInputs = 8;

std::uint64_t saved_bytes(const Node& node) {
  std::uint64_t bytes = 0;
  for (const Tensor& t : node.saved_tensors()) bytes += t.defined() ? t.nbytes() : 0;
  return bytes;
}

std::uint64_t elements(const autograd::Result& result) {
  std::uint64_t count = 1;
  for (int i = 0; i < result.ndim; ++i) count *= static_cast<std::uint64_t>(result.sizes[i]);
  return count;
}

template <class F>
std::string joined(std::size_t count, const F& part) {
  std::string out;
  for (std::size_t i = 0; i < std::min(count, kMostInputs); ++i) {
    out += (i == 0 ? "" : ", ") + part(i);
  }
  if (count > kMostInputs) out += message(", ... ", count - kMostInputs, " more");
  return out;
}

std::string inputs_text(const Node& node, const Walk& walk) {
  return joined(node.edges().size(), [&](std::size_t i) -> std::string {
    const Edge& edge = node.edges()[i];
    if (!edge) return "-";
    if (!walk.is_shown(*edge)) return "...";
    std::string text = message("#", walk.place(*edge));
    if (edge->results().size() > 1) text += message(".", edge.output);
    return text;
  });
}

Row row_of(std::size_t place, const Walk& walk, const NameTable& names) {
  const Node& node = *walk.shown()[place];
  const auto results = node.results();
  std::string name = node.is_leaf() ? "leaf" : one_line(node.name());
  const std::string given =
      joined(results.size(), [&](std::size_t k) { return one_line(names.of(node, k)); });
  if (given.find_first_not_of(", ") != std::string::npos) name += " \"" + given + "\"";
  std::string saved;
  if (node.released()) {
    saved = "freed";
  } else if (const std::uint64_t bytes = saved_bytes(node)) {
    saved = bytes_text(bytes);
  }
  return {message("#", place),
          name,
          joined(results.size(), [&](std::size_t k) { return to_string(results[k].shape()); }),
          joined(results.size(),
                 [&](std::size_t k) { return std::string(baregrad::name(results[k].dtype)); }),
          saved,
          inputs_text(node, walk),
          node.label() != nullptr ? one_line(node.label()) : ""};
}

/// Columns without entries are omitted.
std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, kColumns> widths{};
  std::array<bool, kColumns> used{};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      widths[c] = std::max(widths[c], utf8_columns(row[c]));
      used[c] = used[c] || (&row != &rows.front() && !row[c].empty());
    }
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (!used[c]) continue;
      if (!line.empty()) line += "  ";
      const std::string padding(widths[c] - utf8_columns(row[c]), ' ');
      line += c == kSavedColumn ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
    if (&row == &rows.front()) {
      std::size_t width = 0;
      for (std::size_t c = 0; c < kColumns; ++c) width += used[c] ? widths[c] + 2 : 0;
      out += std::string(width - 2, '-') + "\n";
    }
  }
  return out;
}

std::string counted(std::uint64_t count, const char* one, const char* several) {
  return grouped(count) + " " + (count == 1 ? one : several);
}

/// Totals over all nodes, shown or not. Memory that several ops save is counted once.
std::string totals(const Walk& walk) {
  std::uint64_t leaves = 0;
  std::uint64_t parameters = 0;
  std::uint64_t saved = 0;
  std::unordered_set<const Storage*> seen;
  for (const Node* node : walk.all()) {
    if (node->is_leaf()) {
      ++leaves;
      parameters += elements(node->results()[0]);
    }
    for (const Tensor& t : node->saved_tensors()) {
      if (t.defined() && seen.insert(t.storage().get()).second) saved += t.storage()->bytes();
    }
  }
  const std::uint64_t ops = walk.all().size() - leaves;
  return message(counted(ops, "op", "ops"), ", ", counted(leaves, "leaf", "leaves"), " with ",
                 counted(parameters, "parameter", "parameters"), ", ", bytes_text(saved),
                 " kept for backward\n");
}

}  // namespace

std::string summary(const std::vector<Tensor>& roots, const SummaryOptions& options) {
  const Walk walk(roots, options.max_nodes, "summary");
  const NameTable names(options.names, "summary");
  std::vector<Row> rows{{"node", "op", "shape", "dtype", "saved", "inputs", "label"}};
  for (std::size_t i = 0; i < walk.shown().size(); ++i) rows.push_back(row_of(i, walk, names));
  std::string out = table(rows);
  if (walk.hidden() != 0) out += message("... and ", grouped(walk.hidden()), " more\n");
  return out + totals(walk);
}

std::string summary(const Tensor& root, const SummaryOptions& options) {
  return summary(std::vector<Tensor>{root}, options);
}

}  // namespace baregrad::graph
