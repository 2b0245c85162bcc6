// Index kernels whose indices, masks and classes have changed since they were checked, as another
// thread may do in borrowed memory. Results are undefined, but no memory outside the operands is
// touched.
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/table.h"
#include "baregrad/dtype.h"
#include "tests/backends/fenced_buffer.h"

namespace baregrad::kernels {
namespace {

using test::FencedBuffer;

/// A contiguous array that ends at an inaccessible page.
class Fenced {
 public:
  Fenced(DType dtype, std::vector<std::int64_t> shape)
      : shape_(std::move(shape)),
        strides_(shape_.size()),
        buffer_(itemsize(dtype) * static_cast<std::size_t>(count())) {
    std::int64_t stride = 1;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      strides_[i] = stride;
      stride *= shape_[i];
    }
    view = {buffer_.data(), dtype, static_cast<int>(shape_.size()), shape_.data(), strides_.data()};
  }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(buffer_.data());
  }
  template <class T>
  Fenced& fill(T value) {
    std::fill_n(data<T>(), count(), value);
    return *this;
  }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t size : shape_) n *= size;
    return n;
  }
  bool intact() { return buffer_.intact_before(); }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;
  FencedBuffer buffer_;

 public:
  View view;
};

constexpr std::int64_t kWild[] = {0,
                                  -1,
                                  4,
                                  -5,
                                  1 << 20,
                                  -(1 << 20),
                                  std::numeric_limits<std::int64_t>::max(),
                                  std::numeric_limits<std::int64_t>::min()};

class ChangedIndices : public testing::TestWithParam<std::int64_t> {};

TEST_P(ChangedIndices, PickAndPlaceStayInside) {
  Fenced x(DType::Float32, {4, 3});
  Fenced rows(DType::Int64, {5});
  Fenced columns(DType::Int64, {5, 3});
  Fenced picked(DType::Float32, {5, 3});
  Fenced out(DType::Float32, {4, 3});
  x.fill(1.0F);
  rows.fill(GetParam());
  columns.fill(GetParam());
  picked.fill(2.0F);
  Attrs attrs;
  const View take_in[] = {x.view, rows.view};
  take_kernel({attrs, take_in, {&picked.view, 1}});
  for (std::int64_t i = 0; i < picked.count(); ++i) EXPECT_EQ(picked.data<float>()[i], 1.0F);
  const View gather_in[] = {x.view, columns.view};
  gather_kernel({attrs, gather_in, {&picked.view, 1}});
  const View scatter_in[] = {x.view, columns.view, picked.view};
  scatter_kernel({attrs, scatter_in, {&out.view, 1}});
  scatter_add_kernel({attrs, scatter_in, {&out.view, 1}});
  const View put_in[] = {picked.view, rows.view};
  for (const bool accumulate : {false, true}) {
    attrs.flag = accumulate;
    index_put_kernel({attrs, put_in, {&out.view, 1}});
  }
  EXPECT_TRUE(x.intact() && picked.intact() && out.intact());
}

TEST_P(ChangedIndices, ClassesStayInside) {
  for (const double smoothing : {0.0, 0.1}) {
    Fenced x(DType::Float32, {6, 4});
    Fenced classes(DType::Int64, {6});
    Fenced weights(DType::Float32, {4});
    Fenced loss(DType::Float32, {});
    Fenced stats(DType::Float32, {13});
    Fenced gradient(DType::Float32, {6, 4});
    x.fill(0.5F);
    classes.fill(GetParam());
    weights.fill(1.0F);
    loss.fill(1.0F);
    Attrs attrs;
    attrs.mode = 2;
    attrs.ints[0] = -100;
    attrs.params[0] = smoothing;
    const View in[] = {x.view, classes.view, weights.view};
    const View out[] = {loss.view, stats.view};
    cross_entropy_kernel({attrs, in, out});
    const View back_in[] = {loss.view, x.view, classes.view, stats.view, weights.view};
    cross_entropy_backward_kernel({attrs, back_in, {&gradient.view, 1}});
    EXPECT_TRUE(gradient.intact() && stats.intact() && loss.intact());
  }
}

INSTANTIATE_TEST_SUITE_P(Wild, ChangedIndices, testing::ValuesIn(kWild));

/// The number of true elements in the mask now, and the number counted before.
struct Counted {
  std::int64_t now;
  std::int64_t before;
};
class ChangedMask : public testing::TestWithParam<Counted> {};

TEST_P(ChangedMask, WritesWhatThereIsRoomFor) {
  constexpr std::int64_t kSize = 100000;
  const auto [now, before] = GetParam();
  Fenced mask(DType::Bool, {kSize / 100, 100});
  Fenced x(DType::Float32, {kSize / 100, 100});
  Fenced picked(DType::Float32, {before});
  Fenced first(DType::Int64, {before});
  Fenced second(DType::Int64, {before});
  mask.fill(std::uint8_t{0});
  x.fill(3.0F);
  for (std::int64_t i = 0; i < now; ++i) mask.data<std::uint8_t>()[i * (kSize / now)] = 1;
  const Attrs attrs;
  const View in[] = {x.view, mask.view};
  masked_select_kernel({attrs, in, {&picked.view, 1}});
  for (std::int64_t i = 0; i < before; ++i) ASSERT_EQ(picked.data<float>()[i], 3.0F) << i;
  const View positions[] = {first.view, second.view};
  nonzero_kernel({attrs, {&mask.view, 1}, positions});
  for (std::int64_t i = 0; i < before; ++i) {
    ASSERT_LT(static_cast<std::uint64_t>(first.data<std::int64_t>()[i]), kSize / 100);
    ASSERT_LT(static_cast<std::uint64_t>(second.data<std::int64_t>()[i]), 100U);
  }
  EXPECT_TRUE(picked.intact() && first.intact() && second.intact());
}

INSTANTIATE_TEST_SUITE_P(Counts, ChangedMask,
                         testing::Values(Counted{100000, 7}, Counted{7, 100000}, Counted{1, 0},
                                         Counted{500, 499}, Counted{499, 500}, Counted{500, 500},
                                         Counted{100000, 100000}));

}  // namespace
}  // namespace baregrad::kernels
