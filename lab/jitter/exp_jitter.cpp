// A thousand runs of the same work, and the events during each.
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "bench/harness.h"
#include "lab/compare_bits.h"
#include "lab/experiments.h"
#include "lab/float_control.h"
#include "lab/jitter/jitter_runs.h"
#include "lab/small_step.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

constexpr std::int64_t kElements = std::int64_t{1} << 20;
// Blocks of free and of pinned runs alternate, so that load from other processes affects both.
constexpr int kBlock = 25;

struct Work {
  std::string name;
  std::string text;
  std::function<void()> once;
};

std::vector<Work> all_work(std::uint64_t seed) {
  Generator generator(seed);
  const Tensor a = randn({256, 256}, DType::Float32, &generator);
  const Tensor b = randn({256, 256}, DType::Float32, &generator);
  const Tensor x = randn({kElements}, DType::Float32, &generator);
  const Tensor y = randn({kElements}, DType::Float32, &generator);
  auto step = std::make_shared<SmallStep>(seed);
  return {{"product", "256 × 256 × 256", [=] { bench::keep(matmul(a, b)); }},
          {"multiply", "elementwise, 1,048,576 floats", [=] { bench::keep(multiply(x, y)); }},
          {"step", SmallStep::kText, [=] { step->run(); }}};
}

Json to_json(const Explained& explained) {
  return {{"runs", explained.runs},          {"preempted", explained.preempted},
          {"migrated", explained.migrated},  {"faulted", explained.faulted},
          {"stolen", explained.stolen},      {"waited", explained.waited},
          {"nothing", explained.nothing},    {"excess_ns", explained.excess_ns},
          {"waited_ns", explained.waited_ns}};
}

/// The runs with events, by number; the others are left out.
Json events_of(const std::vector<TimedRun>& runs) {
  Json events = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Happened& seen = runs[i].happened;
    if (!seen.any()) continue;
    events.push_back({{"run", i},
                      {"preempted", seen.preempted},
                      {"slept", seen.slept},
                      {"migrations", seen.migrations},
                      {"faults", seen.faults},
                      {"stolen_ticks", seen.stolen},
                      {"waited_ns", seen.waited_ns}});
  }
  return events;
}

void record(Notebook& notebook, const Work& work, const char* mode,
            const std::vector<TimedRun>& runs) {
  if (runs.empty()) return;
  const Spread spread = spread_of(runs);
  const Tail tail = explain_tail(runs);
  std::vector<std::int64_t> ns;
  for (const TimedRun& run : runs) ns.push_back(std::llround(run.ns));
  notebook.add("runs", {{"name", work.name},
                        {"work", work.text},
                        {"mode", mode},
                        {"dtype", "float32"},
                        {"threads", 1},
                        {"runs", runs.size()},
                        {"quantiles", {0.5, 0.9, 0.99, 0.999}},
                        {"p50_ns", spread.p50_ns},
                        {"p90_ns", spread.p90_ns},
                        {"p99_ns", spread.p99_ns},
                        {"p999_ns", spread.p999_ns},
                        {"max_ns", spread.max_ns},
                        {"slowest_share", kSlowestShare},
                        {"slowest", to_json(tail.slowest)},
                        {"others", to_json(tail.others)},
                        {"ns", ns},
                        {"events", events_of(runs)}});
}

void measure_runs(Notebook& notebook, const Witness& witness, const Work& work) {
  const int runs = notebook.quick() ? 200 : 1000;
  for (int i = 0; i < kBlock; ++i) work.once();
  std::vector<TimedRun> free_runs;
  std::vector<TimedRun> pinned_runs;
  bool can_pin = true;
  for (int done = 0; done < runs; done += kBlock) {
    for (int i = 0; i < kBlock; ++i) free_runs.push_back(witness.watch(work.once));
    const PinScope pin;
    can_pin = can_pin && pin.ok();
    for (int i = 0; can_pin && i < kBlock; ++i) pinned_runs.push_back(witness.watch(work.once));
  }
  record(notebook, work, "free", free_runs);
  if (can_pin) {
    record(notebook, work, "pinned", pinned_runs);
  } else {
    notebook.absent(work.name + ", pinned", "the system does not let a thread be kept on a CPU");
  }
}

void say_what_is_counted(Notebook& notebook, const Witness& witness) {
  if (!witness.has_migrations()) {
    notebook.absent("the kernel's count of migrations",
                    "/proc/thread-self/sched does not have it: a thread is asked for its CPU "
                    "before and after each run instead");
  }
  if (!witness.has_steal()) {
    notebook.absent("time stolen by the hypervisor", "/proc/stat does not have it");
  }
  if (!witness.has_waiting()) {
    notebook.absent("time spent waiting for a CPU", "/proc/thread-self/schedstat does not have it");
  }
}

/// One op on normal numbers, and on numbers that are or become denormal.
struct DenormalCase {
  std::string name;
  std::string work;
  std::function<Tensor(const Tensor& x, const Tensor& y)> op;
  Tensor x;
  Tensor y;
  // scales the inputs
  double x_scale;
  double y_scale;
};

std::vector<DenormalCase> denormal_cases(const Notebook& notebook) {
  constexpr double kDenormal = 1e-41;  // with a dozen bits left of 24
  constexpr double kSmall = 1e-20;     // a normal number whose square is denormal
  Generator generator(notebook.seed());
  const auto numbers = [&](const Dims& shape) {
    return uniform(shape, 0.5, 1.5, DType::Float32, &generator);
  };
  const auto product = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
  const auto times = [](const Tensor& x, const Tensor& y) { return multiply(x, y); };
  const auto over = [](const Tensor& x, const Tensor& y) { return divide(x, y); };
  const auto plus = [](const Tensor& x, const Tensor& y) { return add(x, y); };
  const Dims matrix{128, 128};
  const Dims list{65536};
  const std::string elements = "elementwise, 65,536 floats";
  std::vector<DenormalCase> cases = {
      {"product", "128 × 128 × 128, denormal × ordinary", product, {}, {}, kDenormal, 1},
      {"product, underflow", "128 × 128 × 128, small × small", product, {}, {}, kSmall, kSmall},
      {"multiply", elements + ", denormal × ordinary", times, {}, {}, kDenormal, 1},
      {"multiply, underflow", elements + ", small × small", times, {}, {}, kSmall, kSmall},
      {"divide", elements + ", denormal / ordinary", over, {}, {}, kDenormal, 1},
      {"add", elements + ", denormal + denormal", plus, {}, {}, kDenormal, kDenormal}};
  for (DenormalCase& each : cases) {
    const Dims& shape = each.name.starts_with("product") ? matrix : list;
    each.x = numbers(shape);
    each.y = numbers(shape);
  }
  return cases;
}

std::span<const float> values(const Tensor& tensor) {
  return {tensor.data<float>(), static_cast<std::size_t>(tensor.numel())};
}

std::int64_t count_zeros(const Tensor& tensor) {
  std::int64_t zeros = 0;
  for (const float value : values(tensor)) zeros += value == 0 ? 1 : 0;
  return zeros;
}

void measure_denormals(Notebook& notebook, const DenormalCase& each) {
  const Tensor small_x = multiply(each.x, each.x_scale);
  const Tensor small_y = multiply(each.y, each.y_scale);
  const auto flushed = [&] {
    const FloatControlScope scope;
    FloatControlScope::flush();
    return each.op(small_x, small_y);
  };
  const unsigned before = float_control();
  const std::vector<Contender> contenders = {
      contender_once("ordinary", [&] { bench::keep(each.op(each.x, each.y)); }),
      contender_once("denormal", [&] { bench::keep(each.op(small_x, small_y)); }),
      contender_once("denormal, flushed", [&] { bench::keep(flushed()); })};
  const std::vector<Timing> timings =
      take_turns(contenders, {.seconds = notebook.quick() ? 0.2 : 3.0});
  const Tensor kept = each.op(small_x, small_y);
  const Tensor lost = flushed();
  const BitDifference difference = compare_bits(values(lost), values(kept));
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Json fields = {{"name", each.name},
                   {"work", each.work},
                   {"inputs", contenders[i].name},
                   {"dtype", "float32"},
                   {"threads", 1}};
    fields.update(lab::to_json(timings[i]));
    notebook.add("denormals", fields);
  }
  notebook.add("flush", {{"name", each.name},
                         {"elements", kept.numel()},
                         {"zeros_kept", count_zeros(kept)},
                         {"zeros_flushed", count_zeros(lost)},
                         {"changed_elements", difference.elements},
                         {"mxcsr_before", before},
                         {"mxcsr_after", float_control()}});
}

}  // namespace

void run_jitter(Notebook& notebook) {
  const bench::ThreadScope one_thread(1);
  const Witness witness;
  notebook.part("witness", [&] { say_what_is_counted(notebook, witness); });
  for (const Work& work : all_work(notebook.seed())) {
    notebook.part("runs/" + work.name, [&] { measure_runs(notebook, witness, work); });
  }
  if (!kHasFloatControl) {
    notebook.part("denormals", [&] {
      notebook.absent("denormals with and without FTZ", "only x86 with SSE2 has the switch here");
    });
    return;
  }
  for (const DenormalCase& each : denormal_cases(notebook)) {
    notebook.part("denormals/" + each.name, [&] { measure_denormals(notebook, each); });
  }
}

}  // namespace baregrad::lab
