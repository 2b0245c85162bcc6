// `baregrad train`, `eval`, `predict`, `graph`.
#include "baregrad/train.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/table.h"
#include "baregrad/data.h"
#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "cli/commands.h"
#include "cli/draw.h"
#include "cli/graphviz.h"
#include "cli/json_file.h"
#include "cli/output.h"
#include "core/printable.h"
#include "data/source.h"
#include "io/atomic_file.h"

namespace baregrad::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> interrupted{false};

extern "C" void on_interrupt(int signal) {
  interrupted.store(true);
  std::signal(signal, SIG_DFL);  // a second signal ends the program at once
}

/// While an object of this class lives, Ctrl-C and SIGTERM end the run after the current step.
class InterruptScope {
 public:
  InterruptScope() {
    interrupted.store(false);
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_interrupt);
  }
  ~InterruptScope() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

std::string epoch_line(const train::Epoch& epoch) {
  return fmt::format("{:>5}  {:>7.4f}  {:>8}  {:>8}  {:>8}  {:>11}\n", epoch.train.epoch,
                     epoch.train.loss, percent_text(epoch.train.accuracy),
                     percent_text(epoch.test.accuracy), fmt::format("{:.1f} s", epoch.seconds),
                     grouped(static_cast<std::int64_t>(epoch.train.samples_per_s)));
}

Json epoch_json(const train::Epoch& epoch) {
  return {{"epoch", epoch.train.epoch},     {"step", epoch.train.total_step},
          {"train_loss", epoch.train.loss}, {"train_accuracy", epoch.train.accuracy},
          {"test_loss", epoch.test.loss},   {"test_accuracy", epoch.test.accuracy},
          {"seconds", epoch.seconds},       {"samples_per_s", epoch.train.samples_per_s}};
}

class Reporter final : public train::Listener {
 public:
  Reporter(Output& out, JsonFile& json) : out_(out), json_(json) {}

  void step(const train::Progress& now) override {
    constexpr std::size_t kWidestBar = 24;
    constexpr std::size_t kNarrowestBar = 4;
    constexpr std::int64_t kLines = 200;  // at most, per epoch
    const std::size_t room = line_.room();
    if (room == 0) return;
    if (now.step % std::max<std::int64_t>(1, now.steps / kLines) != 0) return;
    const double part = static_cast<double>(now.step) / static_cast<double>(now.steps);
    const std::string before = fmt::format("epoch {}/{} ", now.epoch, now.epochs);
    const std::string after = fmt::format("{:>4.0f} %  loss {:.4f}  {}  {}/s  {} left", 100 * part,
                                          now.loss, percent_text(now.accuracy),
                                          grouped(static_cast<std::int64_t>(now.samples_per_s)),
                                          clock_text(now.seconds_left));
    // The bar takes the columns that the numbers leave free.
    const std::size_t taken = before.size() + after.size();
    const std::size_t left = room > taken ? room - taken : 0;
    const std::size_t bar = left < kNarrowestBar ? 0 : std::min(left, kWidestBar);
    line_.show(before + bar_text(part, static_cast<int>(bar)) + after);
  }
  void epoch(const train::Epoch& epoch) override {
    line_.clear();
    out_.print(epoch_line(epoch));
    json_.add(epoch_json(epoch));
    last = epoch;
  }
  void saved(const std::string& path) override { checkpoint = path; }
  bool wants_stop() override {
    if (interrupted.load()) line_.clear();
    return interrupted.load();
  }

  std::optional<train::Epoch> last;
  std::string checkpoint;

 private:
  Output& out_;
  JsonFile& json_;
  Progress line_;
};

std::string read_text(const std::string& path) {
  const auto bytes = data::read_all(*data::open_file(path, "train", 0));
  return {bytes.begin(), bytes.end()};
}

std::string header_text(train::Run& run, const std::string& folder) {
  const train::Task& task = run.task();
  std::string text =
      fmt::format("{}, {} thread{}, {}\n", version_text(), get_num_threads(),
                  get_num_threads() == 1 ? "" : "s", kernels::isa_name(kernels::active_isa()));
  text += fmt::format("data   {}: {} images to learn from, {} to test on ({})\n", task.name,
                      grouped(task.train->size()), grouped(task.test->size()),
                      task.source.empty() ? "drawn by the program" : printable(task.source));
  text += fmt::format("model  {} parameters\n", grouped(run.model().parameter_count()));
  const std::string model = run.model().to_string();
  std::size_t begin = 0;
  while (begin < model.size()) {
    const std::size_t end = std::min(model.find('\n', begin), model.size());
    text += fmt::format("       {}\n", model.substr(begin, end - begin));
    begin = end + 1;
  }
  text += fmt::format("run    {}\n\n", printable(folder));
  return text + "epoch     loss  training      test      time    samples/s\n";
}

std::string closing_text(const Reporter& reporter, const std::string& folder) {
  std::string text;
  if (reporter.last) {
    const train::Evaluation& test = reporter.last->test;
    text += fmt::format("\n{} of {} test images right: {}\n",
                        grouped(static_cast<std::int64_t>(
                            std::llround(test.accuracy * static_cast<double>(test.items)))),
                        grouped(test.items), percent_text(test.accuracy));
  }
  return text + fmt::format("\nTry  baregrad predict {} test:0\n", shell_word(folder));
}

/// Draws the network where Graphviz is installed. The run is complete without the picture: a
/// failure is reported and changes nothing else.
void draw_graph(const std::string& folder) {
  if (!has_graphviz()) return;
  try {
    io::write_whole(folder + "/graph.svg", svg_of_dot(read_text(folder + "/graph.dot")), "train");
  } catch (const Error& error) {
    complain(fmt::format("there is no graph.svg: {}", error.what()));
  }
}

/// The value of --data as the config stores it: an absolute path, since the run may be resumed from
/// another folder. Throws ValueError when it is not a folder: the search would otherwise silently
/// go on elsewhere.
std::string data_folder_of(const char* who, const std::string& given) {
  if (given.empty()) return given;
  std::error_code error;
  if (!fs::is_directory(given, error)) {
    throw ValueError(fmt::format("{}: --data: {} is no folder", who, quoted_text(given)));
  }
  const fs::path whole = fs::absolute(given, error);
  return error ? given : whole.string();
}

/// The training data of a run: where --data says, else where the run found it.
train::Task task_of(const char* who, const train::Trained& trained, const std::string& given) {
  train::Config config = trained.config;
  if (!given.empty()) config.data_folder = data_folder_of(who, given);
  return train::load_task(config);
}

train::Run begin_run(const TrainCommand& command, const train::Config& config) {
  if (command.resume) return train::Run::resume(command.out, config, command.given);
  if (command.out.empty()) return train::Run::start(config);
  return {config, command.out};
}

Json evaluation_json(const train::Evaluation& test) {
  return {{"test_loss", test.loss},
          {"test_accuracy", test.accuracy},
          {"items", test.items},
          {"confusion", test.confusion}};
}

}  // namespace

int run_train(const TrainCommand& command) {
  if (command.threads > 0) set_num_threads(command.threads);
  if (command.resume && command.out.empty()) {
    throw ValueError("train: --resume needs --out RUN_DIR, the run to go on with");
  }
  JsonFile json(command.json_path);
  Output out;
  train::Config config = command.config;
  config.data_folder = data_folder_of("train", config.data_folder);
  // Installed before the run exists: the message tells how to resume it.
  const InterruptScope interrupts;
  train::Run run = begin_run(command, config);
  const std::string folder = run.folder();
  for (const std::string& message : run.damaged()) {
    complain("passed over a damaged checkpoint: " + message);
  }
  out.print(header_text(run, folder));
  if (run.finished()) {
    out.print(fmt::format("The run is finished after {} epochs.\n", run.config().epochs));
    out.finish();
    return 0;
  }
  Reporter reporter(out, json);
  const train::Outcome outcome = run.train(reporter);
  if (outcome == train::Outcome::Stopped) {
    out.print(fmt::format(
        "Stopped at step {}, saved in {}.\nGo on with  baregrad train --resume --out {}\n",
        run.total_step(), printable(reporter.checkpoint), shell_word(folder)));
    json.save();
    out.finish();
    // The exit status that a shell reports for a program ended by Ctrl-C.
    constexpr int kInterrupted = 130;
    return kInterrupted;
  }
  if (reporter.last) {
    out.print("\n");
    out.print(confusion_text(reporter.last->test.confusion, run.task().classes));
    json.add(evaluation_json(reporter.last->test));
  }
  out.print(closing_text(reporter, folder));
  draw_graph(folder);
  json.save();
  out.finish();
  return 0;
}

int run_eval(const EvalCommand& command) {
  JsonFile json(command.json_path);
  train::Trained trained = train::load_trained(command.run);
  const train::Task task = task_of("eval", trained, command.data_folder);
  const train::Evaluation test =
      train::evaluate(*trained.model, task.test, static_cast<int>(task.classes.size()));
  Output out;
  out.print(fmt::format("{}\n{} of {}: loss {:.4f}, {} right\n\n", printable(trained.checkpoint),
                        grouped(test.items), task.name, test.loss, percent_text(test.accuracy)));
  out.print(confusion_text(test.confusion, task.classes));
  json.add(evaluation_json(test));
  json.save();
  out.finish();
  return 0;
}

namespace {

/// "test:17" is image 17 of the test set, with its class; anything else is a file.
struct Asked {
  train::Picture picture;
  std::optional<std::int64_t> truth = {};
};
Asked asked_picture(const PredictCommand& command, const train::Trained& trained) {
  constexpr std::string_view kTest = "test:";
  if (command.image.rfind(kTest, 0) != 0) {
    return {train::as_picture(data::read_image(command.image, command.max_bytes))};
  }
  std::int64_t index = -1;
  const char* end = command.image.data() + command.image.size();
  const auto read = std::from_chars(command.image.data() + kTest.size(), end, index);
  const train::Task task = task_of("predict", trained, command.data_folder);
  if (read.ec != std::errc() || read.ptr != end || index < 0 || index >= task.test->size()) {
    throw ValueError(fmt::format("predict: {} is none of test:0 to test:{}",
                                 quoted_text(command.image), task.test->size() - 1));
  }
  Asked asked;
  asked.picture.pixels = task.test_images[index].reshape({1, 1, 28, 28});
  asked.truth = task.test->item(index).target.item<std::int64_t>();
  return asked;
}

}  // namespace

int run_predict(const PredictCommand& command) {
  JsonFile json(command.json_path);
  const train::Trained trained = train::load_trained(command.run);
  const Asked asked = asked_picture(command, trained);
  const auto probabilities = train::predict(trained, asked.picture.pixels).to_vector<float>();
  Output out;
  out.print(picture_text(asked.picture.pixels.reshape({28, 28})));
  if (asked.picture.inverted) out.print("(turned round: the networks know light on dark)\n");
  out.print("\n");
  out.print(probabilities_text(probabilities, trained.classes));
  if (asked.truth) {
    out.print(fmt::format("\nIt is {}.\n",
                          printable(trained.classes[static_cast<std::size_t>(*asked.truth)])));
  }
  Json object;
  for (std::size_t k = 0; k < probabilities.size(); ++k) {
    object["probabilities"][trained.classes[k]] = probabilities[k];
  }
  json.add(object);
  json.save();
  out.finish();
  return 0;
}

int run_graph(const GraphCommand& command) {
  if (command.dot_path.empty() && command.svg_path.empty()) {
    throw ValueError("graph: say --dot FILE, --svg FILE or both");
  }
  train::Trained trained = train::load_trained(command.run);
  const train::Task task = task_of("graph", trained, command.data_folder);
  data::DataLoader loader(task.test, {.batch_size = 16});
  trained.model->train();
  const std::string dot = train::graph_of_step(*trained.model, *loader.next());
  if (!command.dot_path.empty()) io::write_whole(command.dot_path, dot, "graph");
  if (!command.svg_path.empty()) io::write_whole(command.svg_path, svg_of_dot(dot), "graph");
  return 0;
}

}  // namespace baregrad::cli
