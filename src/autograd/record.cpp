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
#include "core/history.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/tape.h"
#include "ops/watch.h"

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

/// Views are brought up to date by whoever looks first.
std::mutex& refresh_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

void refresh(const Tensor& view) {
  Ref<GraphNode> old;  // let go of after the lock: what hangs on it may wait for other locks
  const std::lock_guard lock(refresh_mutex());
  const std::uint32_t version = view.version();
  if (History::stamp(view) == version) return;
  old = History::node(view);
  const Tensor base = History::base(view);
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

bool is_wanted(const Node& node) {
  return !node.is_leaf() || static_cast<const Leaf&>(node).wanted.load(std::memory_order_relaxed);
}

bool is_wanted_leaf(const Tensor& t) {
  const Ref<GraphNode>& node = History::node(t);
  if (!node) return false;
  const auto& n = static_cast<const Node&>(*node);
  return n.is_leaf() && is_wanted(n);
}

/// A few on the stack, many (concat, positions) on the heap.
template <class T>
class ShortList {
 public:
  explicit ShortList(std::size_t most) {
    if (most > kFew) many_ = std::make_unique<T[]>(most);
  }
  T* data() noexcept { return many_ ? many_.get() : few_.data(); }
  void push(T value) { data()[size_++] = std::move(value); }
  std::span<T> all() noexcept { return {data(), size_}; }

 private:
  static constexpr std::size_t kFew = 5;
  std::array<T, kFew> few_;
  std::unique_ptr<T[]> many_;
  std::size_t size_ = 0;
};

/// What a call leaves in the graph, collected before and after it runs.
class Record {
 public:
  /// `extra`: an edge more than inputs, for the old value of an output that is added to.
  explicit Record(const OpCall& call, bool extra = false)
      : call_(call),
        row_(rule_row(call.op)),
        edges_(call.inputs.size() + (extra ? 1 : 0)),
        saved_(call.inputs.size() + 2) {
    if (row_.rule == nullptr) return;
    for (const Tensor* t : call.inputs) add_edge(edge_of(*t));
  }

  void add_edge(Edge edge) {
    any_ |= static_cast<bool>(edge);
    edges_.push(std::move(edge));
  }
  bool any() const noexcept { return any_; }

  /// Keeps the inputs that the rule needs; those in `overwritten` storage as a copy.
  void save_inputs(const Tensor* overwritten = nullptr) {
    std::uint8_t keep = 0;
    const std::span<Edge> edges = edges_.all();
    for (std::size_t k = 0; k < edges.size(); ++k) {
      if (edges[k]) keep |= row_.keep[std::min<std::size_t>(k, 2)];
    }
    keep_ = keep;
    for (std::size_t k = 0; k < call_.inputs.size(); ++k) {
      const bool kept = (k < 3 && (keep >> k & 1U) != 0) || (k > 0 && (keep & kRest) != 0);
      if (!kept) continue;
      const Tensor& t = *call_.inputs[k];
      const bool lost = overwritten != nullptr && t.same_storage(*overwritten);
      Tensor value = lost ? clone(t) : History::plain(t);
      const std::uint32_t version = value.version();
      saved_.push({std::move(value), version, static_cast<std::int16_t>(k)});
    }
  }

  Ref<GraphNode> finish(std::span<const Tensor* const> results) {
    if ((keep_ & kOut) != 0 || ((keep_ & kOutIfMode) != 0 && call_.attrs.mode != 0)) {
      saved_.push({History::plain(*results[0]), results[0]->version(), Saved::result(0)});
    }
    if ((keep_ & kSecond) != 0) {
      saved_.push({History::plain(*results[1]), results[1]->version(), Saved::result(1)});
    }
    const bool attrs = &call_.attrs != &kNoAttrs;
    // How long each part was: some of them may not be in the graph.
    ShortList<std::int64_t> notes(call_.op == OpId::concat ? call_.inputs.size() : 0);
    if (call_.op == OpId::concat) {
      for (const Tensor* t : call_.inputs) notes.push(t->shape()[call_.attrs.axis]);
    }
    const std::span<Saved> saved = saved_.all();
    const NodeSpec spec{edges_.all().size(), results,
                        OpNode::bytes(saved.size(), attrs, notes.all().size())};
    auto* node = Node::make<OpNode>(spec, call_.op, saved.size(), notes.all().size());
    Ref<GraphNode> ref = Ref<GraphNode>::adopt(node);
    node->fill(saved, attrs ? &call_.attrs : nullptr, notes.all());
    std::size_t k = 0;
    for (Edge& edge : edges_.all()) node->edges()[k++] = std::move(edge);
    return ref;
  }

 private:
  const OpCall& call_;
  const RuleRow& row_;
  ShortList<Edge> edges_;
  ShortList<Saved> saved_;
  std::uint8_t keep_ = 0;
  bool any_ = false;
};

/// Tells the watchers, also when the op throws.
class Watched {
 public:
  explicit Watched(const OpCall& call) : call_(call), told_(watch::on()) {
    watch::each(told_, [&](watch::Watcher& w) { w.op_begins(call_); });
  }
  void done(std::span<const Tensor> results) {
    watch::each_in_reverse(std::exchange(told_, 0),
                           [&](watch::Watcher& w) { w.op_ends(call_, results); });
  }
  ~Watched() {
    watch::each_in_reverse(told_, [](watch::Watcher& w) { w.op_failed(); });
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  const OpCall& call_;
  watch::Mask told_;
};

}  // namespace

Edge edge_of(const Tensor& t) {
  if (History::is_view(t) && History::stamp(t) != t.version() && !History::is_untracked_view(t)) {
    refresh(t);
  }
  const Ref<GraphNode>& node = History::node(t);
  if (!node || !is_wanted(static_cast<const Node&>(*node))) return {};
  return {node, History::output(t)};
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

/// A write into `out`, which was `old` in the graph.
template <class Execute>
void record_write(const OpCall& call, const Tensor& out, bool keeps_old, const Execute& execute) {
  Watched watched(call);
  const auto run = [&] {
    execute(call, out);
    watched.done({&out, 1});
  };
  if (!History::recording() || !is_floating(out.dtype())) {
    run();
    return;
  }
  const Edge old = edge_of(out);
  Record record(call, keeps_old);
  if (keeps_old) record.add_edge(old);
  if (!record.any() && !History::maybe_tracked(out)) {
    run();
    return;
  }
  check_may_write(out, call.name());
  if (History::is_untracked_view(out)) {
    throw GradError(message(call.name(), ": cannot write into ", describe(out),
                            ", a view made under no_grad of a tensor with a history"));
  }
  const GradModeScope off(false);
  record.save_inputs(&out);
  run();
  const Tensor* result = &out;
  Ref<GraphNode> node = record.finish({&result, 1});
  const GradModeScope on(true);
  rebind(out, {std::move(node), 0});
}

}  // namespace
}  // namespace baregrad::autograd

namespace baregrad::tape {

using autograd::GradModeScope;
using autograd::Record;
using autograd::Watched;

Tensor run(const OpCall& call) {
  Watched watched(call);
  const auto finished = [&](Tensor out) {
    watched.done({&out, 1});
    return out;
  };
  if (!History::recording()) return finished(execute(call));
  Record record(call);
  // A view notes whether it was made while recording.
  const bool view = op_info(call.op).family == Family::View;
  if (view) {
    Tensor out = finished(execute(call));
    if (record.any()) {
      record.save_inputs();
      const Tensor* result = &out;
      History::set_node(out, record.finish({&result, 1}), 0);
    }
    return out;
  }
  const GradModeScope off(false);
  Tensor out = finished(execute(call));
  if (record.any() && is_floating(out.dtype())) {
    record.save_inputs();
    const Tensor* result = &out;
    History::set_node(out, record.finish({&result, 1}), 0);
  }
  return out;
}

std::vector<Tensor> run_many(const OpCall& call) {
  Watched watched(call);
  const bool recording = History::recording();
  const GradModeScope off(false);
  std::vector<Tensor> outputs = execute_many(call);
  watched.done(outputs);
  if (!recording) return outputs;
  Record record(call);
  if (!record.any() || !is_floating(outputs[0].dtype())) return outputs;
  record.save_inputs();
  std::vector<const Tensor*> results;
  results.reserve(outputs.size());
  for (const Tensor& t : outputs) results.push_back(&t);
  const Ref<GraphNode> node = record.finish(results);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (is_floating(outputs[k].dtype())) {
      History::set_node(outputs[k], node, static_cast<std::uint16_t>(k));
    }
  }
  return outputs;
}

void run_into(const OpCall& call, const Tensor& out) {
  // A product may be added to what is there.
  const bool adds = op_info(call.op).family == Family::Product && call.attrs.flag;
  autograd::record_write(call, out, adds, execute_into);
}

void run_update(const OpCall& call, const Tensor& out) {
  autograd::record_write(call, out, true, execute_update);
}

}  // namespace baregrad::tape
