// Staging kernels on every instruction set: compared with copies of one element at a time, in
// buffers of the exact size, at any alignment.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "tests/isas.h"

namespace baregrad::kernels {
namespace {

using Bytes = std::vector<char>;

class StageKernelsOf : public testing::TestWithParam<Isa> {
 protected:
  /// visit(kernels, item size) for each size.
  template <class Visit>
  void for_each_size(Visit visit) {
    std::int64_t width = 1;
    for (const StageKernels& kernels : table(GetParam()).stage) {
      SCOPED_TRACE("item size " + std::to_string(width));
      visit(kernels, width);
      width *= 2;
    }
  }
};

Bytes counted(std::int64_t n) {
  Bytes bytes(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + i / 256);
  return bytes;
}

/// Exactly the memory asked for, `shift` bytes off any alignment, so that a sanitizer detects any
/// other access.
struct Block {
  Block(std::int64_t bytes, std::int64_t off)
      : data(new char[static_cast<std::size_t>(bytes + off)]), shift(off) {}
  char* begin() const { return data.get() + shift; }
  std::unique_ptr<char[]> data;
  std::int64_t shift;
};

TEST_P(StageKernelsOf, FillRepeatsOneValue) {
  for_each_size([](const StageKernels& kernels, std::int64_t width) {
    const Bytes value = counted(width);
    for (std::int64_t n = 0; n <= 130; ++n) {
      for (const std::int64_t shift : {0, 1, 7}) {
        const Block out(n * width, shift);
        kernels.fill(out.begin(), value.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(std::memcmp(out.begin() + i * width, value.data(), value.size()), 0)
              << i << " of " << n;
        }
      }
    }
  });
}

TEST_P(StageKernelsOf, GatherAndScatterFollowTheStride) {
  for_each_size([](const StageKernels& kernels, std::int64_t width) {
    for (std::int64_t n = 0; n <= 130; ++n) {
      for (const std::int64_t steps : {-3, -2, -1, 1, 2, 3, 5}) {
        for (const std::int64_t odd : {0, 1}) {
          const std::int64_t stride = steps * width + (steps > 0 ? odd : -odd);
          const std::int64_t reach = n == 0 ? 0 : (n - 1) * std::abs(stride) + width;
          const Block apart(reach, odd);
          const Bytes before = counted(reach);
          std::copy(before.begin(), before.end(), apart.begin());
          char* first = apart.begin() + (stride < 0 && n > 0 ? reach - width : 0);
          const Block together(n * width, odd);
          kernels.gather(together.begin(), first, stride, n);
          for (std::int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(std::memcmp(together.begin() + i * width, first + i * stride,
                                  static_cast<std::size_t>(width)),
                      0)
                << i << " of " << n << " stride " << stride;
          }

          Bytes expected = before;
          char* target = expected.data() + (first - apart.begin());
          const Bytes values = counted(n * width + 5);
          for (std::int64_t i = 0; i < n; ++i) {
            std::memcpy(target + i * stride, values.data() + 5 + i * width,
                        static_cast<std::size_t>(width));
          }
          kernels.scatter(first, stride, values.data() + 5, n);
          ASSERT_EQ(Bytes(apart.begin(), apart.begin() + reach), expected)
              << n << " elements, stride " << stride;
        }
      }
    }
  });
}

TEST_P(StageKernelsOf, TransposeTurnsABlock) {
  for_each_size([](const StageKernels& kernels, std::int64_t width) {
    for (std::int64_t rows = 1; rows <= 17; ++rows) {
      for (std::int64_t cols = 1; cols <= 21; ++cols) {
        for (const std::int64_t row_step : {1, 2}) {
          for (const std::int64_t odd : {0, 1}) {
            const std::int64_t row_stride = row_step * width;
            const std::int64_t col_stride = rows * row_stride + 3 * width + odd;
            const Block in((cols - 1) * col_stride + (rows - 1) * row_stride + width, odd);
            const Bytes values = counted((cols - 1) * col_stride + (rows - 1) * row_stride + width);
            std::memcpy(in.begin(), values.data(), values.size());
            const Block out(rows * cols * width, odd);
            kernels.transpose(out.begin(), in.begin(), rows, row_stride, cols, col_stride);
            for (std::int64_t r = 0; r < rows; ++r) {
              for (std::int64_t c = 0; c < cols; ++c) {
                ASSERT_EQ(std::memcmp(out.begin() + (r * cols + c) * width,
                                      in.begin() + r * row_stride + c * col_stride,
                                      static_cast<std::size_t>(width)),
                          0)
                    << r << ", " << c << " of " << rows << " x " << cols;
              }
            }
          }
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Isas, StageKernelsOf, testing::ValuesIn(test::all_isas()),
                         [](const auto& tested) { return std::string(isa_name(tested.param)); });

}  // namespace
}  // namespace baregrad::kernels
