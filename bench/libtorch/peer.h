// The functions of bench/libtorch/peer.cpp: the work of our rows, done by libtorch. A C interface,
// so that the benchmarks can open it at run time without knowing PyTorch.
#pragma once

#include <stdint.h>

extern "C" {

/// Every function does its work `calls` times.
struct BaregradLibtorchPeer {
  const char* (*version)();
  void (*set_threads)(int threads);
  /// Two float vectors of `n` elements.
  void (*add)(int64_t n, int64_t calls);
  /// A block of `bytes`; one write per page where `touch` is not 0.
  void (*allocate)(int64_t bytes, int touch, int64_t calls);
  /// Ten ops on two numbers, backward, gradients dropped. Writes the gradients of the last call to
  /// `grads`.
  void (*ten_ops)(float a, float b, float* grads, int64_t calls);
  /// x = x + leaf, `nodes` times, backward.
  void (*chain)(int64_t nodes, int64_t calls);
  /// A network of linear layers with relu between them: forward, mean square, backward, gradient
  /// descent. `sizes` has `count` entries, from input features to output features.
  void (*step)(const int64_t* sizes, int count, int64_t batch, int64_t calls);
};

const struct BaregradLibtorchPeer* baregrad_libtorch_peer(void);
}
