// The variables that the engine reads.
#pragma once

namespace baregrad::cli {

/// Throws ValueError for a BAREGRAD_NUM_THREADS, BAREGRAD_ISA or BAREGRAD_ALLOC that names nothing.
/// Before any work: each is otherwise noticed at its first use, or never.
void check_environment();

/// Throws ValueError for a BAREGRAD_DATA that is no folder: for commands that look for data, which
/// would otherwise find it elsewhere without a word.
void check_data_variable();

}  // namespace baregrad::cli
