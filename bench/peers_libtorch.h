// libtorch as a peer of the C++ rows, opened at run time. Nothing here is linked.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/harness.h"
#include "bench/libtorch/peer.h"

namespace baregrad::bench::peers {

using Libtorch = const BaregradLibtorchPeer*;  // null: not there

/// The peer that BAREGRAD_LIBTORCH_PEER names (`make bench` builds it and sets the variable); null,
/// with a note to the session, where there is none. Throws ValueError where it cannot be opened.
Libtorch libtorch(Session& session);
/// Adds it to the row's candidates, at the row's number of threads. Nothing happens without it.
void add_libtorch(Row& row, Libtorch peer, std::function<void(std::int64_t calls)> run);

}  // namespace baregrad::bench::peers
