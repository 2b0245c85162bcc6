// Recording: ops whose inputs have a history leave a node behind.
#include "autograd/record.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "autograd/op_node.h"
#include "autograd/rules.h"
#include "autograd/strided.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/fork.h"
#include "core/history.h"
#include "core/made_once.h"
#include "core/message.h"
#include "ops/attr_types.h"
#include "ops/executor.h"

namespace baregrad::autograd {

namespace {

/// A view seen anew after its base was written into.
class ViewOfBase final : public Node {
 public:
  ViewOfBase(const Layout& view, const Layout& base) : view_(view), base_(base) {}
  const char* name() const noexcept override { return "view"; }
  void apply(std::span<const Tensor> gradients, Sink& sink) override {
    sink.give(edges()[0], embedded(gradients[0], view_, base_), name());
  }

 private:
  Layout view_;
  Layout base_;
};

/// A base after a view of it was written into: what it was, but for what the view sees.
class BaseAfterWrite final : public Node {
 public:
  BaseAfterWrite(const Layout& view, const Layout& base) : view_(view), base_(base) {}
  const char* name() const noexcept override { return "write_into_view"; }
  void apply(std::span<const Tensor> gradients, Sink& sink) override {
    if (needs(1)) sink.give(edges()[1], region(gradients[0], view_, base_), name());
    if (needs(0)) sink.give(edges()[0], without_region(gradients[0], view_, base_), name());
  }

 private:
  Layout view_;
  Layout base_;
};

/// Views are brought up to date by whoever looks first, and not across a fork.
struct Refreshing final : detail::ForkParticipant {
  std::mutex mutex;

  void before_fork() noexcept override { mutex.lock(); }
  void after_fork(bool) noexcept override { mutex.unlock(); }
};
constinit Eternal<Refreshing> g_refreshing;
[[maybe_unused]] const bool g_refreshing_added =
    (detail::add_fork_participant(g_refreshing.value), true);
std::mutex& refresh_mutex() noexcept { return g_refreshing.value.mutex; }

bool is_wanted_leaf(const Tensor& t) {
  const Ref<GraphNode>& node = History::node(t);
  if (!node) return false;
  const auto& n = static_cast<const Node&>(*node);
  return n.is_leaf() && static_cast<const Leaf&>(n).wanted.load(std::memory_order_relaxed);
}

/// What the gradients of a call's inputs need.
struct Wanted {
  bool any = false;       ///< some input has a history
  std::uint8_t keep = 0;  ///< bits of Keep
};

/// Edges beyond the third need what the third does.
std::uint8_t kept_for(const RuleRow& row, std::size_t edge) noexcept {
  return row.keep[std::min<std::size_t>(edge, 2)];
}

Wanted wanted_of(const OpCall& call) {
  Wanted wanted;
  const RuleRow& row = rule_row(call.op);
  if (row.rule == nullptr) return wanted;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    if (!has_history(*call.inputs[k])) continue;
    wanted.any = true;
    wanted.keep |= kept_for(row, k);
  }
  return wanted;
}

bool keeps_input(std::uint8_t keep, std::size_t k) noexcept {
  return (k < 3 && (keep >> k & 1U) != 0) || (k > 0 && (keep & kRest) != 0);
}

/// How long each part of a concatenation was: some of them may not be in the graph.
__attribute__((noinline)) std::vector<std::int64_t> lengths_of(const OpCall& call) {
  const int axis = call.attrs.as<ConcatAttrs>().axis;
  std::vector<std::int64_t> lengths;
  lengths.reserve(call.inputs.size());
  for (const Tensor* t : call.inputs) lengths.push_back(t->shape()[axis]);
  return lengths;
}

bool is_activated(const OpCall& call) {
  return call.attrs.or_default<ProductAttrs>().activation != Activation::None;
}

/// The node of one call, made before or after it runs.
class Recorded {
 public:
  /// With edges to the inputs that have a history and the values of the inputs that `wanted` names;
  /// those in `overwritten` storage as a copy. `extra`: an edge more than inputs, for the old value
  /// of an output that is added to.
  Recorded(const OpCall& call, Wanted wanted, std::span<const Tensor* const> results,
           const Tensor* overwritten = nullptr, const Edge* extra = nullptr)
      : keep_(wanted.keep) {
    if ((keep_ & kOutIfActivated) != 0 && is_activated(call)) keep_ |= kOut;
    const std::size_t count = call.inputs.size();
    std::size_t saved = ((keep_ & kOut) != 0 ? 1 : 0) + ((keep_ & kSecond) != 0 ? 1 : 0);
    for (std::size_t k = 0; k < count; ++k) saved += keeps_input(keep_, k) ? 1 : 0;
    std::vector<std::int64_t> notes;
    if (call.op == OpId::concat) [[unlikely]]
      notes = lengths_of(call);
    const NodeSpec spec{count + (extra != nullptr ? 1 : 0), results,
                        OpNode::bytes(saved, call.attrs, notes.size())};
    node_ = Node::make<OpNode>(spec, call.op);
    ref_ = Ref<GraphNode>::adopt(node_);
    node_->describe(call.attrs, notes);
    const std::span<Edge> edges = node_->edges();
    const bool differentiable = rule_row(call.op).rule != nullptr;
    for (std::size_t k = 0; k < count; ++k) {
      const Tensor& t = *call.inputs[k];
      if (differentiable) edges[k] = edge_of(t);
      if (!keeps_input(keep_, k)) continue;
      const bool lost = overwritten != nullptr && t.same_storage(*overwritten);
      node_->save(lost ? clone(t) : History::plain(t), static_cast<std::int16_t>(k));
    }
    if (extra != nullptr) edges[count] = *extra;
  }

  /// Once the results are there: keeps those that the rule needs.
  Ref<GraphNode> finish(std::span<const Tensor* const> results) {
    if ((keep_ & kOut) != 0) node_->save(History::plain(*results[0]), Saved::result(0));
    if ((keep_ & kSecond) != 0 && results.size() > 1) {
      node_->save(History::plain(*results[1]), Saved::result(1));
    }
    return std::move(ref_);
  }

 private:
  std::uint8_t keep_;
  OpNode* node_;
  Ref<GraphNode> ref_;
};

}  // namespace

void refresh(const Tensor& view) {
  Ref<GraphNode> old;  // let go of after the lock: what hangs on it may wait for other locks
  const std::lock_guard lock(refresh_mutex());
  const std::uint32_t version = view.version();
  if (History::stamp(view) == version) return;
  old = History::node(view);
  const Tensor base = History::base(view);
  if (History::is_cut_off(view)) {
    throw GradError(message("view: ", describe(view), " is a view of ", describe(base),
                            " from before its elements were exchanged (set_data, Module::to), and "
                            "was written into since; make the view again"));
  }
  const Edge to = edge_of(base);
  if (to) {
    const Tensor* result = &view;
    auto* node = Node::make<ViewOfBase>({1, {&result, 1}}, view.layout(), base.layout());
    node->edges()[0] = to;
    History::set_node(view, Ref<GraphNode>::adopt(node), 0);
  } else if (History::node(view)) {
    History::set_node(view, {}, 0);
  }
  History::set_stamp(view, version);
}

Edge edge_of(const Tensor& t) {
  if (!has_history(t)) return {};
  return {History::node(t), History::output(t)};
}

Edge root_of(const Tensor& t, const char* who) {
  if (!t.defined()) throw ValueError(message(who, ": a tensor given is undefined"));
  Edge edge = edge_of(t);
  if (edge) return edge;
  throw GradError(
      message(who, ": ", describe(t),
              " has no history: nothing it was made from requires a gradient, or it was "
              "made under no_grad"));
}

Leaf& leaf_of(const Tensor& t) {
  if (!History::node(t)) {
    const Tensor* result = &t;
    History::set_leaf(t, Ref<GraphNode>::adopt(Node::make<Leaf>({0, {&result, 1}})));
  }
  return static_cast<Leaf&>(*History::node(t));
}

void check_may_write(const Tensor& t, const char* who) {
  const bool view = History::is_view(t);
  if (is_wanted_leaf(t) || (view && is_wanted_leaf(History::base(t)))) {
    throw GradError(message(who, ": cannot write into ", view ? "a view of " : "",
                            "a leaf that requires a gradient, ", describe(t),
                            "; do it under no_grad, or on a clone"));
  }
}

void rebind(const Tensor& t, const Edge& made) {
  if (History::is_view(t) && History::is_cut_off(t)) History::make_root(t);
  if (History::is_view(t)) {
    const Tensor base = History::base(t);
    const Tensor* result = &base;
    auto* after = Node::make<BaseAfterWrite>({2, {&result, 1}}, t.layout(), base.layout());
    Ref<GraphNode> ref = Ref<GraphNode>::adopt(after);
    after->edges()[0] = edge_of(base);
    after->edges()[1] = made;
    History::set_node(base, std::move(ref), 0);
  }
  History::set_node(t, made.node, made.output);
  History::set_stamp(t, t.version());
}

namespace {

/// A write into the outputs, of which the first may have a history: a graph has no node with two
/// overwritten results.
void record_write(const OpCall& call) {
  const Tensor& out = call.outputs[0];
  // A product may be added to what is there.
  const bool adds =
      call.kind == CallKind::Update || (op_info(call.op).family == Family::Product &&
                                        call.attrs.or_default<ProductAttrs>().accumulate);
  if (!is_floating(out.dtype())) {
    execute_below_tape(call, {});
    return;
  }
  const Edge old = adds ? edge_of(out) : Edge();
  Wanted wanted = wanted_of(call);
  if (old) {
    wanted.any = true;
    wanted.keep |= kept_for(rule_row(call.op), call.inputs.size());
  }
  if (!wanted.any && !History::maybe_tracked(out)) {
    execute_below_tape(call, {});
    return;
  }
  check_may_write(out, call.name());
  if (History::is_untracked_view(out)) {
    throw GradError(message(call.name(), ": cannot write into ", describe(out),
                            ", a view made under no_grad of a tensor with a history"));
  }
  const GradModeScope off(false);
  const Tensor* result = &out;
  Recorded recorded(call, wanted, {&result, 1}, &out, adds ? &old : nullptr);
  execute_below_tape(call, {});
  Ref<GraphNode> node = recorded.finish({&result, 1});
  const GradModeScope on(true);
  rebind(out, {std::move(node), 0});
}

void record_one(const OpCall& call, Tensor& out) {
  {
    // A view notes whether it was made while recording.
    const GradModeScope mode(op_info(call.op).family == Family::View);
    out = make_below_tape(call);
  }
  if (!is_floating(out.dtype())) return;
  const Wanted wanted = wanted_of(call);
  if (!wanted.any) return;
  const Tensor* result = &out;
  Recorded recorded(call, wanted, {&result, 1});
  History::set_node(out, recorded.finish({&result, 1}), 0);
}

void record_many(const OpCall& call, std::span<Tensor> outputs) {
  const GradModeScope off(false);
  execute_below_tape(call, outputs);
  const Wanted wanted = wanted_of(call);
  if (!wanted.any || outputs.empty() || !is_floating(outputs[0].dtype())) return;
  std::vector<const Tensor*> results;
  results.reserve(outputs.size());
  for (const Tensor& t : outputs) results.push_back(&t);
  Recorded recorded(call, wanted, results);
  const Ref<GraphNode> node = recorded.finish(results);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (is_floating(outputs[k].dtype())) {
      History::set_node(outputs[k], node, static_cast<std::uint16_t>(k));
    }
  }
}

/// The tape: this thread records, and an input or output has a history.
void record(const OpCall& call, std::span<Tensor> results) {
  if (call.kind != CallKind::Make) {
    record_write(call);
  } else if (results.size() == 1) {
    record_one(call, results[0]);
  } else {
    record_many(call, results);
  }
}

[[maybe_unused]] const bool g_tape_set = (set_tape(record), true);

}  // namespace
}  // namespace baregrad::autograd
