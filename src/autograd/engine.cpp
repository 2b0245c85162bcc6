// The walk: accumulation, sums over what was broadcast, hooks, capture.
#include "autograd/engine.h"

#include <algorithm>

#include "autograd/record.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/history.h"
#include "core/message.h"
#include "core/per_thread.h"
#include "ops/watch.h"
#include "parallel/interrupt.h"

namespace baregrad::autograd {

Tensor summed_to(const Tensor& g, const Dims& shape, const char* from) {
  const int lead = g.ndim() - shape.size();
  Dims axes;
  bool fits = lead >= 0;
  for (int i = 0; fits && i < g.ndim(); ++i) {
    if (i >= lead && g.shape()[i] == shape[i - lead]) continue;
    fits = i < lead || shape[i - lead] == 1;
    axes.push_back(i);
  }
  if (!fits) {
    throw GradError(message(from, ": a gradient ", describe(g), " came for a value of shape ",
                            to_string(shape)));
  }
  if (axes.empty()) return g;
  return reshape(sum(g, axes, true), shape);
}

Engine::Engine(const Options& options) : options_(options) {
  Lists* lists = PerThread<Lists>::get();
  if (lists == nullptr) return;
  slots_.swap(lists->slots);
  free_.swap(lists->free);
  turns_.swap(lists->turns);
}

Engine::~Engine() {
  for (Slot& slot : slots_) {
    if (slot.node) leave(static_cast<Node&>(*slot.node));
  }
  constexpr std::size_t kMost = 1024;  // a wide graph does not leave its lists behind
  if (slots_.capacity() > kMost || turns_.capacity() > kMost || free_.capacity() > kMost) return;
  slots_.clear();
  free_.clear();
  turns_.clear();
  Lists* lists = PerThread<Lists>::get();
  if (lists == nullptr) return;
  lists->slots.swap(slots_);
  lists->free.swap(free_);
  lists->turns.swap(turns_);
}

/// Where this walk keeps the gradients of a node; a new one takes its turn.
Engine::Slot& Engine::slot_of(const Edge& to) {
  Node& node = *to;
  if (node.engine_.load(std::memory_order_acquire) == this) return slots_[node.slot_];
  if (!shared_.empty()) {
    // Another walk had it when this one met it first; it stays here even if that one is done.
    const auto found = shared_.find(&node);
    if (found != shared_.end()) return slots_[found->second];
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  Slot& slot = slots_[index];
  if (node.results().size() != 1) {
    slot.several = std::make_unique<Tensors>(node.results().size());
  }
  turns_.push_back({node.number(), index});
  // Taken only when nothing can fail any more: who holds a node must live to leave it.
  Engine* nobody = nullptr;
  if (node.engine_.compare_exchange_strong(nobody, this)) [[likely]] {
    node.slot_ = index;
  } else {
    try {
      shared_[&node] = index;
    } catch (...) {
      turns_.pop_back();
      throw;
    }
  }
  free_.pop_back();
  slot.node = to.node;
  std::push_heap(turns_.begin(), turns_.end());
  return slot;
}

void Engine::leave(Node& node) {
  if (node.engine_.load(std::memory_order_relaxed) == this) {
    node.engine_.store(nullptr, std::memory_order_release);
  } else {
    shared_.erase(&node);
  }
}

/// Nobody else sees it, and no derivative of the sum will be asked for.
bool Engine::may_add_to(const Tensor& gradient) const noexcept {
  return !options_.create_graph && History::is_sole_owner(gradient) && gradient.is_contiguous();
}

void Engine::give(const Edge& to, Tensor gradient, const char* from) {
  if (!to || !gradient.defined()) return;
  const Node& node = *to;
  const Result& result = node.results()[to.output];
  const bool same_shape =
      gradient.ndim() == result.ndim &&
      std::equal(gradient.shape().begin(), gradient.shape().end(), result.sizes);
  if (!same_shape) gradient = summed_to(gradient, result.shape(), from);
  if (gradient.dtype() != result.dtype) gradient = astype(gradient, result.dtype);
  // A number of the CPU took part on another device, or a leaf has moved since.
  if (gradient.device() != result.device) [[unlikely]]
    gradient = to_device(gradient, result.device);
  if (const watch::Mask mask = watch::on(); mask != 0) [[unlikely]] {
    const char* label = current_ != nullptr ? current_->label() : nullptr;
    watch::each(mask, [&](watch::Watcher& w) { w.gradient_made(from, label, gradient); });
  }
  if (node.number() < options_.oldest) {
    options_.beyond->give(to, std::move(gradient), from);
    return;
  }
  if (pruned_) {
    const auto found = leads_.find(&node);
    if (found == leads_.end() || !found->second) return;
  }
  Slot& slot = slot_of(to);
  Tensor& sum = slot.several == nullptr ? slot.one : (*slot.several)[to.output];
  if (!sum.defined()) {
    sum = std::move(gradient);
  } else if (may_add_to(sum)) {
    add_(sum, gradient);
  } else if (may_add_to(gradient)) {
    add_(gradient, sum);
    sum = std::move(gradient);
  } else {
    sum = add(sum, gradient);
  }
}

void Engine::run() {
  const GradModeScope mode(options_.create_graph);
  while (!turns_.empty()) {
    parallel::poll_interrupt();
    const std::uint32_t index = turns_.front().slot;
    std::pop_heap(turns_.begin(), turns_.end());
    turns_.pop_back();
    Slot slot = std::move(slots_[index]);
    free_.push_back(index);
    leave(static_cast<Node&>(*slot.node));
    take(slot);
  }
}

void Engine::take(Slot& slot) {
  Node& node = static_cast<Node&>(*slot.node);
  const std::span<Tensor> gradients =
      slot.several == nullptr ? std::span<Tensor>(&slot.one, 1) : std::span<Tensor>(*slot.several);
  if (node.extras_if_any() != nullptr) run_hooks(node, gradients);
  if (const watch::Mask mask = watch::on(); mask != 0) [[unlikely]] {
    watch::each(mask, [&](watch::Watcher& w) { w.gradients_arrived(node.number(), gradients); });
  }
  if (options_.capture) collect(node, gradients);
  if (node.is_leaf()) {
    if (!options_.capture) {
      static_cast<Leaf&>(node).accumulate(std::move(gradients[0]), options_.create_graph);
    }
    return;
  }
  if (pruned_) {
    const std::span<const Edge> edges = node.edges();
    const bool further = std::any_of(edges.begin(), edges.end(), [&](const Edge& e) {
      if (!e) return false;
      const auto found = leads_.find(&*e);
      return found != leads_.end() && found->second;
    });
    if (!further) return;
  }
  apply(node, gradients);
}

namespace {

/// One walk at work in a node: what it saved stays until the last of them is out.
class Visit {
 public:
  explicit Visit(Node& node) : node_(node) {
    if (node.enter()) return;
    throw GradError(message(node.name(),
                            ": the values its gradient needs were freed by an earlier backward; "
                            "give that one retain_graph = true, or compute the result again"));
  }
  ~Visit() { node_.leave(release_); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  void release_at_end() noexcept { release_ = true; }

 private:
  Node& node_;
  bool release_ = false;
};

}  // namespace

void Engine::apply(Node& node, std::span<const Tensor> gradients) {
  Visit visit(node);
  current_ = &node;
  if (const watch::Mask mask = watch::on(); mask == 0) [[likely]] {
    node.apply(gradients, *this);
  } else {
    watch::each(
        mask, [&](watch::Watcher& w) { w.backward_begins(node.name(), node.label(), gradients); });
    try {
      node.apply(gradients, *this);
    } catch (...) {
      watch::each_in_reverse(mask, [](watch::Watcher& w) { w.backward_failed(); });
      throw;
    }
    watch::each_in_reverse(mask, [&](watch::Watcher& w) { w.backward_ends(node.name()); });
  }
  current_ = nullptr;
  if (!options_.retain_graph) visit.release_at_end();
}

void Engine::run_hooks(Node& node, std::span<Tensor> gradients) {
  // A hook may add or remove hooks, and so may other threads.
  std::vector<Extras::NumberedHook> hooks;
  {
    const std::lock_guard lock(lock_of(node));
    hooks = node.extras().hooks;
  }
  for (const Extras::NumberedHook& hook : hooks) {
    Tensor& gradient = gradients[static_cast<std::size_t>(hook.output)];
    if (!gradient.defined()) continue;
    const Tensor replaced = hook.hook(gradient);
    if (!replaced.defined()) continue;
    if (!(replaced.shape() == gradient.shape()) || replaced.dtype() != gradient.dtype()) {
      throw GradError(message("hook on a result of ", node.name(), ": gave ", describe(replaced),
                              " for a gradient ", describe(gradient)));
    }
    gradient = replaced;
  }
  if (node.is_leaf()) return;
  Tensors old;  // let go of after the lock: a graph may hang on them
  const parallel::UninterruptedScope whole;
  const std::lock_guard lock(lock_of(node));
  Extras& extras = node.extras();
  for (std::size_t k = 0; k < extras.retains.size(); ++k) {
    if (!extras.retains[k] || !gradients[k].defined()) continue;
    Tensor& kept = extras.retained[k];
    old.push_back(std::exchange(kept, kept.defined() ? add(kept, gradients[k]) : gradients[k]));
  }
}

void Engine::collect(const Node& node, std::span<const Tensor> gradients) {
  for (std::size_t i = 0; i < options_.captured.size(); ++i) {
    const Edge& edge = options_.captured[i];
    if (edge && &*edge == &node) captures_[i] = gradients[edge.output];
  }
}

/// From the roots down and back up, on a stack of its own: a node leads somewhere when it is
/// captured or an input of it does.
void Engine::prune(std::span<const Edge> roots) {
  captures_.resize(options_.captured.size());
  for (const Edge& edge : options_.captured) {
    if (edge) leads_[&*edge] = true;
  }
  struct Visit {
    const Node* node;
    std::size_t next;
    bool leads;
  };
  std::vector<Visit> stack;
  std::unordered_map<const Node*, bool> seen;
  const auto enter = [&](const Node* node) {
    const auto [at, fresh] = seen.emplace(node, false);
    if (fresh) stack.push_back({node, 0, leads_.count(node) != 0});
    return at->second;
  };
  for (const Edge& root : roots) {
    enter(&*root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      const std::span<const Edge> edges = top.node->edges();
      if (top.next < edges.size()) {
        const Edge& edge = edges[top.next];
        if (!edge) {
          ++top.next;
          continue;
        }
        const Node* child = &*edge;
        const auto known = seen.find(child);
        if (known == seen.end()) {
          enter(child);  // and come back to this edge when it is done
          continue;
        }
        top.leads |= known->second;
        ++top.next;
        continue;
      }
      seen[top.node] = top.leads;
      if (top.leads) leads_[top.node] = true;
      stack.pop_back();
    }
  }
  pruned_ = true;
}

namespace {

/// The gradient to start with.
Tensor seed_of(const Tensor& output, const Tensor& given, const char* who) {
  if (given.defined()) {
    if (!(given.shape() == output.shape())) {
      throw ShapeError(message(who, ": the gradient ", describe(given),
                               " does not have the shape of ", describe(output)));
    }
    if (!is_floating(given.dtype())) {
      throw DTypeError(message(who, ": the gradient ", describe(given), " is not floating"));
    }
    return given;
  }
  if (output.numel() != 1) {
    throw GradError(message(who, ": ", describe(output),
                            " has more than one element (or none); give its gradient, or reduce it "
                            "to one element first"));
  }
  return ones_like(output);
}

void check_count(const Tensors& outputs, const Tensors& gradients, const char* who) {
  if (gradients.empty() || gradients.size() == outputs.size()) return;
  throw ValueError(
      message(who, ": ", gradients.size(), " gradients for ", outputs.size(), " outputs"));
}

}  // namespace

void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients,
              const GradOptions& options) {
  Engine engine({.retain_graph = options.retain_graph.value_or(options.create_graph),
                 .create_graph = options.create_graph});
  const GradModeScope mode(options.create_graph);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Edge root = root_of(outputs[i], "backward");
    engine.give(root, seed_of(outputs[i], gradients.empty() ? Tensor() : gradients[i], "backward"),
                "backward");
  }
  engine.run();
}

void backward(const Tensors& outputs, const Tensors& gradients, const GradOptions& options) {
  check_count(outputs, gradients, "backward");
  backward(std::span(outputs), std::span(gradients), options);
}

Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& gradients,
             const GradOptions& options) {
  check_count(outputs, gradients, "grad");
  std::vector<Edge> roots;
  for (const Tensor& output : outputs) roots.push_back(root_of(output, "grad"));
  std::vector<Edge> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw ValueError(message("grad: input ", i, " is undefined"));
    wanted.push_back(edge_of(inputs[i]));
    if (!wanted.back()) {
      throw GradError(
          message("grad: input ", i, ", ", describe(inputs[i]), ", does not require a gradient"));
    }
  }
  Engine engine({.retain_graph = options.retain_graph.value_or(options.create_graph),
                 .create_graph = options.create_graph,
                 .captured = wanted,
                 .capture = true});
  engine.prune(roots);
  const GradModeScope mode(options.create_graph);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    engine.give(roots[i], seed_of(outputs[i], gradients.empty() ? Tensor() : gradients[i], "grad"),
                "grad");
  }
  engine.run();
  Tensors found = std::move(engine.captured());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].defined() || options.allow_unused) continue;
    throw GradError(message("grad: the outputs do not depend on input ", i, ", ",
                            describe(inputs[i]),
                            "; allow_unused = true gives an undefined tensor"));
  }
  return found;
}

}  // namespace baregrad::autograd
