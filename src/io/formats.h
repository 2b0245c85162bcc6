// Readers and writers of the formats. `who`, the public function that was called, opens every
// message.
#pragma once

#include <string>

#include "baregrad/io.h"

namespace baregrad::io {

void save_safetensors_as(const std::string& path, const NamedTensors& tensors,
                         const Metadata& metadata, const char* who);
SafeTensors load_safetensors_as(const std::string& path, const LoadOptions& options,
                                const char* who);
/// Reads the header only, and returns its metadata.
Metadata load_metadata(const std::string& path, const char* who);

void save_npy_as(const std::string& path, const Tensor& tensor, const char* who);
Tensor load_npy_as(const std::string& path, const LoadOptions& options, const char* who);

void save_npz_as(const std::string& path, const NamedTensors& tensors, NpzMode mode,
                 const char* who);
NamedTensors load_npz_as(const std::string& path, const LoadOptions& options, const char* who);

}  // namespace baregrad::io
