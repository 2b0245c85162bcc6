// checkpoint: forget what was computed on the way, compute it again when the gradient comes.
#include <algorithm>
#include <unordered_set>

#include "autograd/engine.h"
#include "autograd/op_node.h"
#include "autograd/record.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "core/history.h"
#include "core/message.h"

namespace baregrad::autograd {

namespace {

using Segment = std::function<Tensors(const Tensors&)>;

/// The edges that lead from the graph behind `outputs` to nodes older than `start`: all that the
/// segment depends on, parameters that it captured included.
std::vector<Edge> edges_out(const Tensors& outputs, std::uint64_t start) {
  std::vector<Edge> found;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  const auto look = [&](const Edge& edge) {
    if (!edge) return;
    const Node* node = &*edge;
    if (node->number() >= start) {
      if (seen.insert(node).second) stack.push_back(node);
      return;
    }
    const bool known = std::any_of(found.begin(), found.end(), [&](const Edge& e) {
      return &*e == node && e.output == edge.output;
    });
    if (!known) found.push_back(edge);
  };
  for (const Tensor& t : outputs) {
    if (t.defined()) look(edge_of(t));
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->edges()) look(edge);
  }
  return found;
}

/// The default generator as it was, for the length of a scope.
class ReplayedRandom {
 public:
  explicit ReplayedRandom(const Generator::State& state) : now_(default_generator().state()) {
    default_generator().set_state(state);
  }
  ~ReplayedRandom() { default_generator().set_state(now_); }
  ReplayedRandom(const ReplayedRandom&) = delete;
  ReplayedRandom& operator=(const ReplayedRandom&) = delete;

 private:
  Generator::State now_;
};

class CheckpointNode final : public Node {
 public:
  CheckpointNode(Segment fn, const Tensors& inputs, const Generator::State& random)
      : fn_(std::move(fn)), random_(random) {
    std::int16_t which = 0;
    for (const Tensor& t : inputs) {
      Saved saved;
      saved.which = which++;
      if (t.defined()) {
        saved.value = History::plain(t);
        saved.version = t.version();
      }
      inputs_.push_back(std::move(saved));
      places_.push_back(t.defined() ? edge_of(t) : Edge{});
    }
  }
  const char* name() const noexcept override { return "checkpoint"; }

  void apply(std::span<const Tensor> gradients, Sink& sink) override {
    const bool create_graph = History::recording();
    const std::uint64_t start = upcoming_number();
    Tensors outputs;
    {
      const GradModeScope on(true);
      const ReplayedRandom replay(random_);
      Tensors inputs;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].value.defined()) check_unchanged(inputs_[i], name(), label());
        inputs.push_back(inputs_[i].value.defined() ? unpack(inputs_[i], places_[i]) : Tensor());
      }
      outputs = fn_(inputs);
    }
    std::erase_if(outputs, [](const Tensor& t) { return !t.defined(); });
    if (outputs.size() != gradients.size()) {
      throw GradError(message("checkpoint: the function gave ", outputs.size(),
                              " tensors when it ran again, and ", gradients.size(), " before"));
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].shape() == results()[k].shape() && outputs[k].dtype() == results()[k].dtype) {
        continue;
      }
      throw GradError(message("checkpoint: the function gave ", describe(outputs[k]),
                              " when it ran again, and ", baregrad::name(results()[k].dtype),
                              to_string(results()[k].shape()), " before"));
    }
    Engine engine({.retain_graph = create_graph,
                   .create_graph = create_graph,
                   .oldest = start,
                   .beyond = &sink});
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (gradients[k].defined()) engine.give(edge_of(outputs[k]), gradients[k], name());
    }
    engine.run();
  }
  bool has_saved() const noexcept override { return true; }
  void release() noexcept override {
    inputs_.clear();
    places_.clear();
    fn_ = nullptr;
  }
  const Segment* segment() const noexcept override { return &fn_; }
  Tensors saved_tensors() const override {
    Tensors tensors;
    for (const Saved& input : inputs_) tensors.push_back(input.value);
    return tensors;
  }

 private:
  Segment fn_;
  Generator::State random_;
  std::vector<Saved> inputs_;
  std::vector<Edge> places_;
};

}  // namespace

Tensors checkpoint(std::function<Tensors(const Tensors& inputs)> fn, const Tensors& inputs) {
  if (!fn) throw ValueError("checkpoint: the function is empty");
  if (!is_grad_enabled()) return fn(inputs);
  const Generator::State random = default_generator().state();
  const std::uint64_t start = upcoming_number();
  Tensors made = fn(inputs);
  std::vector<Edge> edges = edges_out(made, start);
  if (edges.empty()) return made;
  Tensors outputs;
  std::vector<const Tensor*> results;
  outputs.reserve(made.size());
  for (const Tensor& t : made) {
    outputs.push_back(t.defined() ? History::plain(t) : Tensor());
    if (t.defined()) results.push_back(&outputs.back());
  }
  auto* node = Node::make<CheckpointNode>({edges.size(), results}, std::move(fn), inputs, random);
  const Ref<GraphNode> ref = Ref<GraphNode>::adopt(node);
  std::move(edges.begin(), edges.end(), node->edges().begin());
  // Results of the node are numbered without the undefined ones.
  std::uint16_t result = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].defined()) continue;
    if (edge_of(made[k])) History::set_node(outputs[k], ref, result);
    ++result;
  }
  return outputs;
}

}  // namespace baregrad::autograd
