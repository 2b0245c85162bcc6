// The real system calls.
#include "io/system_calls.h"

#include <cstdio>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace baregrad::io {

SystemCalls system_calls = {
    [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
    ::write,
    ::fsync,
    ::ftruncate,
    ::close,
    ::rename,
    ::unlink,
    ::flock,
};

}  // namespace baregrad::io
