// Copies in columns and the loop over a stack.
#include "backends/cpu/linalg/stack.h"

#include <algorithm>
#include <new>
#include <utility>

#include "backends/cpu/describe.h"
#include "backends/cpu/walkers/elementwise.h"
#include "baregrad/error.h"
#include "core/message.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels::linalg {

namespace {

/// Multiplications that are worth a task of their own.
constexpr std::int64_t kWorkOfTask = 1 << 16;

/// A view with its last two axes exchanged.
class Transposed {
 public:
  explicit Transposed(const View& x) : view_(x) {
    std::copy_n(x.shape, x.ndim, shape_.begin());
    std::copy_n(x.strides, x.ndim, strides_.begin());
    const auto last = static_cast<std::size_t>(x.ndim) - 1;
    std::swap(shape_[last], shape_[last - 1]);
    std::swap(strides_[last], strides_[last - 1]);
    view_.shape = shape_.data();
    view_.strides = strides_.data();
    view_.packed = false;
  }
  Transposed(const Transposed&) = delete;
  Transposed& operator=(const Transposed&) = delete;
  /// The first `rows` rows.
  const View& cut_to(std::int64_t rows) {
    shape_[static_cast<std::size_t>(view_.ndim) - 2] = rows;
    return view_;
  }
  const View& view() const noexcept { return view_; }

 private:
  std::array<std::int64_t, kMaxDims> shape_{};
  std::array<std::int64_t, kMaxDims> strides_{};
  View view_;
};

}  // namespace

Matrices::Matrices(const View& x, std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {
  std::copy_n(x.shape, x.ndim - 2, shape_.begin());
  const auto last = static_cast<std::size_t>(x.ndim) - 1;
  shape_[last - 1] = cols;
  shape_[last] = rows;
  View like = x;
  like.shape = shape_.data();
  view_ = memory_.allocate(like, DType::Float64);
}

void Matrices::read(const View& x) { copy(Transposed(x).view(), view_); }
void Matrices::read_transposed(const View& x) { copy(x, view_); }
void Matrices::write(const View& out) const { copy(Transposed(view_).cut_to(rows_of(out)), out); }
void Matrices::write_transposed(const View& out) const { copy(view_, out); }

Numbers::Numbers(const View& out) : out_(out), view_(out) {
  if (out.dtype != DType::Float64 || !out.packed) view_ = memory_.allocate(out, DType::Float64);
}

void Numbers::write() const {
  if (view_.data != out_.data) copy(view_, out_);
}

void for_each_matrix(const View& x, std::initializer_list<std::int64_t> sides, const char* who,
                     const std::function<void(std::int64_t)>& fn) {
  std::int64_t count = 1;
  for (int i = 0; i < x.ndim - 2; ++i) count *= x.shape[i];
  // A double, since sides of 10^7 are possible where another is 1; only the magnitude matters.
  double work = 1.0;
  for (const std::int64_t side : sides)
    work *= static_cast<double>(std::max<std::int64_t>(side, 1));
  const double share = static_cast<double>(kWorkOfTask) / work;
  const auto grain = std::max<std::int64_t>(static_cast<std::int64_t>(share), 1);
  try {
    parallel::parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) fn(i);
    });
  } catch (const std::bad_alloc&) {
    const auto bytes = static_cast<std::size_t>(numel(x)) * itemsize(x.dtype);
    throw OutOfMemory(message(who, ": no memory to take ", describe(x), " apart"),
                      bytes / static_cast<std::size_t>(std::max<std::int64_t>(count, 1)), 0);
  }
}

std::string name_matrix(const View& x, std::int64_t i) {
  return x.ndim == 2 ? describe(x) : message("matrix ", i, " of ", describe(x));
}

void require_fine(Outcome outcome, const View& x, std::int64_t i, const char* who) {
  if (outcome == Outcome::NotFinite) {
    throw ValueError(message(who, ": ", name_matrix(x, i), " has a NaN or an infinity in it"));
  }
  if (outcome == Outcome::NoConvergence) {
    throw ValueError(message(who, ": the iteration did not converge on ", name_matrix(x, i)));
  }
}

}  // namespace baregrad::kernels::linalg
