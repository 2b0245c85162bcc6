// Private mappings, and tensors that lie in them or are copied out of them.
#include "io/input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "core/checked.h"
#include "core/message.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) noexcept : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const noexcept { return value_; }

 private:
  int value_;
};

void reverse_each(void* data, std::size_t bytes, std::size_t width) noexcept {
  auto* at = static_cast<std::uint8_t*>(data);
  for (std::size_t i = 0; i < bytes; i += width) std::reverse(at + i, at + i + width);
}

}  // namespace

Input map_file(const std::string& path, const char* who) {
  Input input;
  input.where = message(who, ": '", path, "'");
  const auto fail = [&](int error) {
    throw IoError(message(who, ": cannot read '", path, "': ", std::strerror(error)));
  };
  // Not to wait for a pipe that nobody writes to.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.value() < 0) fail(errno);
  struct stat about {};
  if (::fstat(file.value(), &about) != 0) fail(errno);
  if (S_ISDIR(about.st_mode)) fail(EISDIR);
  if (!S_ISREG(about.st_mode)) throw IoError(message(input.where, ": not a regular file"));
  const auto bytes = static_cast<std::size_t>(about.st_size);
  if (bytes == 0) return input;
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.value(), 0);
  if (data == MAP_FAILED) fail(errno);
  input.keep = std::shared_ptr<void>(data, [bytes](void* start) { ::munmap(start, bytes); });
  input.bytes = {static_cast<const std::uint8_t*>(data), bytes};
  return input;
}

Input buffer(std::span<const std::uint8_t> bytes, const std::string& label, const char* who) {
  return {bytes, message(who, ": ", quoted_name(label)), nullptr};
}

std::optional<std::size_t> declared_bytes(const Dims& shape, DType dtype) {
  try {
    return checked_bytes(checked_numel(shape, dtype, "shape"), dtype);
  } catch (const Error&) {
    return {};
  }
}

Dims Elements::row_major() const {
  Dims out = shape;
  if (fortran_order) std::reverse(out.begin(), out.end());
  return out;
}

Tensor tensor_at(const Input& input, std::size_t offset, const Elements& elements) {
  const std::uint8_t* at = input.bytes.data() + offset;
  const bool aligned = (reinterpret_cast<std::uintptr_t>(at) & (itemsize(elements.dtype) - 1)) == 0;
  Tensor raw;
  if (input.keep != nullptr && aligned && !elements.swapped) {
    // The mapping is writable, and private.
    raw = Tensor::from_blob(const_cast<std::uint8_t*>(at), elements.row_major(), elements.dtype,
                            [keep = input.keep](void*) {});
  } else {
    raw = room_for(elements, input.where.c_str());
    if (raw.nbytes() > 0) std::memcpy(raw.data_ptr(), at, raw.nbytes());
  }
  return finish(raw, elements, input.where.c_str());
}

Tensor room_for(const Elements& elements, const char* who) {
  return Tensor::allocate(elements.row_major(), elements.dtype, who);
}

Tensor finish(const Tensor& raw, const Elements& elements, const char* who) {
  if (elements.swapped) reverse_each(raw.data_ptr(), raw.nbytes(), itemsize(elements.dtype));
  if (!elements.fortran_order || elements.shape.size() < 2) return raw;
  Layout layout = raw.layout();
  std::reverse(layout.shape.begin(), layout.shape.end());
  std::reverse(layout.strides.begin(), layout.strides.end());
  return Tensor::view_of(raw.storage(), elements.dtype, layout, who);
}

}  // namespace baregrad::io
