// The system calls for writing files, in a table, so that tests can replace them by failing ones.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace baregrad::io {

struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int descriptor, const void* data, std::size_t bytes);
  int (*fsync)(int descriptor);
  int (*ftruncate)(int descriptor, off_t bytes);
  int (*close)(int descriptor);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  int (*flock)(int descriptor, int operation);
};

/// Written only by tests.
extern SystemCalls system_calls;

}  // namespace baregrad::io
