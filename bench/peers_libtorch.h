// libtorch as a peer of the C++ rows, opened at run time. Nothing here is linked.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/harness.h"
#include "bench/libtorch/peer.h"

namespace baregrad::bench::peers {

using Libtorch = const BaregradLibtorchPeer*;  // null: not available

/// The peer in the file that BAREGRAD_LIBTORCH_PEER names (`make bench` builds it and sets the
/// variable). Null, with a note to the session, when the variable is not set. Throws ValueError
/// when it cannot be opened.
Libtorch libtorch(Session& session);
/// Adds it to the row's candidates, with the row's number of threads. Does nothing without a peer.
void add_libtorch(Row& row, Libtorch peer, std::function<void(std::int64_t calls)> run);

}  // namespace baregrad::bench::peers
