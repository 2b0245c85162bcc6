// Saved values: taken, checked, given back.
#include "autograd/op_node.h"

#include <algorithm>

#include "autograd/rules.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/history.h"
#include "core/message.h"

namespace baregrad::autograd {

void throw_changed(const Saved& saved, const char* op, const char* label) {
  const std::string which = saved.which >= 0 ? message("input ", saved.which) : "the result";
  throw GradError(message(op, label != nullptr ? message(" (", label, ")") : std::string(),
                          ": its gradient needs ", which, ", ", describe(saved.value),
                          ", which was overwritten since (version ", saved.value.version(),
                          ", recorded at ", saved.version,
                          "); write into a clone, or use the form that is not in place"));
}

Tensor unpack(const Saved& saved, const Edge& place) {
  if (!place || !History::recording()) return saved.value;
  Tensor connected = History::plain(saved.value);
  History::set_node(connected, place.node, place.output);
  return connected;
}

void OpNode::describe(AttrsRef attrs, std::span<const std::int64_t> notes) noexcept {
  auto* at = static_cast<char*>(more());
  if (!attrs.empty()) {
    copy_attrs(at, attrs);
    attrs_ = {attrs.kind(), at};
    at += room_for(attrs);
  }
  auto* numbers = reinterpret_cast<std::int64_t*>(at);
  std::copy(notes.begin(), notes.end(), numbers);
  notes_ = numbers;
  note_count_ = static_cast<std::uint32_t>(notes.size());
  saved_ = reinterpret_cast<Saved*>(numbers + notes.size());
}

Tensor zeros_beside(const Tensor& t, const Dims& shape) {
  return zeros(shape, t.dtype(), t.device());
}
Tensor ones_beside(const Tensor& t, const Dims& shape) {
  return ones(shape, t.dtype(), t.device());
}

OpNode::~OpNode() {
  for (std::uint32_t i = 0; i < saved_count_; ++i) saved_[i].~Saved();
}

void OpNode::release() noexcept {
  for (std::uint32_t i = 0; i < saved_count_; ++i) saved_[i].value = Tensor();
}

Tensors OpNode::saved_tensors() const {
  Tensors tensors;
  for (const Saved& one : saved()) tensors.push_back(one.value);
  return tensors;
}

void OpNode::apply(std::span<const Tensor> gradients, Sink& sink) {
  const RuleRow& row = rule_row(op_);
  if (row.rule == nullptr) return;  // an in-place op without a gradient: nothing flows
  Backward backward(*this, gradients, sink, row.wide);
  row.rule(backward);
}

void Backward::widen_gradient() { gradient_ = astype(gradients_[0], DType::Float32); }

const Tensor& Backward::value(std::int16_t which) {
  for (const Saved& saved : node_.saved()) {
    if (saved.which != which) continue;
    check_unchanged(saved, node_.name(), node_.label());
    const bool widen = wide_ && is_half(saved.value);
    if (!History::recording()) {
      return widen ? connected_.emplace_front(astype(saved.value, DType::Float32)) : saved.value;
    }
    const Edge place = which >= 0 ? node_.edges()[static_cast<std::size_t>(which)]
                                  : Edge{ref_to(node_), static_cast<std::uint16_t>(-1 - which)};
    Tensor connected = unpack(saved, place);
    return connected_.emplace_front(widen ? astype(connected, DType::Float32)
                                          : std::move(connected));
  }
  throw GradError(message(node_.name(), ": its rule asks for a value that its row does not keep"));
}

}  // namespace baregrad::autograd
