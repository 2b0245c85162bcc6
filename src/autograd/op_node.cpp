// Saved values: taken, checked, given back.
#include "autograd/op_node.h"

#include <algorithm>

#include "autograd/rules.h"
#include "baregrad/error.h"
#include "core/history.h"
#include "core/message.h"
#include "ops/dispatch.h"

namespace baregrad::autograd {

void check_unchanged(const Saved& saved, const char* op, const char* label) {
  const std::uint32_t now = saved.value.version();
  if (now == saved.version) return;
  const std::string which = saved.which >= 0 ? message("input ", saved.which) : "the result";
  throw GradError(message(op, label != nullptr ? message(" (", label, ")") : std::string(),
                          ": its gradient needs ", which, ", ", describe(saved.value),
                          ", which was overwritten since (version ", now, ", recorded at ",
                          saved.version,
                          "); write into a clone, or use the form that is not in place"));
}

Tensor unpack(const Saved& saved, const Edge& place) {
  if (!place || !History::recording()) return saved.value;
  Tensor connected = History::plain(saved.value);
  History::set_node(connected, place.node, place.output);
  return connected;
}

void OpNode::fill(std::span<Saved> saved, const Attrs* attrs, std::span<const std::int64_t> notes) {
  auto* at = static_cast<char*>(more());
  if (attrs != nullptr) {
    attrs_ = new (at) Attrs(*attrs);
    at += sizeof(Attrs);
  }
  saved_ = reinterpret_cast<Saved*>(at);
  for (std::size_t i = 0; i < saved.size(); ++i) new (saved_ + i) Saved(std::move(saved[i]));
  at += saved.size() * sizeof(Saved);
  auto* numbers = reinterpret_cast<std::int64_t*>(at);
  std::copy(notes.begin(), notes.end(), numbers);
  notes_ = numbers;
}

OpNode::~OpNode() {
  if (saved_ == nullptr) return;
  for (std::uint32_t i = 0; i < saved_count_; ++i) saved_[i].~Saved();
}

const Attrs& OpNode::attrs() const noexcept { return attrs_ != nullptr ? *attrs_ : kNoAttrs; }

bool OpNode::release() noexcept {
  for (std::uint32_t i = 0; i < saved_count_; ++i) saved_[i].value = Tensor();
  return saved_count_ != 0;
}

Tensors OpNode::saved_tensors() const {
  Tensors tensors;
  for (const Saved& one : saved()) tensors.push_back(one.value);
  return tensors;
}

void OpNode::apply(std::span<const Tensor> gradients, Sink& sink) {
  const GradientRule rule = rule_row(op_).rule;
  if (rule == nullptr) return;  // an in-place op without a gradient: nothing flows
  Backward backward(*this, gradients, sink);
  rule(backward);
}

Tensor Backward::value(std::int16_t which) const {
  for (const Saved& saved : node_.saved()) {
    if (saved.which != which) continue;
    check_unchanged(saved, node_.name(), node_.label());
    if (which >= 0) return unpack(saved, node_.edges()[static_cast<std::size_t>(which)]);
    if (!History::recording()) return saved.value;
    return unpack(saved, {ref_to(node_), static_cast<std::uint16_t>(-1 - which)});
  }
  throw GradError(message(node_.name(), ": its rule asks for a value that its row does not keep"));
}

}  // namespace baregrad::autograd
