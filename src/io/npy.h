// The npy format's header, which files and members of npz archives share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "baregrad/tensor.h"
#include "io/input.h"

namespace baregrad::io {

/// Bytes that tell how long the header is: magic, version, length.
inline constexpr std::size_t kNpyPreamble = 12;
/// Most bytes of a header, as in NumPy: the shape of 16 sizes and a dtype need a few hundred.
inline constexpr std::size_t kMostNpyHeader = 10'000;

/// Bytes up to the data, from the first kNpyPreamble bytes (or all there are). Throws IoError that
/// opens with `where`.
std::size_t npy_data_offset(std::span<const std::uint8_t> start, const std::string& where);
/// What the header, of npy_data_offset() bytes, declares.
Elements npy_elements(std::span<const std::uint8_t> header, const std::string& where);
/// Throws IoError unless `elements` take exactly `available` bytes.
void check_npy_bytes(const Elements& elements, std::uint64_t available, const std::string& where);

/// The header of a file with this tensor; throws DTypeError for bfloat16.
std::string npy_header(const Tensor& tensor, const std::string& where);

}  // namespace baregrad::io
