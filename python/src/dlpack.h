// The memory layout of DLPack, the exchange format of array libraries: version 1, and the older
// layout without a version. The format defines the order and width of the fields.
#pragma once

#include <cstdint>

namespace baregrad::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kExtension = 12 };
enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };
inline constexpr std::uint64_t kReadOnly = 1;  // flags
inline constexpr std::uint64_t kIsCopied = 2;

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Array {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

/// The consumer calls deleter(self) once, on any thread.
struct Legacy {
  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsedName = "used_dltensor";

  Array array;
  void* context;
  void (*deleter)(Legacy* self);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct Versioned {
  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsedName = "used_dltensor_versioned";

  Version version;
  void* context;
  void (*deleter)(Versioned* self);
  std::uint64_t flags;
  Array array;
};

inline constexpr Version kVersion = {1, 0};

static_assert(sizeof(void*) == 8 && sizeof(Array) == 48, "the format's layout on 64 bits");
static_assert(sizeof(Legacy) == 64 && sizeof(Versioned) == 80);

}  // namespace baregrad::python::dlpack
