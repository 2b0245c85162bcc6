// The environment variables that the engine reads.
#pragma once

namespace baregrad::cli {

/// Throws ValueError for an invalid BAREGRAD_NUM_THREADS, BAREGRAD_ISA or BAREGRAD_ALLOC. Called
/// before any work: the engine would notice an error only at the first use, or never.
void check_environment();

/// Throws ValueError for a BAREGRAD_DATA that is not a folder. For commands that look for data:
/// they would otherwise silently find it elsewhere.
void check_data_variable();

}  // namespace baregrad::cli
