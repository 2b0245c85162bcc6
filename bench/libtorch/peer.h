// What bench/libtorch/peer.cpp offers: the same work as our rows, done by libtorch. Plain C, so
// that the benchmarks can open it at run time and know nothing of PyTorch.
#pragma once

#include <stdint.h>

extern "C" {

/// Every function does its work `calls` times over.
struct BaregradLibtorchPeer {
  const char* (*version)();
  void (*set_threads)(int threads);
  /// Two float vectors of `n` elements.
  void (*add)(int64_t n, int64_t calls);
  /// A block of `bytes`; one write per page where `touch` is not 0.
  void (*allocate)(int64_t bytes, int touch, int64_t calls);
  /// Ten ops on two numbers, backward, gradients dropped. Leaves those of the last call in `grads`.
  void (*ten_ops)(float a, float b, float* grads, int64_t calls);
  /// x = x + leaf, `nodes` times, backward.
  void (*chain)(int64_t nodes, int64_t calls);
  /// A network of fully connected layers with relu between them: forward, mean square, backward,
  /// gradient descent. `sizes` has `count` entries, from the input's features to the output's.
  void (*step)(const int64_t* sizes, int count, int64_t batch, int64_t calls);
};

const struct BaregradLibtorchPeer* baregrad_libtorch_peer(void);
}
