// Threads by the system's own interface: created for every product, joined at its end.
#include "lab/ladder/threads.h"

#include <vector>

#include <pthread.h>

#include "lab/ladder/multiply.h"

namespace baregrad::lab {
namespace {

struct Share {
  std::int64_t n;
  RowShare rows;
  const float* a;
  const float* b;
  float* c;
};

void* multiply_share(void* argument) {
  const Share& share = *static_cast<const Share*>(argument);
  multiply_packed_rows(share.n, share.rows.begin, share.rows.end, share.a, share.b, share.c);
  return nullptr;
}

}  // namespace

void multiply_pthreads(std::int64_t n, const float* a, const float* b, float* c, int threads) {
  std::vector<Share> shares;
  for (int t = 0; t < threads; ++t) shares.push_back({n, row_share(n, t, threads), a, b, c});
  // The caller does the first share itself, and those for which the system has no thread.
  std::vector<pthread_t> created;
  std::size_t next = 1;
  for (; next < shares.size(); ++next) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, multiply_share, &shares[next]) != 0) break;
    created.push_back(thread);
  }
  multiply_share(&shares[0]);
  for (; next < shares.size(); ++next) multiply_share(&shares[next]);
  for (const pthread_t thread : created) pthread_join(thread, nullptr);
}

}  // namespace baregrad::lab
