// The npy format's header, which files and members of npz archives share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "baregrad/tensor.h"
#include "io/input.h"

namespace baregrad::io {

/// The bytes that state the length of the header: magic, version, length.
inline constexpr std::size_t kNpyPreamble = 12;
/// The header's size limit, as in NumPy: a shape of 16 sizes and a dtype need a few hundred bytes.
inline constexpr std::size_t kMostNpyHeader = 10'000;

/// The offset of the data, from the first kNpyPreamble bytes (or all there are). Throws an IoError
/// that opens with `where`.
std::size_t npy_data_offset(std::span<const std::uint8_t> start, const std::string& where);
/// The elements that the header of npy_data_offset() bytes declares.
Elements npy_elements(std::span<const std::uint8_t> header, const std::string& where);
/// Throws IoError unless `elements` take exactly `available` bytes.
void check_npy_bytes(const Elements& elements, std::uint64_t available, const std::string& where);

/// The header of a file with this tensor; throws DTypeError for bfloat16.
std::string npy_header(const Tensor& tensor, const std::string& where);

}  // namespace baregrad::io
