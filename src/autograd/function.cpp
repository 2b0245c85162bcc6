// Functions with a gradient of their own.
#include <algorithm>

#include "autograd/node.h"
#include "autograd/op_node.h"
#include "autograd/record.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/history.h"
#include "core/message.h"

namespace baregrad::autograd {

struct Context::State {
  struct Kept {
    Saved saved;
    Edge place;       ///< of an input
    int output = -1;  ///< or which output it is: the node does not own its own results
  };
  Tensors to_save;
  Tensors non_differentiable;
  std::vector<Kept> kept;
  Node* node = nullptr;  ///< while there is one
  const char* name = "";
};

Context::Context() : state_(std::make_unique<State>()) {}
Context::~Context() = default;

void Context::save_for_backward(Tensors tensors) { state_->to_save = std::move(tensors); }

void Context::mark_non_differentiable(Tensors outputs) {
  state_->non_differentiable = std::move(outputs);
}

bool Context::needs_grad(std::size_t tensor_argument) const {
  return state_->node != nullptr && tensor_argument < state_->node->edges().size() &&
         state_->node->needs(tensor_argument);
}

Tensors Context::saved() const {
  if (state_->node == nullptr) return state_->to_save;  // still in forward
  Tensors out;
  for (const State::Kept& kept : state_->kept) {
    if (!kept.saved.value.defined()) {
      out.emplace_back();
      continue;
    }
    check_unchanged(kept.saved, state_->name, state_->node->label());
    const Edge place = kept.output < 0
                           ? kept.place
                           : Edge{ref_to(*state_->node), static_cast<std::uint16_t>(kept.output)};
    out.push_back(unpack(kept.saved, place));
  }
  return out;
}

class FunctionNode final : public Node {
 public:
  FunctionNode(const char* name, FunctionCall::Backward backward, std::shared_ptr<Context> context)
      : name_(name), backward_(backward), context_(std::move(context)) {}
  const char* name() const noexcept override { return name_; }

  void apply(std::span<const Tensor> gradients, Sink& sink) override {
    Tensors given;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      given.push_back(gradients[k].defined()
                          ? gradients[k]
                          : zeros(results()[k].shape(), results()[k].dtype, results()[k].device));
    }
    Tensors made = backward_(*context_, given);
    if (made.size() != edges().size()) {
      throw GradError(message(name_, ": its backward gave ", made.size(), " gradients for ",
                              edges().size(), " tensors that its forward takes"));
    }
    for (std::size_t k = 0; k < made.size(); ++k) sink.give(edges()[k], std::move(made[k]), name_);
  }

  bool has_saved() const noexcept override { return !context_->state_->kept.empty(); }
  void release() noexcept override {
    for (Context::State::Kept& one : context_->state_->kept) one = {};
  }
  Context* context() noexcept override { return context_.get(); }
  Tensors saved_tensors() const override {
    Tensors tensors;
    for (const Context::State::Kept& kept : context_->state_->kept) {
      tensors.push_back(kept.saved.value);
    }
    return tensors;
  }

 private:
  const char* name_;
  FunctionCall::Backward backward_;
  std::shared_ptr<Context> context_;
};

namespace {

bool contains(const Tensors& list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Tensor& other) { return other.defined() && other.is_same(t); });
}

}  // namespace

FunctionCall::FunctionCall(const char* name, Backward backward)
    : name_(name), backward_(backward), context_(std::make_shared<Context>()) {}
FunctionCall::~FunctionCall() = default;

void FunctionCall::add_input(const Tensor& input) { inputs_.push_back(input); }

void FunctionCall::finish(Tensors& outputs) {
  for (const Tensor& t : outputs) {
    if (!t.defined()) throw ValueError(message(name_, ": its forward gave an undefined tensor"));
  }
  std::vector<Edge> edges;
  bool any = false;
  for (const Tensor& t : inputs_) {
    edges.push_back(t.defined() ? edge_of(t) : Edge{});
    any |= static_cast<bool>(edges.back());
  }
  if (!any || !is_grad_enabled()) return;
  Context::State& state = *context_->state_;
  const Tensors made = outputs;
  // Results are new handles: what forward passed through keeps its own history.
  std::vector<const Tensor*> results;
  for (Tensor& t : outputs) {
    t = History::plain(t);
    results.push_back(&t);
  }
  auto* node = Node::make<FunctionNode>({edges.size(), results}, name_, backward_, context_);
  const Ref<GraphNode> ref = Ref<GraphNode>::adopt(node);
  std::move(edges.begin(), edges.end(), node->edges().begin());
  state.node = node;
  state.name = name_;
  std::int16_t which = 0;
  for (const Tensor& t : state.to_save) {
    Context::State::Kept kept;
    kept.saved.which = which++;
    if (t.defined()) {
      kept.saved.value = History::plain(t);
      kept.saved.version = t.version();
      for (std::size_t k = 0; k < made.size(); ++k) {
        if (made[k].is_same(t)) kept.output = static_cast<int>(k);
      }
      if (kept.output < 0) kept.place = edge_of(t);
    }
    state.kept.push_back(std::move(kept));
  }
  state.to_save.clear();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (is_floating(outputs[k].dtype()) && !contains(state.non_differentiable, made[k])) {
      History::set_node(outputs[k], ref, static_cast<std::uint16_t>(k));
    }
  }
  state.non_differentiable.clear();
}

}  // namespace baregrad::autograd
