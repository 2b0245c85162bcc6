// Backends of devices other than the CPU: finding them, and calls of them.
#pragma once

#include <span>

#include "backends/backend.h"
#include "backends/call.h"
#include "baregrad/device.h"

namespace baregrad::backends {

/// Makes a backend available to the process. ValueError where it is of another version, or where
/// its type has one already.
void add_backend(const baregrad_backend& backend);
/// Opens a library and adds the backend that it exports. IoError where it cannot be opened.
void add_backend_library(const char* path);

/// Runs a call on a device. Throws the error that the backend reports.
void execute(Device device, const kernels::Call& call);
/// Between two devices of one type.
void copy_across(Device to_device, void* to, Device from_device, const void* from,
                 std::size_t bytes);
bool supports(Device device, OpId op, std::span<const DType> inputs);
/// The device's clock, once all calls made so far have run.
std::uint64_t time_stamp(Device device);

/// What a backend gets from the engine.
const baregrad_host& host_services() noexcept;

}  // namespace baregrad::backends
