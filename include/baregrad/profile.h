// The profiler: every op, kernel and backward step of a stretch of a program, with its time, as a
// file that https://ui.perfetto.dev and chrome://tracing open.
//
// Events, by category:
//   op        one call at the dispatch point, from checks to the finished result
//   kernel    the part of it that computes, in the calling thread and in each worker that helped
//   backward  one node of a recorded graph on the way back, around the ops of its gradient rule
// Arguments: thread, label (autograd::Label), dtypes and shapes of inputs and results, and
//   bytes     every input read once, every result written once; what an axis repeats counts once
//   flops     products 2 m n k, and 1 per element of the result for each of bias, added matrix and
//             activation; elementwise 1 per element of the result, whatever the function;
//             reductions, scans, softmax, normalisations and cross-entropy 1 per element of the
//             input, and so on the way back; what only moves elements 0. Integers count alike.
// Off, it costs a load and a branch per call; on, about a quarter of a microsecond per op.
#pragma once

#include <cstdint>
#include <string>

#include "baregrad/export.h"

namespace baregrad::profile {

/// Records until stop(), in all threads. Throws IoError when the file could not be written then,
/// ValueError while another recording runs. In the child of a fork nothing is recorded.
BAREGRAD_API void start(const std::string& file);
/// Ends the recording and writes the file, whole or not at all. Throws ValueError when nothing is
/// recorded, IoError when the file cannot be written; the recording has ended then too.
BAREGRAD_API void stop();
[[nodiscard]] BAREGRAD_API bool is_recording();

/// A recording for the length of a scope.
class [[nodiscard]] BAREGRAD_API Recording {
 public:
  [[nodiscard]] explicit Recording(const std::string& file);
  /// Writes the file, and is silent where that fails: call stop() to know.
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
