// Tensor: a cheap handle on a strided, typed block of memory. Ops on it are in ops.h.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "baregrad/dims.h"
#include "baregrad/dtype.h"
#include "baregrad/export.h"
#include "baregrad/graph_node.h"
#include "baregrad/layout.h"
#include "baregrad/scalar.h"
#include "baregrad/storage.h"

namespace baregrad {

class Index;
class Tensor;
class History;
namespace autograd {
/// Sees the gradient of a tensor as it arrives; a defined result replaces it.
using Hook = std::function<Tensor(const Tensor& gradient)>;
}  // namespace autograd

/// What a Tensor handle points to. Immutable once made, but for the elements themselves, for what
/// autograd knows of them, and for Tensor::set_data.
class BAREGRAD_API TensorImpl {
 public:
  TensorImpl& operator=(const TensorImpl&) = delete;

 private:
  friend class Ref<TensorImpl>;
  friend class Tensor;
  friend class History;
  // All three in core/tensor.cpp, where Tensor makes them.
  TensorImpl(Ref<Storage>&& storage, DType dtype, const Layout& layout) noexcept;
  /// Row-major from the start of the storage; `numel` is the product of the sizes.
  TensorImpl(Ref<Storage>&& storage, DType dtype, const Dims& shape, std::int64_t numel) noexcept;
  /// The same elements without a history.
  TensorImpl(const TensorImpl& other) noexcept;
  static void destroy(TensorImpl* impl) noexcept;

  std::atomic<std::uint32_t> refs_{1};
  DType dtype_;
  bool contiguous_;
  std::uint16_t output_ = 0;  // which result of node_
  std::int64_t numel_;
  char* data_;  // first element: storage plus offset
  Ref<Storage> storage_;
  Ref<GraphNode> node_;   // what made it; null where no gradient is wanted
  Ref<TensorImpl> base_;  // of a view: the tensor whose history it shares
  // Of a view: the storage's version when node_ was last right.
  std::atomic<std::uint32_t> stamp_{0};
  bool aligned_ = true;
  bool packed_ = true;           // row-major, aligned, on the CPU
  bool untracked_view_ = false;  // made while recording was off
  bool owns_leaf_ = false;       // node_ is the leaf that keeps its gradient
  Layout layout_;
};

/// Copying a Tensor copies the handle: both see the same elements.
class [[nodiscard]] BAREGRAD_API Tensor {
 public:
  /// Undefined: holds nothing. Every op refuses it, and so does every member but defined, is_same
  /// and requires_grad, grad_fn, is_leaf: ValueError.
  Tensor() noexcept = default;
  Tensor(const Tensor&) noexcept = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  /// Makes this handle one on the other's elements. Only of variables: `x[0] = y` and
  /// `x.index(...) = y` would change a temporary and leave x as it is, and do not compile; write
  /// `x[0].copy_(y)` and `x.index_put_(..., y)`.
  Tensor& operator=(const Tensor&) & noexcept = default;
  Tensor& operator=(Tensor&&) & noexcept = default;

  /// The one door to views: throws ShapeError unless every element the layout can reach lies inside
  /// the storage. `who` opens the message.
  static Tensor view_of(Ref<Storage> storage, DType dtype, const Layout& layout, const char* who);
  /// A fresh row-major tensor, contents undefined. Throws OutOfMemory.
  static Tensor allocate(const Dims& shape, DType dtype, const char* who);
  /// The same on a device. ValueError where it is not available.
  static Tensor allocate(const Dims& shape, DType dtype, Device device, const char* who);
  /// Wraps memory the caller owns. Strides count elements (row-major when absent); `deleter(data)`
  /// runs when the last view is gone. `data` need not be aligned.
  static Tensor from_blob(void* data, const Dims& shape, DType dtype,
                          std::function<void(void*)> deleter = {});
  static Tensor from_blob(void* data, const Dims& shape, const Dims& strides, DType dtype,
                          std::function<void(void*)> deleter = {});
  /// A 1-d (or reshaped) copy of values: Tensor::of<float>({1, 2, 3}).
  template <class T>
  static Tensor of(std::initializer_list<T> values) {
    return copy_of(values.begin(), {static_cast<std::int64_t>(values.size())}, dtype_of<T>);
  }
  template <class T>
  static Tensor of(const std::vector<T>& values, const Dims& shape) {
    return copy_of(values.data(), static_cast<std::int64_t>(values.size()), shape, dtype_of<T>);
  }
  /// A 0-d tensor; the dtype is the scalar's default when not given.
  static Tensor scalar(const Scalar& value, std::optional<DType> dtype = {},
                       const char* who = "scalar");

  [[nodiscard]] bool defined() const noexcept { return static_cast<bool>(impl_); }
  /// Where the elements lie.
  [[nodiscard]] Device device() const { return impl("device").storage_->device(); }
  [[nodiscard]] DType dtype() const { return impl("dtype").dtype_; }
  [[nodiscard]] const Dims& shape() const { return impl("shape").layout_.shape; }
  [[nodiscard]] const Dims& strides() const { return impl("strides").layout_.strides; }
  [[nodiscard]] const Layout& layout() const { return impl("layout").layout_; }
  [[nodiscard]] std::int64_t offset() const { return impl("offset").layout_.offset; }
  [[nodiscard]] int ndim() const { return impl("ndim").layout_.ndim(); }
  [[nodiscard]] std::int64_t numel() const { return impl("numel").numel_; }
  [[nodiscard]] std::size_t nbytes() const {
    const TensorImpl& own = impl("nbytes");
    return static_cast<std::size_t>(own.numel_) * itemsize(own.dtype_);
  }
  /// Size along an axis, negative axes from the end; throws IndexError.
  [[nodiscard]] std::int64_t size(std::int64_t axis) const;
  [[nodiscard]] bool is_contiguous() const { return impl("is_contiguous").contiguous_; }
  /// The data pointer is a multiple of the item size (false only for borrowed memory).
  [[nodiscard]] bool is_aligned() const { return impl("is_aligned").aligned_; }
  /// Row-major, aligned and in the CPU's memory: what the fast path takes.
  [[nodiscard]] bool is_packed() const { return impl("is_packed").packed_; }
  [[nodiscard]] const Ref<Storage>& storage() const { return impl("storage").storage_; }
  [[nodiscard]] bool same_storage(const Tensor& other) const {
    return impl("same_storage").storage_.get() == other.impl("same_storage").storage_.get();
  }
  [[nodiscard]] bool is_same(const Tensor& other) const noexcept {
    return impl_.get() == other.impl_.get();
  }
  [[nodiscard]] std::uint32_t version() const { return impl("version").storage_->version(); }

  /// First element, untyped. An address of the tensor's device: only where that is the CPU may the
  /// host read it.
  [[nodiscard]] void* data_ptr() const { return impl("data_ptr").data_; }
  /// First element; throws DTypeError when T is not the dtype, ValueError when undefined or not on
  /// the CPU.
  template <class T>
  [[nodiscard]] T* data() const {
    if (!defined() || dtype() != dtype_of<T>) throw_not_of_dtype(dtype_of<T>, "data");
    if (!device().is_cpu()) throw_not_on_cpu("data");
    return reinterpret_cast<T*>(impl_->data_);
  }
  /// The only element, converted; throws ShapeError when there is not exactly one.
  [[nodiscard]] Scalar item() const;
  template <class T>
  [[nodiscard]] T item() const {
    const Scalar s = item();
    if constexpr (std::is_same_v<T, bool>) {
      return s.to_bool();
    } else if constexpr (std::is_unsigned_v<T>) {
      return static_cast<T>(s.to_uint64());
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(s.to_int64());
    } else {
      return static_cast<T>(s.to_double());
    }
  }
  /// All elements in row-major order; throws DTypeError when T is not the dtype.
  template <class T>
  [[nodiscard]] std::vector<T> to_vector() const {
    if (!defined() || dtype() != dtype_of<T>) throw_not_of_dtype(dtype_of<T>, "to_vector");
    std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>> out;
    // An expanded tensor has any size; beyond all address spaces it is not even tried.
    if (nbytes() >> 46 != 0) throw_no_room("to_vector");
    try {
      out.resize(static_cast<std::size_t>(numel()));
    } catch (const std::bad_alloc&) {
      throw_no_room("to_vector");
    }
    copy_to(out.data());
    if constexpr (std::is_same_v<T, bool>) {
      return {out.begin(), out.end()};
    } else {
      return out;
    }
  }
  /// Copies all elements, row-major, to `out`, which has room for nbytes() bytes.
  void copy_to(void* out) const;
  /// This tensor, seen through all its handles, has the elements of `source` from now on: its
  /// memory, device, dtype and strides. The shape stays; a gradient gets the new dtype and device.
  /// Not recorded, and not for several threads at once. Graphs recorded before keep the old
  /// elements and send their gradients here; views keep the old elements, too, and are views of
  /// this tensor no longer. Throws ShapeError for another shape, DTypeError for a dtype that cannot
  /// have the gradient that this tensor asks for.
  void set_data(const Tensor& source) const;

  // ---- Gradients (autograd/methods.cpp; see autograd.h)
  /// An op that is given this tensor is recorded.
  [[nodiscard]] bool requires_grad() const noexcept;
  /// Asks for the gradient of a leaf. Throws DTypeError unless it is floating, GradError when the
  /// tensor is the result of a recorded op and `wanted` is false.
  const Tensor& requires_grad_(bool wanted = true) const;
  /// Not the result of a recorded op.
  [[nodiscard]] bool is_leaf() const noexcept;
  /// What backward accumulated here; undefined before. Only leaves have one, and tensors that asked
  /// with retain_grad.
  Tensor grad() const;
  /// Replaces the gradient; an undefined tensor drops it.
  void set_grad(const Tensor& gradient) const;
  void zero_grad() const;
  /// Adds the gradient of this tensor to all leaves it was made from. `gradient` may be left out
  /// for a single element. The graph is freed unless `retain_graph`, which is `create_graph` by
  /// default.
  void backward(const Tensor& gradient = Tensor(), std::optional<bool> retain_graph = {},
                bool create_graph = false) const;
  /// The same elements without a history.
  Tensor detach() const;
  /// Keeps the gradient of a tensor that is no leaf.
  const Tensor& retain_grad() const;
  /// Called with the gradient before it goes further. Returns a number for remove_hook.
  int register_hook(autograd::Hook hook) const;
  void remove_hook(int id) const;
  /// The op that made it, "" for a leaf.
  [[nodiscard]] const char* grad_fn() const noexcept;

  // The rest is in ops/methods.cpp, on public ops; here because hands expect them as methods.
  Tensor to(DType dtype) const;
  /// A copy on another device, which has a gradient; the tensor itself where it is there already.
  Tensor to(Device device) const;
  Tensor cpu() const;
  Tensor contiguous() const;
  Tensor clone() const;
  Tensor reshape(const Dims& shape) const;
  /// Like reshape, but never copies: throws ShapeError where the strides do not allow a view.
  Tensor view(const Dims& shape) const;
  Tensor permute(const Dims& axes) const;
  Tensor transpose(std::int64_t axis0, std::int64_t axis1) const;
  /// Last two axes swapped.
  Tensor mT() const;
  Tensor expand(const Dims& shape) const;
  /// x[i]: the i-th slice of the first axis.
  Tensor operator[](std::int64_t index) const;
  /// NumPy indexing: integers, Slice, Ellipsis, NewAxis, integer and boolean tensors.
  Tensor index(const std::vector<Index>& indices) const;
  /// x[indices] = value, broadcast.
  const Tensor& index_put_(const std::vector<Index>& indices, const Tensor& value) const;
  const Tensor& index_put_(const std::vector<Index>& indices, const Scalar& value) const;
  /// A copy in which this was done.
  Tensor index_put(const std::vector<Index>& indices, const Tensor& value) const;
  Tensor index_put(const std::vector<Index>& indices, const Scalar& value) const;
  const Tensor& copy_(const Tensor& source) const;
  const Tensor& fill_(const Scalar& value) const;

 private:
  friend class History;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  template <class... Args>
  static Tensor make(Args&&... args);
  static Tensor copy_of(const void* values, std::int64_t count, const Dims& shape, DType dtype);
  static Tensor copy_of(const void* values, const Dims& shape, DType dtype) {
    return copy_of(values, shape[0], shape, dtype);
  }
  /// What it points to; `member` opens the message of the ValueError of an undefined tensor.
  const TensorImpl& impl(const char* member) const {
    if (!impl_) [[unlikely]]
      throw_undefined(member);
    return *impl_;
  }
  [[noreturn, gnu::cold]] static void throw_undefined(const char* member);
  [[noreturn]] void throw_not_of_dtype(DType asked, const char* who) const;
  [[noreturn]] void throw_no_room(const char* who) const;
  [[noreturn]] void throw_not_on_cpu(const char* who) const;

  Ref<TensorImpl> impl_;
};

/// "float32[2,3]", or "undefined".
[[nodiscard]] BAREGRAD_API std::string describe(const Tensor& tensor);

}  // namespace baregrad
