// Files read piece by piece, private mappings, and tensors made of either.
#include "io/input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "core/checked.h"
#include "core/device_hooks.h"
#include "core/message.h"
#include "io/text.h"
#include "parallel/interrupt.h"

namespace baregrad::io {

namespace {

void reverse_each(void* data, std::size_t bytes, std::size_t width) noexcept {
  auto* at = static_cast<std::uint8_t*>(data);
  for (std::size_t i = 0; i < bytes; i += width) std::reverse(at + i, at + i + width);
}

}  // namespace

OpenFile::OpenFile(const std::string& path, const char* who) : path_(path), who_(who) {
  check_path(path, who_);
  const auto fail = [&](int error) {
    throw IoError(message(who_, ": cannot read '", path_, "': ", std::strerror(error)));
  };
  // O_NONBLOCK: do not wait for the writer of a pipe.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(errno);
  struct stat about {};
  const int error = ::fstat(descriptor_, &about) != 0 ? errno : S_ISDIR(about.st_mode) ? EISDIR : 0;
  if (error != 0 || !S_ISREG(about.st_mode)) {
    ::close(descriptor_);
    if (error != 0) fail(error);
    throw IoError(message(who_, ": '", path_, "': not a regular file"));
  }
  size_ = static_cast<std::size_t>(about.st_size);
}

OpenFile::~OpenFile() { ::close(descriptor_); }

void OpenFile::read(void* out, std::size_t count, std::size_t offset) const {
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  auto* to = static_cast<std::uint8_t*>(out);
  while (count > 0) {
    parallel::poll_interrupt();
    const ssize_t got =
        ::pread(descriptor_, to, std::min(count, kPiece), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw IoError(message(who_, ": cannot read '", path_, "': ", std::strerror(errno)));
    }
    if (got == 0) {
      throw IoError(message(who_, ": '", path_, "' became shorter while it was read: ", offset,
                            " of ", size_, " bytes are left"));
    }
    to += got;
    offset += static_cast<std::size_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

Device device_for(const LoadOptions& options, const char* who) {
  const Device device = options.device.value_or(default_device());
  if (!device.is_cpu()) detail::hooks_of(device, who);
  return device;
}

Input open_input(const std::string& path, const LoadOptions& options, const char* who) {
  auto file = std::make_shared<const OpenFile>(path, who);
  Input input{.bytes = {},
              .where = message(who, ": '", path, "'"),
              .size = file->size(),
              .device = device_for(options, who)};
  if (!options.mmap) {
    input.file = std::move(file);
    return input;
  }
  if (input.size == 0) return input;
  void* data = ::mmap(nullptr, input.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                      file->descriptor(), 0);
  if (data == MAP_FAILED) {
    throw IoError(message(who, ": cannot map '", path, "': ", std::strerror(errno)));
  }
  input.keep = std::shared_ptr<void>(data, [size = input.size](void* at) { ::munmap(at, size); });
  input.bytes = {static_cast<const std::uint8_t*>(data), input.size};
  return input;
}

Input buffer(std::span<const std::uint8_t> bytes, const std::string& label, const char* who) {
  return {.bytes = bytes,
          .where = message(who, ": ", quoted_name(label)),
          .size = bytes.size(),
          .device = default_device()};
}

void load_front(Input& input, std::size_t count) {
  if (input.file == nullptr || input.bytes.size() >= count) return;
  // Memory from the allocator: a file that is too large is an OutOfMemory.
  const Tensor room =
      Tensor::allocate({static_cast<std::int64_t>(count)}, DType::UInt8, input.where.c_str());
  input.file->read(room.data_ptr(), count, 0);
  input.front = room;
  input.bytes = {static_cast<const std::uint8_t*>(room.data_ptr()), count};
}

std::string read_text(const std::string& path, const char* who) {
  const OpenFile file(path, who);
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
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
  Tensor raw;
  if (input.file != nullptr) {
    raw = room_for(elements, input.where.c_str());
    input.file->read(raw.data_ptr(), raw.nbytes(), offset);
    return finish(raw, elements, input.where.c_str()).to(input.device);
  }
  const std::uint8_t* at = input.bytes.data() + offset;
  const bool aligned = (reinterpret_cast<std::uintptr_t>(at) & (itemsize(elements.dtype) - 1)) == 0;
  if (input.keep != nullptr && aligned && !elements.swapped) {
    // The mapping is writable, and private.
    raw = Tensor::from_blob(const_cast<std::uint8_t*>(at), elements.row_major(), elements.dtype,
                            [keep = input.keep](void*) {});
  } else {
    raw = room_for(elements, input.where.c_str());
    if (raw.nbytes() > 0) std::memcpy(raw.data_ptr(), at, raw.nbytes());
  }
  return finish(raw, elements, input.where.c_str()).to(input.device);
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
