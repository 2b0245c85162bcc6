// A recorded graph in Graphviz's language.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/graph.h"
#include "core/message.h"
#include "graph/gradients.h"
#include "graph/text.h"
#include "graph/walk.h"

namespace baregrad::graph {

namespace {

using autograd::Edge;
using autograd::Node;

// Colours that are distinct for colour-blind readers too (the set of Okabe and Ito).
constexpr const char* kVanishing = "#0072B2";
constexpr const char* kExploding = "#D55E00";
constexpr const char* kNotFinite = "#CC79A7";
constexpr const char* kNothing = "#999999";

/// Frames as a tree: "encoder/layer 3" is a frame inside "encoder".
class Frames {
 public:
  struct Frame {
    std::string name;
    std::vector<std::size_t> inner;
    std::vector<std::size_t> nodes;
  };

  Frames() { frames_.emplace_back(); }  // the outermost frame: the picture
  void add(std::size_t node, const char* label) {
    std::size_t at = 0;
    std::string_view rest = label != nullptr ? label : "";
    while (!rest.empty()) {
      const std::size_t slash = rest.find('/');
      const std::string part(rest.substr(0, slash));
      rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
      if (part.empty()) continue;
      const auto [found, fresh] = index_.try_emplace({at, part}, frames_.size());
      if (fresh) {
        frames_[at].inner.push_back(frames_.size());
        frames_.push_back({part, {}, {}});
      }
      at = found->second;
    }
    frames_[at].nodes.push_back(node);
  }
  const Frame& operator[](std::size_t i) const noexcept { return frames_[i]; }

 private:
  std::vector<Frame> frames_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> index_;
};

class Drawing {
 public:
  Drawing(const std::vector<Tensor>& roots, const DotOptions& options)
      : walk_(roots, options.max_nodes, "to_dot"),
        names_(options.names, "to_dot"),
        options_(options),
        norms_(options.gradients != nullptr ? &options.gradients->norms() : nullptr) {}

  std::string draw() {
    out_ =
        "digraph baregrad {\n"
        "  charset=\"UTF-8\";\n"
        "  fontname=\"Helvetica\";\n"
        "  node [shape=box, style=filled, fillcolor=\"#FFFFFF\", fontname=\"Helvetica\", "
        "fontsize=11];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9];\n";
    draw_frames();
    if (walk_.hidden() != 0) {
      out_ += message("  more [label=\"... and ", grouped(walk_.hidden()),
                      " more\", shape=plaintext, style=\"\"];\n");
    }
    for (std::size_t i = 0; i < walk_.shown().size(); ++i) draw_inputs(i);
    draw_roots();
    if (norms_ != nullptr) draw_legend();
    return std::move(out_) + "}\n";
  }

 private:
  /// With an explicit stack: labels can be nested deep.
  void draw_frames() {
    Frames frames;
    const auto& shown = walk_.shown();
    for (std::size_t i = 0; i < shown.size(); ++i) frames.add(i, shown[i]->label());
    struct Visit {
      std::size_t frame;
      std::size_t next;
    };
    std::vector<Visit> stack{{0, 0}};
    std::size_t opened = 0;
    while (!stack.empty()) {
      const Frames::Frame& frame = frames[stack.back().frame];
      const std::size_t next = stack.back().next++;
      if (next == 0) {
        for (const std::size_t node : frame.nodes) draw_node(node, stack.size());
      }
      if (next < frame.inner.size()) {
        indent(stack.size());
        const std::size_t inner = frame.inner[next];
        out_ += message("subgraph cluster_", opened++, " {\n");
        stack.push_back({inner, 0});
        indent(stack.size());
        out_ += message("label=\"", dot_text(frames[inner].name),
                        "\"; color=\"#999999\"; style=rounded;\n");
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) {
        indent(stack.size());
        out_ += "}\n";
      }
    }
  }

  void draw_node(std::size_t i, std::size_t depth) {
    const Node& node = *walk_.shown()[i];
    indent(depth);
    out_ += message("n", i, " [label=\"");
    if (node.is_leaf()) {
      const std::string_view given = names_.of(node, 0);
      out_ += given.empty() ? "leaf" : dot_text(given);
    } else {
      out_ += dot_text(node.name());
    }
    for (std::size_t k = 0; k < node.results().size(); ++k) {
      const std::string_view given = node.is_leaf() ? std::string_view() : names_.of(node, k);
      out_ += "\\n";
      if (!given.empty()) out_ += dot_text(given) + " ";
      out_ += describe(node.results()[k]);
    }
    out_ += node.is_leaf() ? "\", fillcolor=\"#E8F1FA\"];\n" : "\"];\n";
  }

  void draw_inputs(std::size_t i) {
    bool beyond = false;
    for (const Edge& edge : walk_.shown()[i]->edges()) {
      if (!edge) continue;  // an input without a history
      if (walk_.is_shown(*edge)) {
        out_ += message("  n", walk_.place(*edge), " -> n", i, attributes(edge), ";\n");
      } else {
        beyond = true;
      }
    }
    if (beyond) out_ += message("  more -> n", i, " [style=dashed];\n");
  }

  void draw_roots() {
    const auto& roots = walk_.roots();
    for (std::size_t r = 0; r < roots.size(); ++r) {
      const std::string text = roots.size() == 1 ? "root" : message("root ", r);
      out_ += message("  r", r, " [label=\"", text, "\", shape=ellipse, style=\"\"];\n");
      // The roots come first, but there may be more roots than nodes to show.
      if (walk_.is_shown(*roots[r])) {
        out_ += message("  n", walk_.place(*roots[r]), " -> r", r, attributes(roots[r]), ";\n");
      } else {
        out_ += message("  more -> r", r, " [style=dashed];\n");
      }
    }
  }

  /// The label of an edge: what is known of its value.
  std::string attributes(const Edge& edge) const {
    std::string label;
    if (edge->results().size() > 1) label = message("result ", edge.output);
    if (norms_ == nullptr) return label.empty() ? "" : message(" [label=\"", label, "\"]");
    const std::optional<double> norm = norms_->find(edge->number(), edge.output);
    const char* colour = norm.has_value() ? colour_of(*norm) : kNothing;
    if (norm.has_value()) label += (label.empty() ? "" : "\\n") + short_number(*norm);
    std::string list;
    const auto add = [&list](const std::string& attribute) {
      list += (list.empty() ? "" : ", ") + attribute;
    };
    if (!label.empty()) add(message("label=\"", label, "\""));
    if (colour != nullptr) add(message("color=\"", colour, "\", fontcolor=\"", colour, "\""));
    if (!norm.has_value()) {
      add("style=dotted");
    } else if (colour != nullptr) {
      add("penwidth=2");
    }
    return list.empty() ? "" : " [" + list + "]";
  }

  /// Null if the node is not shown.
  const char* colour_of(double norm) const noexcept {
    if (!std::isfinite(norm)) return kNotFinite;
    if (norm < options_.vanishing) return kVanishing;
    if (norm > options_.exploding) return kExploding;
    return nullptr;
  }

  void draw_legend() {
    out_ +=
        "  subgraph cluster_legend {\n"
        "    label=\"norm of the gradient\"; color=\"#999999\"; style=dashed;\n"
        "    node [shape=plaintext, style=\"\"];\n";
    const auto line = [&](const char* name, const char* colour, const std::string& text) {
      out_ += message("    ", name, " [label=\"", text, "\", fontcolor=\"", colour, "\"];\n");
    };
    line("legend_vanishing", kVanishing, "vanishing: below " + short_number(options_.vanishing));
    line("legend_exploding", kExploding, "exploding: above " + short_number(options_.exploding));
    line("legend_not_finite", kNotFinite, "NaN or infinite");
    line("legend_nothing", kNothing, "dotted: no gradient came");
    out_ += "  }\n";
  }

  /// Limited: the text would grow with the square of the depth.
  void indent(std::size_t depth) { out_.append(2 * std::min<std::size_t>(depth, 16), ' '); }

  Walk walk_;
  NameTable names_;
  const DotOptions& options_;
  const GradientNorms* norms_;
  std::string out_;
};

}  // namespace

std::string to_dot(const std::vector<Tensor>& roots, const DotOptions& options) {
  if (!(options.vanishing >= 0) || !(options.exploding >= options.vanishing)) {
    throw ValueError(message("to_dot: needs 0 <= vanishing <= exploding, got ", options.vanishing,
                             " and ", options.exploding));
  }
  return Drawing(roots, options).draw();
}

std::string to_dot(const Tensor& root, const DotOptions& options) {
  return to_dot(std::vector<Tensor>{root}, options);
}

}  // namespace baregrad::graph
