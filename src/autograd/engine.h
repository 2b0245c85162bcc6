// The walk from results back to leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "autograd/node.h"

namespace baregrad::autograd {

/// One walk. Nodes are taken in the order of their numbers, the newest first: a node's consumers
/// are all newer, so its gradient is complete when its turn comes, and sums are formed in the same
/// order every time. No recursion, no counting of dependencies beforehand.
class Engine final : public Sink {
 public:
  struct Options {
    bool retain_graph = false;
    bool create_graph = false;
    /// Gradients of these are collected instead of being added to the leaves.
    std::span<const Edge> captured = {};
    bool capture = false;
    /// Gradients for nodes older than this are passed on as they come.
    std::uint64_t oldest = 0;
    Sink* beyond = nullptr;
  };

  explicit Engine(const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void give(const Edge& to, Tensor gradient, const char* from) override;
  void run();
  /// What was captured, undefined where nothing arrived.
  Tensors& captured() noexcept { return captures_; }

  /// For `captured`: which nodes lie on a way from the roots to one of them.
  void prune(std::span<const Edge> roots);

 private:
  struct Slot {
    Ref<GraphNode> node;
    Tensor one;                        // the gradient of a node with one result
    std::unique_ptr<Tensors> several;  // of others
  };
  struct Turn {
    std::uint64_t number;
    std::uint32_t slot;
    bool operator<(const Turn& other) const noexcept { return number < other.number; }
  };

  Slot& slot_of(const Edge& to);
  bool may_add_to(const Tensor& gradient) const noexcept;
  void leave(Node& node);
  void take(Slot& slot);
  void run_hooks(Node& node, std::span<Tensor> gradients);
  void collect(const Node& node, std::span<const Tensor> gradients);
  void apply(Node& node, std::span<const Tensor> gradients);

  /// Lists whose memory outlives the walk: the next one in this thread begins with it.
  struct Lists {
    std::vector<Slot> slots;
    std::vector<std::uint32_t> free;
    std::vector<Turn> turns;
  };

  Options options_;
  const Node* current_ = nullptr;  // whose rule runs
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<Turn> turns_;  // a heap, the newest node first
  /// Nodes that another walk has in hand at this moment.
  std::unordered_map<const Node*, std::uint32_t> shared_;
  Tensors captures_;
  bool pruned_ = false;
  std::unordered_map<const Node*, bool> leads_;  // to something captured
};

/// autograd::backward without lists.
void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients,
              const GradOptions& options);

/// `g` summed down to `shape`, the reverse of broadcasting. Throws GradError naming `from`.
Tensor summed_to(const Tensor& g, const Dims& shape, const char* from);

}  // namespace baregrad::autograd
