// Training steps with three sources of memory and in PyTorch; then over sizes and batches.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/profile.h"
#include "bench/ceilings.h"
#include "bench/harness.h"
#include "bench/step_cost.h"
#include "lab/experiments.h"
#include "lab/timing.h"
#include "lab/training/trainee.h"

namespace baregrad::lab {
namespace {

constexpr double kTurnNs = 10e6;  // length of a turn; the first step, after a pause, is not counted

struct Entrant {
  std::string name;
  std::unique_ptr<Trainee> trainee;
};

/// Every step is a sample.
std::vector<Timing> time_steps(const std::vector<Entrant>& entrants, const Turns& turns) {
  std::vector<std::vector<double>> samples(entrants.size());
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    Trainee* trainee = entrants[i].trainee.get();
    const double ns = summarize(trainee->step_ns(3)).median_ns;
    const int steps = static_cast<int>(std::clamp(kTurnNs / ns, 2.0, 100.0));
    contenders.push_back({entrants[i].name, [trainee, steps, &all = samples[i]] {
                            const std::vector<double> turn = trainee->step_ns(steps + 1);
                            all.insert(all.end(), turn.begin() + 1, turn.end());
                            return turn.back();
                          }});
  }
  take_turns(contenders, turns);
  std::vector<Timing> timings;
  for (std::vector<double>& each : samples) timings.push_back(summarize(std::move(each)));
  return timings;
}

/// The minimum of several rounds: a page of code or of a worker's stack may be touched late, once;
/// a step that faults does so in every round.
Demands least_demands(Trainee& trainee, int rounds, int steps) {
  Demands least = trainee.demands(steps);
  for (int round = 1; round < rounds; ++round) {
    const Demands next = trainee.demands(steps);
    if (next.minor_faults < least.minor_faults) least = next;
  }
  return least;
}

Json about(const Network& network, const Notebook& notebook) {
  return {{"network", describe(network)},
          {"sizes", network.sizes},
          {"batch", network.batch},
          {"parameters", count_parameters(network)},
          {"flops", bench::mlp_step_flops(network.sizes, network.batch)},
          {"threads", notebook.threads()},
          {"dtype", "float32"}};
}

/// The loss before and after the same steps for all trainees: they must learn the same.
Json learn(Trainee& trainee, int steps) {
  const double first = trainee.loss();
  trainee.step_ns(steps);
  return {{"first_loss", first}, {"trained_steps", steps}, {"last_loss", trainee.loss()}};
}

class Training {
 public:
  explicit Training(Notebook& notebook) : notebook_(notebook) {}

  void measure_peak() {
    notebook_.add("peak", {{"dtype", "float32"},
                           {"threads", notebook_.threads()},
                           {"gflop_per_s", bench::fma_gflop_per_s(32, notebook_.threads(),
                                                                  notebook_.quick() ? 0.1 : 0.5)}});
  }

  /// Time and system demands of a step, for every source of memory.
  void compare_memory(const Network& network) {
    const NamedTensors start = OurTrainee(network, notebook_.seed(), "pool").tensors();
    const double truth = reference_loss(start);
    std::vector<Entrant> entrants;
    for (const char* memory : {"system", "pool", "arena"}) {
      entrants.push_back({memory, ours(network, memory)});
    }
    add_python(entrants, start, "baregrad in Python", "baregrad");
    add_python(entrants, start, "PyTorch", "torch");
    add_python(entrants, start, "PyTorch, fused AdamW", "torch, fused");
    const bool quick = notebook_.quick();
    std::vector<Json> records;
    for (const Entrant& entrant : entrants) {
      Json record = about(network, notebook_);
      record.update({{"name", entrant.name}});
      record.update(learn(*entrant.trainee, quick ? 5 : 20));
      record.update({{"first_loss_error", std::fabs(record["first_loss"].get<double>() - truth)}});
      add_demands(record, quick ? least_demands(*entrant.trainee, 3, 4)
                                : least_demands(*entrant.trainee, 4, 10));
      records.push_back(std::move(record));
    }
    const std::vector<Timing> timings = time_steps(entrants, turns(quick ? 0.8 : 6));
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i].update(to_json(timings[i]));
      notebook_.add("step", records[i]);
    }
  }

  /// The parts of our step.
  void take_apart(const Network& network) {
    OurTrainee trainee(network, notebook_.seed(), "arena");
    trainee.phases(10);
    const std::vector<Phases> samples = trainee.phases(notebook_.quick() ? 10 : 100);
    const std::pair<const char*, double Phases::*> parts[] = {{"forward", &Phases::forward_ns},
                                                              {"backward", &Phases::backward_ns},
                                                              {"AdamW", &Phases::update_ns}};
    for (const auto& [name, field] : parts) {
      std::vector<double> ns;
      for (const Phases& sample : samples) ns.push_back(sample.*field);
      Json record = about(network, notebook_);
      record.update({{"name", name}});
      record.update(to_json(summarize(std::move(ns))));
      notebook_.add("phase", record);
    }
  }

  /// One point of the sweep.
  void compare_size(std::int64_t hidden, std::int64_t batch) {
    const Network network{{128, hidden, 64}, batch};
    const NamedTensors start = OurTrainee(network, notebook_.seed(), "pool").tensors();
    std::vector<Entrant> entrants;
    entrants.push_back({"baregrad", ours(network, "pool")});
    add_python(entrants, start, "baregrad in Python", "baregrad");
    add_python(entrants, start, "PyTorch, fused AdamW", "torch, fused");
    std::vector<Json> learnt;
    for (const Entrant& entrant : entrants) learnt.push_back(learn(*entrant.trainee, 5));
    const std::vector<Timing> timings = time_steps(entrants, turns(notebook_.quick() ? 0.35 : 2.2));
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      Json record = about(network, notebook_);
      record.update({{"name", entrants[i].name}, {"hidden", hidden}});
      record.update(learnt[i]);
      record.update(to_json(timings[i]));
      notebook_.add("point", record);
    }
  }

  /// A few steps of each network, op by op, for chrome://tracing and Perfetto.
  void record_trace(const std::vector<Network>& networks) {
    constexpr int kSteps = 3;
    const std::string path = notebook_.file(".trace.json");
    try {
      std::vector<std::unique_ptr<OurTrainee>> trainees;
      for (const Network& network : networks) {
        trainees.push_back(std::make_unique<OurTrainee>(network, notebook_.seed(), "arena"));
        trainees.back()->step_ns(10);
      }
      profile::Recording recording(path);
      for (std::size_t i = 0; i < networks.size(); ++i) {
        const autograd::Label label(describe(networks[i]));
        trainees[i]->step_ns(kSteps);
      }
      recording.stop();
    } catch (const IoError& error) {
      notebook_.absent("the trace", error.what());
      return;
    }
    std::ifstream in(path);
    const Json trace = Json::parse(in);
    double ops = 0;
    double flops = 0;
    for (const Json& event : trace.at("traceEvents")) {
      if (event.value("cat", "") != "op") continue;
      ++ops;
      flops += event.at("args").value("flops", 0.0);
    }
    notebook_.add("trace", {{"file", path.substr(path.rfind('/') + 1)},
                            {"steps", kSteps * static_cast<int>(networks.size())},
                            {"ops", ops},
                            {"flops", flops}});
  }

 private:
  std::unique_ptr<Trainee> ours(const Network& network, const std::string& memory) const {
    return std::make_unique<OurTrainee>(network, notebook_.seed(), memory);
  }

  /// If Python cannot do it, this is reported once.
  void add_python(std::vector<Entrant>& entrants, const NamedTensors& start, const char* name,
                  const std::string& library) {
    if (!asked_) {
      asked_ = true;
      peer_ = PythonPeer::start(notebook_, notebook_.threads());
    }
    const bool ours = library == "baregrad";
    if (!peer_ || !peer_->has("numpy") || !(ours || peer_->has("torch"))) return;
    if (refused_.contains(library)) return;
    try {
      entrants.push_back(
          {name, python_trainee(*peer_, start, library, notebook_.file(".start.npz"))});
    } catch (const Error& error) {
      refused_.insert(library);
      notebook_.absent(name, error.what());
    }
  }

  static void add_demands(Json& record, const Demands& demands) {
    record.update({{"minor_faults_per_step", demands.minor_faults},
                   {"major_faults_per_step", demands.major_faults}});
    if (demands.blocks) record["blocks_per_step"] = *demands.blocks;
    if (demands.system_calls) record["system_calls_per_step"] = *demands.system_calls;
  }

  Turns turns(double seconds) const {
    Turns turns;
    turns.seconds = seconds;
    if (notebook_.threads() > 1) turns.settle = std::chrono::milliseconds(20);
    return turns;
  }

  Notebook& notebook_;
  bool asked_ = false;
  std::unique_ptr<PythonPeer> peer_;
  std::set<std::string> refused_;  // libraries that cannot do it
};

}  // namespace

void run_training(Notebook& notebook) {
  const bench::ThreadScope threads(notebook.threads());
  const AllocatorScope pool(pool_allocator());  // overrides BAREGRAD_ALLOC
  // The third network has blocks of 4 MiB, which malloc returns to the system when they are freed.
  const std::vector<Network> networks = {
      {{784, 64, 32, 10}, 64}, {{128, 256, 64}, 1024}, {{128, 1024, 64}, 1024}};
  using Numbers = std::vector<std::int64_t>;
  const Numbers hiddens =
      notebook.quick() ? Numbers{16, 256, 1024} : Numbers{16, 64, 256, 1024, 2048};
  const Numbers batches = notebook.quick() ? Numbers{1, 32, 1024} : Numbers{1, 8, 64, 256, 1024};

  Training training(notebook);
  notebook.part("peak", [&] { training.measure_peak(); });
  for (const Network& network : networks) {
    notebook.part("memory, " + describe(network), [&] { training.compare_memory(network); });
    notebook.part("phases, " + describe(network), [&] { training.take_apart(network); });
  }
  for (const std::int64_t hidden : hiddens) {
    for (const std::int64_t batch : batches) {
      notebook.part("hidden " + std::to_string(hidden) + ", batch " + std::to_string(batch),
                    [&] { training.compare_size(hidden, batch); });
    }
  }
  notebook.part("trace", [&] { training.record_trace(networks); });
}

}  // namespace baregrad::lab
