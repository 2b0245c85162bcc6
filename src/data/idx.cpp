// IDX: two zero bytes, a dtype, the number of axes, their sizes, the elements, all big-endian.
#include <algorithm>
#include <optional>

#include "data/source.h"
#include "parallel/interrupt.h"

namespace baregrad::data {

namespace {

std::optional<DType> dtype_of_code(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::UInt8;
    case 0x09:
      return DType::Int8;
    case 0x0B:
      return DType::Int16;
    case 0x0C:
      return DType::Int32;
    case 0x0D:
      return DType::Float32;
    case 0x0E:
      return DType::Float64;
    default:
      return {};
  }
}

void swap_bytes(std::uint8_t* data, std::int64_t count, std::size_t size) {
  if (size == 1) return;
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  for (std::int64_t i = 0; i < count; ++i, data += size) {
    if (i % kPiece == 0) parallel::poll_interrupt();
    std::reverse(data, data + size);
  }
}

Tensor decode(Source& source) {
  const std::string& who = source.who();
  std::uint8_t magic[4];
  source.read_exactly(magic, 4, "header");
  const std::optional<DType> dtype = dtype_of_code(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !dtype.has_value()) {
    fail(who, "is no IDX file: begins with ", magic[0], " ", magic[1], " ", magic[2], " ", magic[3],
         ", needs 0 0, then 8, 9 or 11 to 14 for the dtype");
  }
  if (magic[3] > kMaxDims) {
    fail(who, "has ", magic[3], " axes, at most ", kMaxDims, " are possible");
  }
  Dims shape;
  for (int axis = 0; axis < magic[3]; ++axis) {
    std::uint8_t size[4];
    source.read_exactly(size, 4, "header");
    shape.push_back(load_be32(size));
  }
  const std::int64_t numel = declared_numel(shape, *dtype, who);
  const auto bytes = static_cast<std::uint64_t>(numel) * itemsize(*dtype);
  if (bytes > source.most_left()) {
    fail(who, "declares ", name(*dtype), to_string(shape), ", ", bytes,
         " bytes, but cannot hold more than ", source.most_left());
  }
  if (bytes > source.limit()) {
    fail_limit(who,
               message("declares ", name(*dtype), to_string(shape), ", ", bytes, " bytes, more"),
               source.limit());
  }
  Tensor out = Tensor::allocate(shape, *dtype, who.c_str());
  source.read_exactly(out.data_ptr(), out.nbytes(), "elements");
  if (!source.at_end()) {
    fail(who, "has bytes after the elements of ", name(*dtype), to_string(shape));
  }
  swap_bytes(static_cast<std::uint8_t*>(out.data_ptr()), numel, itemsize(*dtype));
  return out;
}

}  // namespace

Tensor read_idx(const std::string& path, std::uint64_t max_bytes) {
  return decode(*open_file(path, "read_idx", max_bytes));
}
Tensor decode_idx(Bytes bytes, std::uint64_t max_bytes) {
  return decode(*open_memory(bytes, "decode_idx", max_bytes));
}

}  // namespace baregrad::data
