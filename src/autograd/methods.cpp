// Tensor's methods about gradients, and the switches of recording.
#include <algorithm>

#include "autograd/engine.h"
#include "autograd/node.h"
#include "autograd/record.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/history.h"
#include "core/message.h"

namespace baregrad {

namespace autograd {

bool is_grad_enabled() noexcept { return History::recording(); }
void set_grad_enabled(bool enabled) noexcept { History::set_recording(enabled); }

namespace {

void require_defined(const Tensor& t, const char* who) {
  if (!t.defined()) throw ValueError(message(who, ": the tensor is undefined"));
}

/// The node of a tensor that has one, for hooks and kept gradients.
Node& node_of(const Tensor& t, const char* who) {
  require_defined(t, who);
  const Edge edge = edge_of(t);
  if (!edge) {
    throw GradError(message(who, ": ", describe(t), " does not require a gradient"));
  }
  return *edge;
}

const Node* node_if_any(const Tensor& t) noexcept {
  return t.defined() && History::node(t) ? static_cast<const Node*>(History::node(t).get())
                                         : nullptr;
}

}  // namespace
}  // namespace autograd

using autograd::Edge;
using autograd::edge_of;
using autograd::Leaf;
using autograd::Node;

bool Tensor::requires_grad() const noexcept {
  if (!defined() || !History::maybe_tracked(*this)) return false;
  try {
    return autograd::has_history(*this);
  } catch (...) {
    return true;  // no memory to bring a view up to date: its base has a history
  }
}

const Tensor& Tensor::requires_grad_(bool wanted) const {
  constexpr const char* kWho = "requires_grad_";
  autograd::require_defined(*this, kWho);
  if (!is_leaf()) {
    if (wanted) return *this;
    throw GradError(message(kWho, ": ", describe(*this), " is the result of ", grad_fn(),
                            "; only a leaf can stop requiring a gradient, use detach"));
  }
  if (wanted && !is_floating(dtype())) {
    throw DTypeError(
        message(kWho, ": only floating tensors have gradients, not ", describe(*this)));
  }
  if (wanted || History::node(*this)) autograd::leaf_of(*this).wanted = wanted;
  if (wanted) History::make_root(*this);
  return *this;
}

bool Tensor::is_leaf() const noexcept {
  if (!requires_grad()) return true;
  return static_cast<const Node&>(*History::node(*this)).is_leaf();
}

Tensor Tensor::grad() const {
  autograd::require_defined(*this, "grad");
  const Node* node = autograd::node_if_any(*this);
  if (node == nullptr) return {};
  if (node->is_leaf()) return static_cast<const Leaf*>(node)->grad();
  const autograd::Extras* extras = node->extras_if_any();
  const std::size_t k = History::output(*this);
  if (extras == nullptr) return {};
  const std::lock_guard lock(autograd::lock_of(*node));
  return k < extras->retained.size() ? extras->retained[k] : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) const {
  constexpr const char* kWho = "set_grad";
  autograd::require_defined(*this, kWho);
  if (gradient.defined() && (!(gradient.shape() == shape()) || gradient.dtype() != dtype())) {
    throw ShapeError(
        message(kWho, ": ", describe(gradient), " cannot be the gradient of ", describe(*this)));
  }
  if (gradient.defined() && gradient.device() != device()) {
    throw ValueError(message(kWho, ": ", describe(gradient), " on ", to_string(gradient.device()),
                             " cannot be the gradient of a tensor on ", to_string(device())));
  }
  if (gradient.defined() && gradient.is_same(*this)) {
    throw ValueError(message(kWho, ": ", describe(*this),
                             " cannot be its own gradient, which would keep it alive for ever; "
                             "give a clone, or detach() for the same memory"));
  }
  if (!is_leaf()) {
    throw GradError(message(kWho, ": ", describe(*this), " is the result of ", grad_fn(),
                            " and has no gradient of its own"));
  }
  if (!gradient.defined() && !History::node(*this)) return;
  const bool had = static_cast<bool>(History::node(*this));
  Leaf& leaf = autograd::leaf_of(*this);
  if (!had) leaf.wanted = false;
  leaf.set_grad(gradient);
}

void Tensor::zero_grad() const {
  autograd::require_defined(*this, "zero_grad");
  set_grad({});
}

void Tensor::set_data(const Tensor& source) const {
  constexpr const char* kWho = "set_data";
  autograd::require_defined(*this, kWho);
  autograd::require_defined(source, kWho);
  if (source.is_same(*this)) return;
  if (!(source.shape() == shape())) {
    throw ShapeError(message(kWho, ": ", describe(source), " cannot be the elements of ",
                             describe(*this), ": the shape stays"));
  }
  if (!is_leaf()) {
    throw GradError(message(kWho, ": ", describe(*this), " is the result of ", grad_fn(),
                            "; only leaves can be given other elements, use detach"));
  }
  auto* const leaf = static_cast<Leaf*>(History::node(*this).get());
  if (leaf != nullptr && leaf->wanted && !is_floating(source.dtype())) {
    throw DTypeError(message(kWho, ": ", describe(*this), " requires a gradient, which ",
                             describe(source), " cannot have"));
  }
  if (leaf != nullptr && (source.dtype() != dtype() || source.device() != device())) {
    const Tensor gradient = leaf->grad();
    if (gradient.defined()) {
      const autograd::GradModeScope off(false);
      leaf->set_grad(astype(gradient.detach(), source.dtype(), false).to(source.device()));
    }
    leaf->set_kind(source.dtype(), source.device());
  }
  History::set_elements(*this, source);
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph,
                      bool create_graph) const {
  autograd::backward({this, 1}, {&gradient, gradient.defined() ? 1U : 0U},
                     {.retain_graph = retain_graph, .create_graph = create_graph});
}

Tensor Tensor::detach() const {
  autograd::require_defined(*this, "detach");
  return History::plain(*this);
}

const Tensor& Tensor::retain_grad() const {
  Node& node = autograd::node_of(*this, "retain_grad");
  if (node.is_leaf()) return *this;
  autograd::Extras& extras = node.extras();
  const std::lock_guard lock(autograd::lock_of(node));
  if (extras.retains.empty()) {
    extras.retains.resize(node.results().size());
    extras.retained.resize(node.results().size());
  }
  extras.retains[History::output(*this)] = true;
  return *this;
}

int Tensor::register_hook(autograd::Hook hook) const {
  if (!hook) throw ValueError("register_hook: the hook is empty");
  Node& node = autograd::node_of(*this, "register_hook");
  autograd::Extras& extras = node.extras();
  const std::lock_guard lock(autograd::lock_of(node));
  extras.hooks.push_back({extras.next_id, History::output(*this), std::move(hook)});
  return extras.next_id++;
}

void Tensor::remove_hook(int id) const {
  Node& node = autograd::node_of(*this, "remove_hook");
  autograd::Extras& extras = node.extras();
  autograd::Hook gone;  // let go of after the lock: it may be another language's
  const std::lock_guard lock(autograd::lock_of(node));
  const auto found = std::find_if(extras.hooks.begin(), extras.hooks.end(),
                                  [id](const auto& hook) { return hook.id == id; });
  if (found == extras.hooks.end()) return;
  gone = std::move(found->hook);
  extras.hooks.erase(found);
}

const char* Tensor::grad_fn() const noexcept {
  if (!requires_grad()) return "";
  const auto& node = static_cast<const Node&>(*History::node(*this));
  return node.is_leaf() ? "" : node.name();
}

}  // namespace baregrad
