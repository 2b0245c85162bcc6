// The profiler. It records every op, kernel and backward step with its time, and writes a file for
// https://ui.perfetto.dev and chrome://tracing.
//
// Categories of events:
//   op        one call at the dispatch point, from checks to the finished result
//   kernel    the computing part of an op, in the calling thread and in each worker
//   backward  the gradient rule of one node of a recorded graph, with its ops
// Arguments: thread, label (autograd::Label), dtypes and shapes of inputs and results, and
//   bytes     every input is read once, every result written once; elements that an axis repeats
//             (stride 0) count once
//   flops     products: 2 m n k, and 1 per element of the result for each of bias, added matrix and
//             activation; elementwise ops: 1 per element of the result, for any function;
//             reductions, scans, softmax, normalisations and cross-entropy, and their backward: 1
//             per element of the input; moves of elements: 0. Integers are counted in the same way.
// The cost is a load and a branch per call when it is off, and about 0.25 microseconds per op when
// it is on.
#pragma once

#include <cstdint>
#include <string>

#include "baregrad/export.h"

namespace baregrad::profile {

/// Starts recording in all threads, until stop(). Throws IoError if the file cannot be written, and
/// ValueError while another recording runs. The child of a fork does not record.
BAREGRAD_API void start(const std::string& file);
/// Ends the recording and writes the file atomically. Throws ValueError without a recording, and
/// IoError if the file cannot be written; the recording has ended in that case too.
BAREGRAD_API void stop();
[[nodiscard]] BAREGRAD_API bool is_recording();

/// A recording for the duration of a scope.
class [[nodiscard]] BAREGRAD_API Recording {
 public:
  [[nodiscard]] explicit Recording(const std::string& file);
  /// Writes the file and ignores errors. Call stop() to see them.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void stop();

 private:
  std::uint64_t number_;
};

/// `const auto recording = profile::record("trace.json");`
[[nodiscard]] inline Recording record(const std::string& file) { return Recording(file); }

}  // namespace baregrad::profile
