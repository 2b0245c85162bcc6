// Views of a recorded graph: as a picture, as a table, and with the norms of gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad::graph {

class GradientNorms;

/// Records the Euclidean norms of the gradients of every backward, in all threads, during its
/// lifetime: one number per value of the graph. A later backward over the same graph replaces them.
/// The recorder keeps no tensor alive. Without a recorder no norm is computed.
///
///   graph::GradientRecorder gradients;
///   loss.backward();
///   std::string dot = graph::to_dot(loss, {.gradients = &gradients});
class [[nodiscard]] BAREGRAD_API GradientRecorder {
 public:
  [[nodiscard]] GradientRecorder();
  ~GradientRecorder();
  GradientRecorder(const GradientRecorder&) = delete;
  GradientRecorder& operator=(const GradientRecorder&) = delete;

  /// The norm of the gradient of `t`, which is the sum over all uses of `t`. NaN if an element is
  /// NaN, otherwise infinity if an element is infinite. Empty if `t` received no gradient.
  std::optional<double> norm(const Tensor& t) const;
  /// The number of values with a norm.
  std::size_t size() const;
  void clear();
  /// Ends recording. Recorded norms are kept.
  void stop() noexcept;

  const GradientNorms& norms() const noexcept { return *norms_; }

 private:
  std::unique_ptr<GradientNorms> norms_;
};

/// Names of tensors in pictures and tables. Tensors that are not part of the graph are ignored.
using Names = std::vector<std::pair<std::string, Tensor>>;

struct DotOptions {
  Names names = {};
  /// Edges are labelled with these norms and coloured if a norm is outside the bounds below.
  const GradientRecorder* gradients = nullptr;
  double vanishing = 1e-7;
  double exploding = 1e3;
  /// Of a larger graph, the nodes farthest from the roots are drawn as one node with their number.
  std::int64_t max_nodes = 2000;
};
/// The graph of `root` in Graphviz's language. An edge is a value, from the op that made it to an
/// op that uses it. A frame is an autograd::Label. The text is deterministic. Throws GradError if
/// the tensor has no history.
[[nodiscard]] BAREGRAD_API std::string to_dot(const Tensor& root, const DotOptions& options = {});
[[nodiscard]] BAREGRAD_API std::string to_dot(const std::vector<Tensor>& roots,
                                              const DotOptions& options = {});

struct SummaryOptions {
  Names names = {};
  /// Of a larger graph, the nodes farthest from the roots have no row. The totals include them.
  std::int64_t max_nodes = 200;
};
/// The same graph as a table for a terminal, in the order of execution: op, shape, dtype, bytes
/// saved for backward, inputs, label; and totals. Throws GradError as to_dot does.
[[nodiscard]] BAREGRAD_API std::string summary(const Tensor& root,
                                               const SummaryOptions& options = {});
[[nodiscard]] BAREGRAD_API std::string summary(const std::vector<Tensor>& roots,
                                               const SummaryOptions& options = {});

}  // namespace baregrad::graph
