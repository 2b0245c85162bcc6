// x[...] as NumPy has it: integers, slices, ellipsis, new axes, integer tensors and masks.
#include <algorithm>
#include <variant>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/index_bounds.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

/// What stands between the brackets, split into a view and positions in it.
struct Resolved {
  Tensor base;  ///< x after integers, slices and new axes
  std::vector<Tensor>
      positions;  ///< int64, all of one shape; for axes attrs.axis, attrs.axis + 1...
  PositionsAttrs attrs;
};

class Resolver {
 public:
  Resolver(const Tensor& x, const std::vector<Index>& indices, const char* who)
      : x_(x), indices_(indices), who_(who) {}

  Resolved resolve() {
    count_axes();
    for (const Index& index : indices_) {
      std::visit([this](const auto& value) { add(value); }, index.value());
    }
    Resolved out;
    out.base = view();
    if (advanced_) place(out);
    return out;
  }

 private:
  /// How many axes of x are named, so that an ellipsis can stand for the others.
  void count_axes() {
    int ellipses = 0;
    std::int64_t named = 0;
    for (const Index& index : indices_) {
      const auto& value = index.value();
      if (const auto* tensor = std::get_if<Tensor>(&value)) {
        require_defined(*tensor, "an index", who_);
        advanced_ = true;
        named += is_bool(tensor->dtype()) ? tensor->ndim() : 1;
      } else if (std::holds_alternative<Ellipsis>(value)) {
        ++ellipses;
      } else if (!std::holds_alternative<NewAxis>(value)) {
        ++named;
      }
    }
    if (ellipses > 1) {
      throw IndexError(message(who_, ": ", ellipses, " ellipses; at most one can stand for the ",
                               "axes that are not named"));
    }
    if (named > x_.ndim()) {
      throw IndexError(
          message(who_, ": ", named, " axes are indexed but ", describe(x_), " has ", x_.ndim()));
    }
    unnamed_ = x_.ndim() - static_cast<int>(named);
  }

  /// NumPy's rule for where the positions' axes go: an integer counts as a position, and anything
  /// else between two of them separates.
  void touch_block(bool position) {
    if (position) {
      separated_ |= block_ == Block::Ended;
      block_ = Block::Open;
    } else if (block_ == Block::Open) {
      block_ = Block::Ended;
    }
  }

  void add(std::int64_t position) {
    touch_block(true);
    const std::int64_t size = x_.shape()[axis_];
    if (position < -size || position >= size) {
      throw_out_of_bounds(position, {axis_, size, x_.dtype(), x_.shape()}, who_);
    }
    selected_.push_back(axis_++);
    selected_positions_.push_back(position);
  }

  void add(const Slice& slice) {
    touch_block(false);
    if (slice.step && *slice.step == 0) {
      throw ValueError(
          message(who_, ": the step of the slice for axis ", axis_, " of ", describe(x_), " is 0"));
    }
    slices_.emplace_back(axis_++, slice);
    ++base_ndim_;
  }

  void add(Ellipsis) {
    touch_block(false);
    axis_ += unnamed_;
    base_ndim_ += unnamed_;
    unnamed_ = 0;
  }

  void add(NewAxis) {
    touch_block(false);
    new_axes_.push_back(base_ndim_++);
  }

  void add(const Tensor& tensor) {
    touch_block(true);
    if (!is_bool(tensor.dtype())) {
      add_positions(as_int64(tensor, "an index", who_), axis_++);
      return;
    }
    if (tensor.ndim() == 0) {
      // A single truth value: a new axis that is there once, or not at all.
      new_axes_.push_back(base_ndim_);
      add_positions(zeros({tensor.item<bool>() ? 1 : 0}, DType::Int64, x_.device()), -1);
      return;
    }
    for (int i = 0; i < tensor.ndim(); ++i) {
      // A mask without elements picks none, whatever it is laid on: the array API says so.
      if (tensor.shape()[i] == x_.shape()[axis_ + i] || tensor.shape()[i] == 0) continue;
      throw IndexError(message(who_, ": mask ", describe(tensor), " does not match axis ",
                               axis_ + i, " of size ", x_.shape()[axis_ + i], " in ", describe(x_),
                               ": it has size ", tensor.shape()[i]));
    }
    for (const Tensor& positions : nonzero(tensor)) add_positions(positions, axis_++);
  }

  /// Positions on the CPU index a tensor on any device.
  void add_positions(const Tensor& positions, std::int64_t axis) {
    positions_.push_back(positions.device().is_cpu() ? to_device(positions, x_.device())
                                                     : positions);
    position_axes_.push_back(base_ndim_++);
    callers_axes_.push_back(axis);
  }

  Tensor view() {
    const int ndim = base_ndim_ + unnamed_;
    if (ndim > kMaxDims) {
      throw ShapeError(message(who_, ": ", ndim, " dimensions of ", describe(x_),
                               " with new axes are more than ", kMaxDims));
    }
    Tensor base = x_;
    for (const auto& [axis, slice] : slices_) base = baregrad::slice(base, axis, slice);
    for (int k = selected_.size() - 1; k >= 0; --k) {
      base = select(base, selected_[k], selected_positions_[k]);
    }
    if (!new_axes_.empty()) base = expand_dims(base, Dims(new_axes_));
    return base;
  }

  void place(Resolved& out) const {
    Dims shape;
    for (const Tensor& t : positions_) {
      if (broadcast_shapes(Dims(shape), t.shape(), shape)) continue;
      throw IndexError(message(who_, ": index tensors of shapes ", shapes(),
                               " do not broadcast against each other"));
    }
    for (std::size_t k = 0; k < positions_.size(); ++k) {
      const Tensor& t = positions_[k];
      out.positions.push_back(repeated_to(t, shape, who_));
      // Broadcast to nothing, a position out of range would not be seen any more.
      if (callers_axes_[k] < 0 || out.positions.back().numel() != 0) continue;
      const int axis = static_cast<int>(callers_axes_[k]);
      check_positions(t, {axis, x_.shape()[axis], x_.dtype(), x_.shape()}, who_);
    }
    const Dims axes(position_axes_);
    out.attrs.axis = separated_ ? 0 : static_cast<int>(axes[0]);
    if (separated_) {
      Dims front;
      for (int k = 0; k < axes.size(); ++k) front.push_back(k);
      out.base = moveaxis(out.base, axes, front);
    }
    out.attrs.callers_axes = Dims(callers_axes_);
    out.attrs.callers_shape = x_.shape();
  }

  std::string shapes() const {
    std::string out;
    for (std::size_t k = 0; k < positions_.size(); ++k) {
      if (k != 0) out += k + 1 == positions_.size() ? " and " : ", ";
      out += to_string(positions_[k].shape());
    }
    return out;
  }

  enum class Block : std::uint8_t { None, Open, Ended };

  const Tensor& x_;
  const std::vector<Index>& indices_;
  const char* who_;
  bool advanced_ = false;
  bool separated_ = false;
  Block block_ = Block::None;
  int unnamed_ = 0;    // axes of x that no index names and no ellipsis has taken yet
  int axis_ = 0;       // the next axis of x
  int base_ndim_ = 0;  // axes of the base so far
  Dims selected_;      // axes of x that integers remove
  Dims selected_positions_;
  std::vector<std::pair<int, Slice>> slices_;  // axes of x
  std::vector<std::int64_t> new_axes_;         // axes of the base
  std::vector<Tensor> positions_;
  std::vector<std::int64_t> position_axes_;  // axes of the base
  std::vector<std::int64_t> callers_axes_;   // axes of x
};

/// `shape` with its axes from `axis` on that positions pick from replaced by the positions' own.
Dims indexed_shape(const Dims& shape, int axis, std::span<const Tensor* const> positions,
                   const char* who) {
  const Dims& block = positions[0]->shape();
  const int count = static_cast<int>(positions.size());
  const int ndim = shape.size() - count + block.size();
  if (ndim > kMaxDims) {
    throw ShapeError(message(who, ": indices of shape ", to_string(block), " into shape ",
                             to_string(shape), " would give ", ndim, " dimensions, more than ",
                             kMaxDims));
  }
  Dims out;
  for (int i = 0; i < axis; ++i) out.push_back(shape[i]);
  for (const std::int64_t size : block) out.push_back(size);
  for (int i = axis + count; i < shape.size(); ++i) out.push_back(shape[i]);
  return out;
}

std::vector<const Tensor*> inputs_of(const Tensor& first, const std::vector<Tensor>& positions) {
  std::vector<const Tensor*> inputs{&first};
  for (const Tensor& t : positions) inputs.push_back(&t);
  return inputs;
}

/// NumPy lets a value have more axes than what it is written into, if they are of size 1.
Tensor without_leading_ones(const Tensor& value, int ndim) {
  Dims extra;
  for (int i = 0; i < value.ndim() - ndim && value.shape()[i] == 1; ++i) extra.push_back(i);
  return extra.empty() ? value : squeeze(value, extra);
}

}  // namespace

/// inputs: x, then positions of one shape for attrs.axis, attrs.axis + 1, ... of it.
std::vector<OutputSpec> infer_index(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  return {{indexed_shape(x.shape(), call.attrs.as<PositionsAttrs>().axis, call.inputs.subspan(1),
                         op_name(call.op)),
           x.dtype()}};
}

/// inputs: the values, then positions as above.
std::vector<OutputSpec> infer_index_put(const OpCall&) { return {}; }

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  require_defined(x, "x", "index");
  if (indices.size() == 1) {
    // One mask over all of x needs no positions.
    const auto* mask = std::get_if<Tensor>(&indices[0].value());
    if (mask != nullptr && mask->defined() && is_bool(mask->dtype()) && x.ndim() > 0 &&
        mask->shape() == x.shape()) {
      return masked_select(x, *mask);
    }
  }
  const Resolved r = Resolver(x, indices, "index").resolve();
  if (r.positions.empty()) return r.base.is_same(x) ? alias(x) : r.base;
  const auto inputs = inputs_of(r.base, r.positions);
  return run({OpId::index, inputs, r.attrs});
}

Tensor index_put(const Tensor& x, const std::vector<Index>& indices, const Operand& value,
                 bool accumulate) {
  require_defined(x, "x", "index_put");
  Tensor out = clone(x);
  index_put_(out, indices, value, accumulate);
  return out;
}

const Tensor& index_put_(const Tensor& x, const std::vector<Index>& indices, const Operand& value,
                         bool accumulate) {
  constexpr const char* kWho = "index_put";
  require_defined(x, "x", kWho);
  Resolved r = Resolver(x, indices, kWho).resolve();
  Dims shape = r.base.shape();
  if (!r.positions.empty()) {
    const auto inputs = inputs_of(r.base, r.positions);
    shape = indexed_shape(shape, r.attrs.axis, std::span(inputs).subspan(1), kWho);
    checked_numel(shape, x.dtype(), kWho);
  }
  const Tensor given = without_leading_ones(assigned(value, x, kWho), shape.size());
  Dims joined;
  if (!broadcast_shapes(given.shape(), shape, joined) || !(joined == shape)) {
    throw ShapeError(message(kWho, ": value ", describe(*value.tensor()),
                             " does not broadcast to the indexed shape ", to_string(shape), " of ",
                             describe(x)));
  }
  const Tensor fitted = repeated_to(given, shape, kWho);
  if (!r.positions.empty()) {
    const IndexPutAttrs attrs{r.attrs.axis, accumulate, r.attrs.callers_axes,
                              r.attrs.callers_shape};
    const auto inputs = inputs_of(fitted, r.positions);
    run_in_place({OpId::index_put, inputs, attrs, nullptr, CallKind::Update, {&r.base, 1}});
  } else if (accumulate) {
    run_into(OpId::add, {&r.base, &fitted}, r.base, {}, kWho);
  } else {
    run_into(OpId::contiguous_copy, {&fitted}, r.base, {}, kWho);
  }
  return x;
}

}  // namespace baregrad
