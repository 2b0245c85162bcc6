// The node of a recorded op of the table, and what its gradient rule sees of it.
#pragma once

#include <array>

#include "autograd/node.h"
#include "ops/attrs.h"
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
void check_unchanged(const Saved& saved, const char* op, const char* label);
/// The value as it was used: with its place in the graph, when a derivative of the gradient may be
/// asked for.
Tensor unpack(const Saved& saved, const Edge& place);

class OpNode final : public Node {
 public:
  /// Room for `saved` values, the attributes where `attrs` says so, and notes.
  static std::size_t bytes(std::size_t saved, bool attrs, std::size_t notes) noexcept {
    return saved * sizeof(Saved) + (attrs ? sizeof(Attrs) : 0) + notes * sizeof(std::int64_t);
  }
  OpNode(OpId op, std::size_t saved, std::size_t notes) noexcept
      : op_(op),
        saved_count_(static_cast<std::uint32_t>(saved)),
        note_count_(static_cast<std::uint32_t>(notes)) {}
  /// After Node::make: takes over what was saved.
  void fill(std::span<Saved> saved, const Attrs* attrs, std::span<const std::int64_t> notes);

  const char* name() const noexcept override { return op_name(op_); }
  void apply(std::span<const Tensor> gradients, Sink& sink) override;
  bool release() noexcept override;
  Tensors saved_tensors() const override;

  OpId op() const noexcept { return op_; }
  const Attrs& attrs() const noexcept;
  std::span<const Saved> saved() const noexcept { return {saved_, saved_ ? saved_count_ : 0U}; }
  std::span<const std::int64_t> notes() const noexcept { return {notes_, note_count_}; }

 private:
  ~OpNode() override;

  OpId op_;
  std::uint32_t saved_count_;
  std::uint32_t note_count_;
  Saved* saved_ = nullptr;
  const Attrs* attrs_ = nullptr;
  const std::int64_t* notes_ = nullptr;
};

/// A rule's view of the node in hand.
class Backward {
 public:
  Backward(OpNode& node, std::span<const Tensor> gradients, Sink& sink) noexcept
      : node_(node), gradients_(gradients), sink_(sink) {}

  /// Gradient of a result; undefined where none arrived (only with several results).
  const Tensor& grad(int result = 0) const { return gradients_[static_cast<std::size_t>(result)]; }
  bool needs(int input) const { return node_.needs(static_cast<std::size_t>(input)); }
  int inputs() const { return static_cast<int>(node_.edges().size()); }
  /// Values that the rule's row says it keeps.
  Tensor input(int k) const { return value(static_cast<std::int16_t>(k)); }
  Tensor output(int k = 0) const { return value(Saved::result(k)); }
  const Attrs& attrs() const { return node_.attrs(); }
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
  Tensor value(std::int16_t which) const;
  const Result& result_of(int input) const {
    const Edge& edge = node_.edges()[static_cast<std::size_t>(input)];
    return edge->results()[edge.output];
  }

  OpNode& node_;
  std::span<const Tensor> gradients_;
  Sink& sink_;
};

}  // namespace baregrad::autograd
