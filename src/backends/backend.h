// The interface of a backend, versioned and in plain C: a backend may be a shared library of its
// own, built by another compiler, beside an engine whose symbols are hidden. Functions return 0, or
// fill in a status and return its code; no exception and no C++ type crosses.
//
// A backend library exports baregrad_open_backend(). docs/adding_a_backend.md builds one step by
// step.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BAREGRAD_BACKEND_ABI 1u

/// What went wrong. Codes become the engine's error types.
enum {
  BAREGRAD_OK = 0,
  BAREGRAD_VALUE_ERROR = 1,
  BAREGRAD_INDEX_ERROR = 2,
  BAREGRAD_OUT_OF_MEMORY = 3,
  BAREGRAD_UNSUPPORTED = 4,
  BAREGRAD_FAILED = 5
};
typedef struct baregrad_status {
  int32_t code;
  char message[1020];
} baregrad_status;

/// A strided array on the device. Strides count elements and may be 0 or negative.
typedef struct baregrad_view {
  void* data;
  const int64_t* shape;
  const int64_t* strides;
  int32_t ndim;
  uint8_t dtype;   ///< baregrad::DType
  uint8_t packed;  ///< known to be row-major and aligned to the element
} baregrad_view;

/// One op call. Everything it points to lives until execute() returns.
typedef struct baregrad_call {
  uint16_t op;        ///< the row of ops.def; its name is op_name
  uint8_t attr_kind;  ///< the struct of attrs.h behind `attrs`; 0 for none
  uint8_t compute;    ///< the dtype that elementwise ops, reductions and products compute in
  uint32_t attrs_size;
  const void* attrs;
  const char* op_name;
  const char* who;  ///< what messages start with
  const baregrad_view* inputs;
  const baregrad_view* outputs;
  uint32_t input_count;
  uint32_t output_count;
  uint64_t random_seed;  ///< of random ops: where their numbers begin
  uint64_t random_position;
} baregrad_call;

/// What the engine offers to backends.
typedef struct baregrad_host {
  uint32_t abi;
  /// Runs a call whose views point to host memory with the CPU backend, values checked
  /// first. Thread-safe.
  int32_t (*execute_on_host)(const baregrad_call* call, baregrad_status* status);
  /// Copies the attributes of a call, to keep them; `to` has attrs_size bytes, aligned to 8.
  void (*copy_attrs)(uint8_t attr_kind, void* to, const void* from);
  /// Bytes of an element.
  uint32_t (*itemsize)(uint8_t dtype);
} baregrad_host;

/// A backend: function pointers and what they are called with. Process lifetime, thread-safe. Calls
/// for one device take effect in the order in which they are made.
typedef struct baregrad_backend {
  uint32_t abi;
  uint32_t device_type;  ///< baregrad::DeviceType
  const char* name;
  void* self;

  int32_t (*device_count)(void* self);
  /// One line of text, cut at `size` bytes.
  void (*info)(void* self, int32_t device, char* text, size_t size);

  // Memory. Addresses are the device's own; arithmetic on them stays inside a block.
  int32_t (*allocate)(void* self, int32_t device, size_t bytes, void** block,
                      baregrad_status* status);
  void (*release)(void* self, int32_t device, void* block, size_t bytes);
  /// Waits for what the bytes depend on.
  int32_t (*copy_to_host)(void* self, int32_t device, void* to, const void* from, size_t bytes,
                          baregrad_status* status);
  /// Has read the host's bytes when it returns.
  int32_t (*copy_from_host)(void* self, int32_t device, void* to, const void* from, size_t bytes,
                            baregrad_status* status);
  /// Between two devices of this backend.
  int32_t (*copy_across)(void* self, int32_t to_device, void* to, int32_t from_device,
                         const void* from, size_t bytes, baregrad_status* status);
  int32_t (*fill)(void* self, int32_t device, void* to, uint8_t byte, size_t bytes,
                  baregrad_status* status);

  /// Whether execute() takes the op with inputs of these dtypes.
  int32_t (*supports)(void* self, uint16_t op, const uint8_t* dtypes, uint32_t count);
  /// Starts the call into outputs that exist. It may return before it has run; errors of values are
  /// then reported by a later call.
  int32_t (*execute)(void* self, int32_t device, const baregrad_call* call,
                     baregrad_status* status);
  /// Waits for all calls made so far; reports the first error among them.
  int32_t (*wait)(void* self, int32_t device, baregrad_status* status);
  /// Nanoseconds of the device's clock when all calls made so far have run.
  int32_t (*time_stamp)(void* self, int32_t device, uint64_t* nanoseconds, baregrad_status* status);
} baregrad_backend;

/// The one function that a backend library exports, baregrad_open_backend: null where it cannot
/// work with this host. The host and the backend live as long as the process.
typedef const baregrad_backend* (*baregrad_backend_entry)(const baregrad_host* host);

#ifdef __cplusplus
}
#endif
