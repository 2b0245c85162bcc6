// Helpers for tests of files: error messages, bytes, tensors of every kind.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::test {

/// The message of the error of this type; "" when there is none.
template <class E, class F>
std::string error_of(const F& act) {
  try {
    act();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

/// Whether `act` refuses a name with a NUL character: "who: ...'name' holds a NUL character".
template <class E, class F>
bool refuses_nul(const std::string& who, const F& act) {
  const std::string error = error_of<E>(act);
  return error.starts_with(who + ": ") && error.find(" holds a NUL character") != std::string::npos;
}

inline io::Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
inline std::string text_of(const io::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

inline void put_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

/// Every bit pattern of the low byte, whatever the dtype.
inline Tensor pattern(const Dims& shape, DType dtype, int seed = 1) {
  Tensor out = Tensor::allocate(shape, dtype, "pattern");
  auto* data = static_cast<unsigned char*>(out.data_ptr());
  for (std::size_t i = 0; i < out.nbytes(); ++i) {
    const auto value = static_cast<unsigned char>(i * 37 + static_cast<std::size_t>(seed) * 101);
    data[i] = dtype == DType::Bool ? value & 1 : value;
  }
  return out;
}

/// Elements in row-major order, as bytes.
inline std::string raw(const Tensor& tensor) {
  std::string out(tensor.nbytes(), '\0');
  tensor.copy_to(out.data());
  return out;
}

inline void expect_same(const Tensor& a, const Tensor& b, const std::string& what = "") {
  EXPECT_EQ(describe(a), describe(b)) << what;
  EXPECT_TRUE(raw(a) == raw(b)) << what;
}

inline void expect_same(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    expect_same(a[i].tensor, b[i].tensor, a[i].name);
  }
}

inline std::vector<DType> all_dtypes() {
  std::vector<DType> out;
  for (int i = 0; i < kNumDTypes; ++i) out.push_back(static_cast<DType>(i));
  return out;
}

/// All dtypes, narrow ones first, and special shapes.
inline NamedTensors varied(bool bfloat = true) {
  NamedTensors out;
  for (const DType dtype : all_dtypes()) {
    if (!bfloat && dtype == DType::BFloat16) continue;
    const std::string base(name(dtype));
    out.push_back({base + "/scalar", pattern({}, dtype, 2)});
    out.push_back({base + "/empty", pattern({0, 3}, dtype)});
    out.push_back({base + "/vector", pattern({5}, dtype, 3)});
    out.push_back({base + "/matrix", pattern({3, 7}, dtype, 4)});
    out.push_back({base + "/turned", pattern({3, 4, 5}, dtype, 5).permute({2, 0, 1})});
  }
  return out;
}

}  // namespace baregrad::test
