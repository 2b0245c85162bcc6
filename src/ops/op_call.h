// OpCall: everything that one call of an op does, as data. Eager execution, the tape, watchers and
// the tracer see the same description. Backends may include this header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baregrad/generator.h"
#include "baregrad/tensor.h"
#include "ops/attr_types.h"
#include "ops/attrs.h"
#include "ops/op_id.h"

namespace baregrad {

/// Where the results go.
enum class CallKind : std::uint8_t {
  Make,    ///< into new tensors
  Into,    ///< into the outputs, all of whose elements are written
  Update,  ///< into the outputs, some of whose elements are read or kept
};

/// A call, borrowed for its length. OwnedCall keeps it.
struct OpCall {
  OpId op;
  std::span<const Tensor* const> inputs;
  AttrsRef attrs = {};
  const char* who = nullptr;  ///< the function the user called, where that is not the op's name
  CallKind kind = CallKind::Make;
  std::span<const Tensor> outputs = {};  ///< of Into and Update
  Device device = {};                    ///< of the results, where there is no input to say it
  Generator* generator = nullptr;        ///< of a random op
  std::uint64_t draws = 0;               ///< numbers (of 128 bits) that it takes from there

  /// What messages start with.
  const char* name() const noexcept { return who != nullptr ? who : op_name(op); }
};

/// A call with its tensors and attributes, which can be kept, compared, hashed, printed and run
/// again.
class OwnedCall {
 public:
  explicit OwnedCall(const OpCall& call);

  OpId op() const noexcept { return op_; }
  CallKind kind() const noexcept { return kind_; }
  const std::vector<Tensor>& inputs() const noexcept { return inputs_; }
  const std::vector<Tensor>& outputs() const noexcept { return outputs_; }
  AttrsRef attrs() const noexcept { return attrs_.ref(); }
  Device device() const noexcept { return device_; }
  Generator* generator() const noexcept { return generator_; }
  std::uint64_t draws() const noexcept { return draws_; }

  /// f(const OpCall&) on a borrowed form of this call.
  template <class F>
  decltype(auto) with_call(const F& f) const {
    std::vector<const Tensor*> inputs;
    inputs.reserve(inputs_.size());
    for (const Tensor& t : inputs_) inputs.push_back(&t);
    return f(OpCall{op_, inputs, attrs(), who_.empty() ? nullptr : who_.c_str(), kind_, outputs_,
                    device_, generator_, draws_});
  }

  /// The same op and attributes on the same tensors.
  friend bool operator==(const OwnedCall& a, const OwnedCall& b) noexcept;
  std::size_t hash() const noexcept;

 private:
  OpId op_;
  CallKind kind_;
  Device device_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  OwnedAttrs attrs_;
  std::string who_;
  Generator* generator_;
  std::uint64_t draws_;
};

/// "sum(float32[2,3]; axes=[0], keepdims=false, ...)"; in-place calls as "add_ -> float32[4]".
std::string to_string(const OpCall& call);
std::string to_string(const OwnedCall& call);

}  // namespace baregrad
