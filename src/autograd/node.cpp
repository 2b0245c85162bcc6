// Nodes: memory, leaves, labels.
#include "autograd/node.h"

#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unordered_set>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/fast_tls.h"
#include "core/fork.h"
#include "core/history.h"
#include "core/made_once.h"
#include "core/recycle.h"
#include "ops/label.h"
#include "parallel/interrupt.h"

namespace baregrad::autograd {

namespace {

constinit std::atomic<std::uint64_t> next_number{1};
/// Nodes that do not count as alive: freed ones, and leaves, which live as long as their tensors.
constinit std::atomic<std::uint64_t> nodes_gone{0};
BAREGRAD_FAST_TLS const char* innermost_label = nullptr;

/// Holds an op of two inputs and what it saves; larger nodes are left to malloc.
struct SmallNode {
  char bytes[320];
};

/// What threads share here, and what becomes of it in a forked child.
struct Shared final : detail::ForkParticipant {
  /// Of labels. Held for a lookup, and across a fork, so that a child finds the set whole.
  std::mutex label_mutex;
  std::unordered_set<std::string> labels;
  /// Leaves are few and their gradients large: a handful of locks serves them all. Held for as long
  /// as adding up takes, which waits for other locks: a fork cannot wait for them, so a child
  /// begins with fresh ones. What another thread was adding at that moment it does not find there.
  std::array<std::mutex, 64> leaf_locks;

  Shared() { detail::add_fork_participant(*this); }
  ~Shared() { detail::remove_fork_participant(*this); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  void before_fork() noexcept override { label_mutex.lock(); }
  void after_fork(bool in_child) noexcept override {
    label_mutex.unlock();
    if (!in_child) return;
    for (std::mutex& lock : leaf_locks) new (&lock) std::mutex;
  }
};
constinit MadeOnce<Shared> g_shared;
Shared& shared() { return g_shared.get(); }

/// One string for all labels of one text; never freed, since nodes of any age point at them.
const char* interned(std::string_view text) {
  const std::lock_guard lock(shared().label_mutex);
  return shared().labels.emplace(text).first->c_str();
}

}  // namespace

std::mutex& lock_of(const Node& node) {
  auto& locks = shared().leaf_locks;
  return locks[reinterpret_cast<std::uintptr_t>(&node) / 64 % locks.size()];
}

Extras& Node::extras() {
  Extras* known = extras_.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto fresh = std::make_unique<Extras>();
  if (extras_.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    return *fresh.release();
  }
  return *known;
}

std::int64_t live_nodes() noexcept {
  // What is gone first: it was made before.
  const std::uint64_t gone = nodes_gone.load(std::memory_order_acquire);
  return static_cast<std::int64_t>(upcoming_number() - 1 - gone);
}

Label::Label(std::string_view name) : before_(innermost_label) {
  // Labels are kept for good. Those of modules nested thousands deep stop growing.
  constexpr std::size_t kLongest = 4096;
  const std::string_view before = before_ == nullptr ? "" : before_;
  if (before.size() + name.size() > kLongest && !before.empty()) return;
  innermost_label =
      before.empty() ? interned(name) : interned(std::string(before) + "/" + std::string(name));
}
Label::~Label() { innermost_label = before_; }

Ref<GraphNode> ref_to(Node& node) noexcept {
  // Adopt the reference that counts already, copy it, and leave it as it was.
  Ref<GraphNode> borrowed = Ref<GraphNode>::adopt(&node);
  Ref<GraphNode> own = borrowed;
  static_cast<void>(borrowed.release());
  return own;
}

Node::Node(bool leaf) noexcept
    : number_(next_number.fetch_add(1, std::memory_order_relaxed)),
      label_(innermost_label),
      leaf_(leaf) {}

Node::~Node() {
  delete extras_.load(std::memory_order_relaxed);
  for (Edge& edge : edges()) edge.~Edge();
  nodes_gone.fetch_add(1, std::memory_order_release);
}

void Node::leave_others(bool release) noexcept {
  if (release && has_saved()) visitors_.fetch_or(kToRelease, std::memory_order_acq_rel);
  std::uint32_t left = visitors_.fetch_sub(1, std::memory_order_acq_rel) - 1;
  // Who comes from now on is turned away, and may stand here too: one of them drops it.
  if (left == kToRelease &&
      visitors_.compare_exchange_strong(left, kReleased, std::memory_order_acq_rel)) {
    this->release();
  }
}

void Node::dispose() noexcept {
  const bool recycled = recycled_;
  this->~Node();
  if (recycled) {
    Recycler<SmallNode>::give(this);
  } else {
    ::operator delete(static_cast<void*>(this));
  }
}

Node::Block Node::allocate(std::size_t size, const NodeSpec& spec) {
  std::size_t bytes = size + spec.edges * sizeof(Edge) + spec.more;
  for (const Tensor* t : spec.results) {
    bytes += sizeof(Result) + static_cast<std::size_t>(t->ndim()) * sizeof(std::int64_t);
  }
  const bool recycled = Recycler<SmallNode>::kMost != 0 && bytes <= sizeof(SmallNode);
  void* memory = recycled ? Recycler<SmallNode>::take() : ::operator new(bytes, std::nothrow);
  if (memory == nullptr) {
    throw OutOfMemory("autograd: no memory for a node of the graph", bytes,
                      current_allocator().stats().live_bytes);
  }
  return {memory, recycled};
}

void Node::lay_out(char* behind, const NodeSpec& spec) noexcept {
  more_ = behind;
  behind += spec.more;
  edges_ = reinterpret_cast<Edge*>(behind);
  edge_count_ = static_cast<std::uint32_t>(spec.edges);
  for (std::size_t i = 0; i < spec.edges; ++i) new (edges_ + i) Edge;
  behind += spec.edges * sizeof(Edge);
  results_ = reinterpret_cast<Result*>(behind);
  result_count_ = static_cast<std::uint16_t>(spec.results.size());
  auto* sizes = reinterpret_cast<std::int64_t*>(results_ + result_count_);
  for (std::size_t i = 0; i < spec.results.size(); ++i) {
    const Tensor& t = *spec.results[i];
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.PlacementNew): takes the block to end with the node
    new (results_ + i) Result{sizes, t.ndim(), t.dtype(), t.device()};
    sizes = std::copy(t.shape().begin(), t.shape().end(), sizes);
  }
}

std::uint64_t upcoming_number() noexcept { return next_number.load(std::memory_order_relaxed); }

Leaf::Leaf() noexcept : Node(true) { nodes_gone.fetch_add(1, std::memory_order_release); }
Leaf::~Leaf() { nodes_gone.fetch_sub(1, std::memory_order_release); }

void Leaf::accumulate(Tensor gradient, bool recorded) {
  Tensor old;                                // let go of after the lock: a graph may hang on it
  const parallel::UninterruptedScope whole;  // nor half added
  const std::lock_guard lock(lock_of(*this));
  if (abandoned_) return;
  if (!grad_.defined()) {
    // Taken over where nobody else sees it, else the user's `+=` on it would be seen elsewhere.
    const bool own =
        History::is_sole_owner(gradient) && gradient.is_contiguous() && gradient.is_aligned();
    grad_ = recorded || own ? std::move(gradient) : clone(gradient);
  } else if (recorded || History::node(grad_)) {
    old = grad_;
    grad_ = add(old, gradient);
  } else {
    add_(grad_, gradient);
  }
}

void Leaf::abandon() noexcept {
  Tensor last;
  const std::lock_guard lock(lock_of(*this));
  abandoned_ = true;
  std::swap(last, grad_);
}

Tensor Leaf::grad() const {
  const std::lock_guard lock(lock_of(*this));
  return grad_;
}

void Leaf::set_grad(Tensor gradient) {
  const std::lock_guard lock(lock_of(*this));
  std::swap(grad_, gradient);
}

}  // namespace baregrad::autograd

namespace baregrad::watch {

const char* current_label() noexcept { return autograd::innermost_label; }

}  // namespace baregrad::watch
