// OpCall: kept, compared, hashed, printed.
#include "ops/op_call.h"

#include <algorithm>

#include "core/history.h"
#include "core/message.h"

namespace baregrad {

namespace {

bool same_tensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return x.is_same(y); });
}

std::string text_of(const Tensor& t) {
  std::string text = t.defined() ? describe(t) : "undefined";
  if (t.defined() && !t.device().is_cpu()) text += "@" + to_string(t.device());
  return text;
}

}  // namespace

OwnedCall::OwnedCall(const OpCall& call)
    : op_(call.op),
      kind_(call.kind),
      device_(call.device),
      outputs_(call.outputs.begin(), call.outputs.end()),
      attrs_(call.attrs),
      who_(call.who != nullptr ? call.who : ""),
      generator_(call.generator),
      draws_(call.draws) {
  inputs_.reserve(call.inputs.size());
  for (const Tensor* t : call.inputs) inputs_.push_back(*t);
}

bool operator==(const OwnedCall& a, const OwnedCall& b) noexcept {
  return a.op_ == b.op_ && a.kind_ == b.kind_ && a.device_ == b.device_ &&
         a.generator_ == b.generator_ && a.draws_ == b.draws_ && same_attrs(a.attrs(), b.attrs()) &&
         same_tensors(a.inputs_, b.inputs_) && same_tensors(a.outputs_, b.outputs_);
}

std::size_t OwnedCall::hash() const noexcept {
  std::size_t hash = hash_attrs(attrs());
  const auto mix = [&](std::size_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  };
  mix(static_cast<std::size_t>(op_));
  mix(static_cast<std::size_t>(kind_));
  mix(static_cast<std::size_t>(device_.type) * 256 + device_.index);
  for (const Tensor& t : inputs_) mix(reinterpret_cast<std::size_t>(History::identity(t)));
  for (const Tensor& t : outputs_) mix(reinterpret_cast<std::size_t>(History::identity(t)));
  mix(reinterpret_cast<std::size_t>(generator_));
  mix(static_cast<std::size_t>(draws_));
  return hash;
}

std::string to_string(const OpCall& call) {
  std::string out = op_name(call.op);
  if (call.kind != CallKind::Make) out += "_";
  out += "(";
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    if (k != 0) out += ", ";
    out += text_of(*call.inputs[k]);
  }
  if (!call.attrs.empty()) out += message(call.inputs.empty() ? "" : "; ", to_string(call.attrs));
  if (call.draws != 0) out += message("; draws=", call.draws);
  out += ")";
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    out += message(k == 0 ? " -> " : ", ", text_of(call.outputs[k]));
  }
  return out;
}

std::string to_string(const OwnedCall& call) {
  return call.with_call([](const OpCall& borrowed) { return to_string(borrowed); });
}

}  // namespace baregrad
