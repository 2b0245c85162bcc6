// Looking at a recorded graph: as a picture, as a table, and with the size of every gradient.
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

/// While one lives, every backward, in any thread, leaves the Euclidean norms of the gradients it
/// computes here: one number per value of the graph. A later backward over the same graph replaces
/// them. Nothing is kept alive, and without a recorder nothing is computed.
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

  /// Norm of the gradient of `t`, summed over all its uses: NaN when it holds one, else an infinity
  /// when it holds one. Nothing when no gradient came.
  std::optional<double> norm(const Tensor& t) const;
  /// How many values have a norm.
  std::size_t size() const;
  void clear();
  /// Records no more; what it has stays.
  void stop() noexcept;

  const GradientNorms& norms() const noexcept { return *norms_; }

 private:
  std::unique_ptr<GradientNorms> norms_;
};

/// Names of tensors in pictures and tables. Those that are not part of the graph are passed over.
using Names = std::vector<std::pair<std::string, Tensor>>;

struct DotOptions {
  Names names = {};
  /// Edges carry the norms found here, and colours where they are outside the bounds below.
  const GradientRecorder* gradients = nullptr;
  double vanishing = 1e-7;
  double exploding = 1e3;
  /// Beyond this many, those farthest from the roots are one node that says how many they are.
  std::int64_t max_nodes = 2000;
};
/// The graph behind `root` in Graphviz's language: an edge is a value on its way from the op that
/// made it to an op that uses it, a frame is an autograd::Label. The text is the same every time.
/// Throws GradError when the tensor has no history.
[[nodiscard]] BAREGRAD_API std::string to_dot(const Tensor& root, const DotOptions& options = {});
[[nodiscard]] BAREGRAD_API std::string to_dot(const std::vector<Tensor>& roots,
                                              const DotOptions& options = {});

struct SummaryOptions {
  Names names = {};
  /// Rows beyond this many, of the nodes farthest from the roots, are left out; the totals count
  /// them.
  std::int64_t max_nodes = 200;
};
/// The same graph as a table for a terminal, in the order in which the ops ran: op, shape, dtype,
/// bytes kept for backward, inputs, label; and totals. Throws GradError as to_dot does.
[[nodiscard]] BAREGRAD_API std::string summary(const Tensor& root,
                                               const SummaryOptions& options = {});
[[nodiscard]] BAREGRAD_API std::string summary(const std::vector<Tensor>& roots,
                                               const SummaryOptions& options = {});

}  // namespace baregrad::graph
