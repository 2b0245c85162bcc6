// The node of a recorded op of the table, and what its gradient rule sees of it.
#pragma once

#include <forward_list>

#include "autograd/node.h"
#include "ops/attr_types.h"
#include "ops/op_id.h"

namespace baregrad::autograd {

/// A value kept for backward, and the version it had.
struct Saved {
  Tensor value;
  std::uint32_t version = 0;
  std::int16_t which = 0;  ///< an input, or -1 - k for result k

  static constexpr std::int16_t result(int k) { return static_cast<std::int16_t>(-1 - k); }
};

/// Throws GradError when the value was overwritten since.
[[noreturn]] void throw_changed(const Saved& saved, const char* op, const char* label);
inline void check_unchanged(const Saved& saved, const char* op, const char* label) {
  if (saved.value.version() != saved.version) throw_changed(saved, op, label);
}
/// The value as it was used: with its place in the graph, when a derivative of the gradient may be
/// asked for.
Tensor unpack(const Saved& saved, const Edge& place);

class OpNode final : public Node {
 public:
  /// Room for `saved` values, the attributes where there are some, and notes.
  static std::size_t bytes(std::size_t saved, AttrsRef attrs, std::size_t notes) noexcept {
    return room_for(attrs) + notes * sizeof(std::int64_t) + saved * sizeof(Saved);
  }
  explicit OpNode(OpId op) noexcept : op_(op) {}
  /// After Node::make, in this order: attributes and notes, then each value saved.
  void describe(AttrsRef attrs, std::span<const std::int64_t> notes) noexcept;
  void save(Tensor value, std::int16_t which) noexcept {
    const std::uint32_t version = value.version();
    new (saved_ + saved_count_++) Saved{std::move(value), version, which};
  }

  const char* name() const noexcept override { return op_name(op_); }
  void apply(std::span<const Tensor> gradients, Sink& sink) override;
  bool has_saved() const noexcept override { return saved_count_ != 0; }
  void release() noexcept override;
  Tensors saved_tensors() const override;

  OpId op() const noexcept { return op_; }
  AttrsRef attrs() const noexcept { return attrs_; }
  std::span<const Saved> saved() const noexcept { return {saved_, saved_count_}; }
  std::span<const std::int64_t> notes() const noexcept { return {notes_, note_count_}; }

 private:
  ~OpNode() override;
  static std::size_t room_for(AttrsRef attrs) noexcept {
    return (attrs_size(attrs.kind()) + 7) / 8 * 8;
  }

  OpId op_;
  std::uint32_t saved_count_ = 0;
  std::uint32_t note_count_ = 0;
  Saved* saved_ = nullptr;
  AttrsRef attrs_;
  const std::int64_t* notes_ = nullptr;
};

/// Zeros and ones of a shape, with the dtype and device of `t`.
Tensor zeros_beside(const Tensor& t, const Dims& shape);
Tensor ones_beside(const Tensor& t, const Dims& shape);

/// A rule's view of the node in hand.
class Backward {
 public:
  /// `wide`: half precision is seen as float32.
  Backward(OpNode& node, std::span<const Tensor> gradients, Sink& sink, bool wide)
      : node_(node), gradients_(gradients), sink_(sink), wide_(wide) {
    if (wide && is_half(gradients[0])) widen_gradient();
  }

  /// Gradient of a result; undefined where none arrived (only with several results).
  const Tensor& grad(int result = 0) const {
    return gradient_.defined() ? gradient_ : gradients_[static_cast<std::size_t>(result)];
  }
  bool needs(int input) const { return node_.needs(static_cast<std::size_t>(input)); }
  int inputs() const { return static_cast<int>(node_.edges().size()); }
  /// Values that the rule's row says it keeps; there as long as this is.
  const Tensor& input(int k) { return value(static_cast<std::int16_t>(k)); }
  const Tensor& output(int k = 0) { return value(Saved::result(k)); }
  /// The attributes of the call, and their defaults where it had none.
  template <AttrStruct T>
  const T& attrs() const {
    return node_.attrs().as<T>();
  }
  AttrsRef attrs_ref() const { return node_.attrs(); }
  /// Shape of an input that needs a gradient.
  Dims shape(int input) const { return result_of(input).shape(); }
  DType dtype(int input) const { return result_of(input).dtype; }
  Dims output_shape(int k = 0) const {
    return node_.results()[static_cast<std::size_t>(k)].shape();
  }
  std::span<const std::int64_t> notes() const { return node_.notes(); }

  /// The gradient of an input; the engine sums it down to the input's shape and converts it.
  void give(int input, Tensor gradient) {
    const Edge& edge = node_.edges()[static_cast<std::size_t>(input)];
    if (edge) sink_.give(edge, std::move(gradient), node_.name());
  }

 private:
  static bool is_half(const Tensor& t) noexcept {
    return t.defined() && is_floating(t.dtype()) && itemsize(t.dtype()) == 2;
  }
  void widen_gradient();
  const Tensor& value(std::int16_t which);
  const Result& result_of(int input) const {
    const Edge& edge = node_.edges()[static_cast<std::size_t>(input)];
    return edge->results()[edge.output];
  }

  OpNode& node_;
  std::span<const Tensor> gradients_;
  Sink& sink_;
  bool wide_;
  Tensor gradient_;                      // the first, in float32
  std::forward_list<Tensor> connected_;  // values with their place in the graph, or in float32
};

}  // namespace baregrad::autograd
