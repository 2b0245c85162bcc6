// Sums over the profiler's records.
#include "lab/roofline/counted_work.h"

#include <optional>

#include "baregrad/error.h"
#include "graph/profiler.h"

namespace baregrad::lab {
namespace {

/// Ends the recording even if the recorded code throws.
class Recorded {
 public:
  Recorded() : number_(profile::begin_recording("the lab")) {
    if (number_ == 0) throw ValueError("count_work: the profiler records something else already");
  }
  ~Recorded() { end(); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  std::optional<profile::Trace> end() { return profile::end_recording(number_); }

 private:
  std::uint64_t number_;
};

}  // namespace

profile::Work count_work(const std::function<void()>& call) {
  Recorded recorded;
  call();
  profile::Work work;
  const std::optional<profile::Trace> trace = recorded.end();
  if (!trace) return work;
  for (const auto& thread : trace->threads) {
    thread->each([&](const profile::Event& event, std::span<const std::uint64_t>) {
      if (event.kind != profile::Kind::Op) return;
      work.flops += event.flops;
      work.bytes += event.bytes;
    });
  }
  return work;
}

}  // namespace baregrad::lab
