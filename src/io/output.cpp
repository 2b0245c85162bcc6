// Elements in row-major order, into files and buffers.
#include "io/output.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "baregrad/error.h"
#include "core/host.h"
#include "core/message.h"
#include "core/multi_index.h"
#include "io/atomic_file.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

/// Copies `count` items that lie `stride` bytes apart into a contiguous block.
template <std::size_t Width>
void gather(char* out, const char* in, std::int64_t count, std::int64_t stride) noexcept {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(out + i * Width, in + i * stride, Width);
}

void gather(char* out, const char* in, std::int64_t count, std::int64_t stride,
            std::size_t width) noexcept {
  switch (width) {
    case 1:
      return gather<1>(out, in, count, stride);
    case 2:
      return gather<2>(out, in, count, stride);
    case 4:
      return gather<4>(out, in, count, stride);
    default:
      return gather<8>(out, in, count, stride);
  }
}

}  // namespace

void write_elements(const Tensor& elements, const Sink& sink) {
  if (elements.numel() == 0) return;
  const HostRead here(elements);
  const Tensor& tensor = here.tensor();
  const auto* data = static_cast<const char*>(here.bytes());
  if (tensor.is_contiguous()) return sink({data, tensor.nbytes()});

  constexpr std::int64_t kBlock = 1 << 16;
  std::vector<char> block(kBlock);
  const auto width = static_cast<std::int64_t>(itemsize(tensor.dtype()));
  const int last = tensor.ndim() - 1;  // a 0-d tensor is contiguous
  std::array<std::int64_t, kMaxDims> at{};
  std::int64_t row = 0;   // bytes from `data` to the current row
  std::int64_t used = 0;  // bytes of the block in use
  const auto flush = [&] {
    sink({block.data(), static_cast<std::size_t>(used)});
    used = 0;
  };
  const auto size = [&](int axis) { return tensor.shape()[axis]; };
  const auto move = [&](int axis, std::int64_t steps) {
    row += steps * tensor.strides()[axis] * width;
  };
  do {
    for (std::int64_t i = 0; i < tensor.shape()[last];) {
      if (used == kBlock) flush();
      const std::int64_t room = (kBlock - used) / width;
      const std::int64_t count = std::min(tensor.shape()[last] - i, room);
      const std::int64_t stride = tensor.strides()[last] * width;
      gather(block.data() + used, data + row + i * stride, count, stride,
             static_cast<std::size_t>(width));
      used += count * width;
      i += count;
    }
  } while (next_index(at.data(), last, size, move));
  flush();
}

void write_file(const std::string& path, const char* who,
                const std::function<void(const Sink&)>& write) {
  AtomicFile file(path, who);
  file.open();
  write([&](std::string_view part) { file.write(part); });
  file.commit();
}

Bytes write_bytes(const std::function<void(const Sink&)>& write) {
  Bytes out;
  write([&](std::string_view part) { out.insert(out.end(), part.begin(), part.end()); });
  return out;
}

void check_named(const NamedTensors& tensors, const char* who) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const NamedTensor& entry : tensors) {
    if (!entry.tensor.defined()) {
      throw ValueError(message(who, ": tensor ", quoted_name(entry.name), " is undefined"));
    }
    names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw ValueError(message(who, ": two tensors are named ", quoted_name(*twice)));
  }
}

}  // namespace baregrad::io
