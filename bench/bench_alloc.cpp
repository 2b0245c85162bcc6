// Allocating and freeing: each of our allocators against malloc and mmap.
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include <malloc.h>
#include <sys/mman.h>

#include "baregrad/allocator.h"
#include "bench/benches.h"
#include "bench/peers_libtorch.h"

namespace baregrad::bench {
namespace {

constexpr std::size_t kPage = 4096;
// Blocks from this size on are used after allocation: one write per page makes the system provide
// it.
constexpr std::size_t kTouchedBytes = std::size_t{1} << 20;

void touch(void* block, std::size_t bytes) {
  auto* p = static_cast<volatile char*>(block);
  if (bytes >= kTouchedBytes) {
    for (std::size_t i = 0; i < bytes; i += kPage) p[i] = 1;
  }
  keep(p);
}

std::string size_text(std::size_t bytes) {
  if (bytes % (std::size_t{1} << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes % 1024 == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

void measure_allocator(Session& session, Allocator& allocator, std::size_t bytes,
                       peers::Libtorch libtorch) {
  Row row;
  row.name = std::string(allocator.name()) + (bytes >= kTouchedBytes ? ", touched" : "");
  row.dtype = "bytes";
  row.shape = size_text(bytes);
  row.candidates = {
      candidate(kOurs,
                [&allocator, bytes] {
                  void* block = allocator.allocate(bytes);
                  touch(block, bytes);
                  allocator.deallocate(block, bytes);
                }),
      candidate("malloc",
                [bytes] {
                  void* block = std::malloc(bytes);
                  if (block == nullptr) throw std::bad_alloc();
                  touch(block, bytes);
                  std::free(block);
                }),
      candidate("mmap",
                [bytes] {
                  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  if (block == MAP_FAILED) throw std::bad_alloc();
                  touch(block, bytes);
                  munmap(block, bytes);
                }),
  };
  peers::add_libtorch(row, libtorch, [libtorch, bytes](std::int64_t calls) {
    libtorch->allocate(static_cast<std::int64_t>(bytes), bytes >= kTouchedBytes ? 1 : 0, calls);
  });
  session.measure(row);
}

}  // namespace

void bench_alloc(Session& session) {
  const peers::Libtorch libtorch = peers::libtorch(session);
  // Returns free memory at the end of malloc's heap to the system. Otherwise malloc would reuse
  // pages that earlier benchmarks touched, which a new process does not have.
  malloc_trim(0);
  for (const std::int64_t size : session.sizes({4096, std::int64_t{64} << 20})) {
    const auto bytes = static_cast<std::size_t>(size);
    measure_allocator(session, pool_allocator(), bytes, libtorch);
    ArenaAllocator arena(2 * bytes + kPage);
    measure_allocator(session, arena, bytes, libtorch);
    measure_allocator(session, system_allocator(), bytes, libtorch);
  }
}

}  // namespace baregrad::bench
