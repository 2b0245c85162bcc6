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
#include "core/history.h"
#include "parallel/interrupt.h"

namespace baregrad::autograd {

namespace {

std::atomic<std::uint64_t> next_number{1};
std::atomic<std::int64_t> nodes_alive{0};
constinit thread_local const char* innermost_label = nullptr;

/// One string for all labels of one text; never freed, since nodes of any age point at them.
const char* interned(std::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& texts = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.emplace(text).first->c_str();
}

/// Leaves are few and their gradients large: a handful of locks serves them all.
std::mutex& lock_of(const Leaf& leaf) {
  static auto& locks = *new std::array<std::mutex, 64>;
  return locks[reinterpret_cast<std::uintptr_t>(&leaf) / 64 % locks.size()];
}

}  // namespace

std::int64_t live_nodes() noexcept { return nodes_alive.load(std::memory_order_relaxed); }

Label::Label(std::string_view name) : before_(innermost_label) {
  innermost_label = before_ == nullptr ? interned(name)
                                       : interned(std::string(before_) + "/" + std::string(name));
}
Label::~Label() { innermost_label = before_; }

const char* current_label() noexcept { return innermost_label; }

Ref<GraphNode> ref_to(Node& node) noexcept {
  // Adopt the reference that counts already, copy it, and leave it as it was.
  Ref<GraphNode> borrowed = Ref<GraphNode>::adopt(&node);
  Ref<GraphNode> own = borrowed;
  static_cast<void>(borrowed.release());
  return own;
}

Node::Node() noexcept
    : number_(next_number.fetch_add(1, std::memory_order_relaxed)), label_(innermost_label) {
  nodes_alive.fetch_add(1, std::memory_order_relaxed);
}

Node::~Node() {
  for (Edge& edge : edges()) edge.~Edge();
  nodes_alive.fetch_sub(1, std::memory_order_relaxed);
}

void Node::dispose() noexcept {
  this->~Node();
  ::operator delete(static_cast<void*>(this));
}

void* Node::allocate(std::size_t size, const NodeSpec& spec) {
  std::size_t bytes = size + spec.edges * sizeof(Edge) + spec.more;
  for (const Tensor* t : spec.results) {
    bytes += sizeof(Result) + static_cast<std::size_t>(t->ndim()) * sizeof(std::int64_t);
  }
  void* block = ::operator new(bytes, std::nothrow);
  if (block == nullptr) {
    throw OutOfMemory("autograd: no memory for a node of the graph", bytes,
                      current_allocator().stats().live_bytes);
  }
  return block;
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
    new (results_ + i) Result{sizes, t.ndim(), t.dtype()};
    sizes = std::copy(t.shape().begin(), t.shape().end(), sizes);
  }
}

std::uint64_t upcoming_number() noexcept { return next_number.load(std::memory_order_relaxed); }

// Leaves live as long as their tensors and are not counted.
Leaf::Leaf() noexcept { nodes_alive.fetch_sub(1, std::memory_order_relaxed); }
Leaf::~Leaf() { nodes_alive.fetch_add(1, std::memory_order_relaxed); }

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
