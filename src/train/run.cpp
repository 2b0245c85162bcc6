// A run: the training loop, checkpoints and resuming.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

#include "baregrad/autograd.h"
#include "baregrad/data_loader.h"
#include "baregrad/error.h"
#include "baregrad/generator.h"
#include "baregrad/io.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "baregrad/optim.h"
#include "baregrad/train.h"
#include "core/json_string.h"
#include "core/message.h"
#include "core/number_text.h"
#include "io/atomic_file.h"
#include "io/folder_lock.h"
#include "io/text.h"
#include "train/consistency.h"
#include "train/parts.h"
#include "train/step_memory.h"

namespace baregrad::train {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr const char* kTrain = "train";

[[noreturn]] void refuse_run(const std::string& folder) {
  throw ValueError(message("train: there is a run in '", folder,
                           "' already; go on with `baregrad train --resume --out ",
                           shell_path(folder), "`, or take another folder"));
}

void check_no_run(const std::string& folder) {
  if (!has_run(folder)) return;
  io::FolderLock::check_free(folder, kTrain);  // a run in progress cannot be resumed either
  refuse_run(folder);
}

std::string json_text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config.values()) {
    text += text.empty() ? "{\n  " : ",\n  ";
    append_json_string(text, name);
    text += ": ";
    append_json_string(text, value);
  }
  return text + "\n}\n";
}

}  // namespace

struct Run::Impl {
  Impl(Config given, std::string where)
      : config(std::move(given)),
        folder(std::move(where)),
        task(load_task(config)),
        loader(task.train, {.batch_size = config.batch,
                            .shuffle = true,
                            .seed = config.seed,
                            .workers = config.workers}),
        memory(config.alloc),
        generator(config.seed),
        files(checkpoints_of(folder), config.keep) {
    config.data = task.name;
    model = make_model(config, &generator);
    optimizer = make_optimizer(config, model->parameters());
    schedule = make_schedule(config, *optimizer, config.epochs * loader.size());
  }

  void move_to(const std::string& where) {
    folder = where;
    files = io::CheckpointFolder(checkpoints_of(where), config.keep);
  }

  std::int64_t total_step() const noexcept {
    return loader.epoch() * loader.size() + loader.position();
  }
  bool finished() const noexcept { return loader.epoch() >= config.epochs; }

  io::Checkpoint checkpoint() const {
    io::Checkpoint all;
    all.parts["model"].tensors = model->state_dict();
    all.parts["optimizer"] = optimizer->state();
    all.parts["schedule"] = schedule->state();
    all.parts["loader"] = loader.state();
    const Generator::State random = generator.state();
    all.parts["generator"].values = {{"seed", std::to_string(random.seed)},
                                     {"position", std::to_string(random.position)}};
    all.parts["config"].values = config.values();
    all.parts["epoch"].values = {{"loss", number_text(loss_sum)},
                                 {"right", std::to_string(right)},
                                 {"items", std::to_string(items)}};
    save_scaling(task.scaling, all.parts["scaling"]);
    save_names(task.classes, all.parts["classes"]);
    return all;
  }

  void restore(const io::Checkpoint& from, std::int64_t file_step) {
    const auto part = [&](const char* name) -> const State& { return part_of(from, name); };
    model->load_state_dict(part("model").tensors);
    optimizer->load_state(part("optimizer"));
    schedule->load_state(part("schedule"));
    loader.load_state(part("loader"));
    generator.set_state({number<std::uint64_t>(part("generator"), "seed"),
                         number<std::uint64_t>(part("generator"), "position")});
    loss_sum = number<double>(part("epoch"), "loss");
    right = number<std::int64_t>(part("epoch"), "right");
    items = number<std::int64_t>(part("epoch"), "items");
    check_standing(from, config,
                   {.file_step = file_step,
                    .epoch = loader.epoch(),
                    .position = loader.position(),
                    .batches = loader.size(),
                    .images = task.train->size(),
                    .seen = items,
                    .right = right});
  }

  std::string save() {
    lock->check();
    metrics->flush();
    events->flush();
    std::string path = files.save(total_step(), checkpoint());
    saved_step = total_step();
    return path;
  }

  /// Writes the first files into the folder, which exists and is locked. The checkpoint is written
  /// last: without it, a new run can be started in this folder.
  void begin() {
    if (has_run(folder)) refuse_run(folder);
    remove_left_over();
    io::write_whole(folder + "/config.json", json_text(config), kTrain);
    open_logs();
    save();
  }

  /// Removes temporary files of a process that was killed while it wrote them.
  void remove_left_over() const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      for (const char* target : {"config.json", "graph.dot", "graph.svg"}) {
        if (io::is_temporary_of(name, target)) io::remove_abandoned(entry.path().string());
      }
    }
  }

  void step(const data::Batch& batch) {
    memory.run([&] {
      const Tensor logits = (*model)(batch.input);
      const Tensor loss = cross_entropy(logits, batch.target);
      loss.backward();
      optimizer->step();
      optimizer->zero_grad();
      last_loss = loss.item<double>();
      const no_grad off;
      right += sum(equal(argmax(logits, 1), batch.target)).item<std::int64_t>();
    });
    loss_sum += last_loss * static_cast<double>(batch.size());
    items += batch.size();
    schedule->step();
  }

  Progress progress(Clock::time_point begin, std::int64_t items_before) const {
    Progress p;
    p.epoch = loader.epoch() + 1;
    p.epochs = config.epochs;
    p.step = loader.position();
    p.steps = loader.size();
    p.total_step = total_step();
    const auto seen = static_cast<double>(items);
    if (items > 0) {
      p.loss = loss_sum / seen;
      p.accuracy = static_cast<double>(right) / seen;
    }
    p.lr = optimizer->groups()[0].lr();
    p.samples_per_s = static_cast<double>(items - items_before) / seconds_since(begin);
    const auto all = static_cast<double>(config.epochs) * static_cast<double>(task.train->size());
    const double done =
        static_cast<double>(loader.epoch()) * static_cast<double>(task.train->size()) + seen;
    if (p.samples_per_s > 0) p.seconds_left = (all - done) / p.samples_per_s;
    return p;
  }

  void log(const char* kind, std::int64_t step, const io::Metrics& values) {
    io::Metrics line = {{"kind", std::string(kind)}};
    line.insert(line.end(), values.begin(), values.end());
    metrics->write(step, line);
    for (const auto& [name, value] : values) {
      if (const auto* number = std::get_if<double>(&value)) {
        events->add_scalar(std::string(kind) + "/" + name, *number, step);
      }
    }
  }

  void open_logs() {
    // Steps are counted from 1. Later lines are removed, since this run writes them again.
    metrics.emplace(folder + "/metrics.jsonl", total_step() + 1);
    events.emplace(folder + "/events", total_step() + 1);
  }

  /// Trains one epoch or the rest of one. False if it was stopped.
  bool train_epoch(Listener& listener) {
    constexpr std::int64_t kLogEvery = 100;
    const Clock::time_point begin = Clock::now();
    const std::int64_t items_before = items;
    model->train();
    Progress now = progress(begin, items);  // the run may have been stopped after the last batch
    while (const data::Batch* batch = loader.next()) {
      step(*batch);
      now = progress(begin, items_before);
      listener.step(now);
      if (now.total_step % kLogEvery == 0) {
        log("step", now.total_step, {{"loss", last_loss}, {"lr", now.lr}});
      }
      if (listener.wants_stop()) return false;
      const bool due = config.checkpoint_steps > 0 && now.step < now.steps &&
                       now.total_step % config.checkpoint_steps == 0;
      if (due) listener.saved(save());
    }
    Epoch epoch;
    epoch.train = now;
    epoch.seconds = seconds_since(begin);
    epoch.test =
        baregrad::train::evaluate(*model, task.test, static_cast<int>(task.classes.size()));
    log("epoch", now.total_step,
        {{"epoch", now.epoch},
         {"train_loss", now.loss},
         {"train_accuracy", now.accuracy},
         {"test_loss", epoch.test.loss},
         {"test_accuracy", epoch.test.accuracy},
         {"seconds", epoch.seconds},
         {"samples_per_s", now.samples_per_s}});
    loss_sum = 0;
    right = 0;
    items = 0;
    listener.epoch(epoch);
    listener.saved(save());
    return true;
  }

  std::optional<io::FolderLock> lock;  // the first member, so that it is released last
  Config config;
  std::string folder;
  Task task;
  data::DataLoader loader;
  StepMemory memory;
  Generator generator;  // of initial weights and dropout
  io::CheckpointFolder files;
  std::shared_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::LRScheduler> schedule;
  std::optional<io::MetricsWriter> metrics;
  std::optional<io::EventWriter> events;
  std::vector<std::string> damaged;
  // Sums over the current epoch.
  double loss_sum = 0;
  std::int64_t right = 0;
  std::int64_t items = 0;
  double last_loss = 0;
  std::int64_t saved_step = -1;
};

Listener::~Listener() = default;

Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Run::Run(Run&&) noexcept = default;
Run::~Run() = default;

Run::Run(const Config& config, const std::string& folder) {
  config.check();
  check_no_run(folder);  // before the data is loaded
  impl_ = std::make_unique<Impl>(config, folder);
  io::make_folder(folder, kTrain);
  impl_->lock.emplace(folder, kTrain);
  impl_->begin();
}

Run Run::start(const Config& config, const std::string& parent) {
  config.check();
  auto impl = std::make_unique<Impl>(config, parent);
  io::make_folder(parent, kTrain);
  const std::string first = message(parent, "/", impl->config.data, "-", config.model);
  for (std::int64_t i = 1; !impl->lock; ++i) {
    const std::string folder = i == 1 ? first : message(first, "-", i);
    if (!io::make_new_folder(folder, kTrain)) continue;
    try {
      impl->lock.emplace(folder, kTrain);
    } catch (const io::FolderInUse&) {
      continue;  // another process was given this folder and locked it first
    }
    impl->move_to(folder);
  }
  impl->begin();
  return Run(std::move(impl));
}

Run Run::resume(const std::string& folder, const Config& changes,
                const std::vector<std::string>& given) {
  check_has_run(folder, kTrain);
  io::FolderLock lock(folder, kTrain);
  const io::CheckpointFolder::Found found = newest_checkpoint(folder, kTrain);
  const auto& stored = part_of(found.checkpoint, "config").values;
  check_network_parts(found.checkpoint, Config::from_values(stored));
  std::map<std::string, std::string> values = Config::from_values(stored).values();
  const std::map<std::string, std::string> wanted = changes.values();
  constexpr std::array kFree = {"workers", "alloc", "checkpoint_steps", "keep", "data_folder"};
  for (const std::string& name : given) {
    std::string& value = values.at(name);
    if (std::find(kFree.begin(), kFree.end(), name) == kFree.end() && value != wanted.at(name)) {
      throw ValueError(message("train: the run in ", folder, " was begun with ", name, " ", value,
                               ", not ", wanted.at(name), "; leave it out to go on"));
    }
    value = wanted.at(name);
  }
  auto impl = std::make_unique<Impl>(Config::from_values(values), folder);
  impl->lock.emplace(std::move(lock));
  impl->remove_left_over();
  impl->restore(found.checkpoint, found.step);
  impl->damaged = found.damaged;
  impl->saved_step = found.step;
  impl->open_logs();
  return Run(std::move(impl));
}

const Config& Run::config() const noexcept { return impl_->config; }
const std::string& Run::folder() const noexcept { return impl_->folder; }
const Task& Run::task() const noexcept { return impl_->task; }
nn::Module& Run::model() noexcept { return *impl_->model; }
std::int64_t Run::total_step() const noexcept { return impl_->total_step(); }
bool Run::finished() const noexcept { return impl_->finished(); }
const std::vector<std::string>& Run::damaged() const noexcept { return impl_->damaged; }

Outcome Run::train(Listener& listener) {
  Impl& run = *impl_;
  if (run.total_step() == 0) {
    data::DataLoader first(run.task.train,
                           {.batch_size = std::min<std::int64_t>(4, run.config.batch)});
    // The recorded step takes random numbers. They are given back, so that the run starts
    // unchanged.
    const Generator::State random = run.generator.state();
    io::write_whole(run.folder + "/graph.dot", graph_of_step(*run.model, *first.next()), kTrain);
    run.generator.set_state(random);
  }
  while (!run.finished()) {
    if (run.train_epoch(listener)) continue;
    if (run.saved_step != run.total_step()) listener.saved(run.save());
    return Outcome::Stopped;
  }
  return Outcome::Finished;
}

Evaluation Run::evaluate() {
  return baregrad::train::evaluate(*impl_->model, impl_->task.test,
                                   static_cast<int>(impl_->task.classes.size()));
}

Trained load_trained(const std::string& folder) {
  const io::CheckpointFolder::Found found = newest_checkpoint(folder, "load_trained");
  Trained trained;
  trained.config = Config::from_values(part_of(found.checkpoint, "config").values);
  check_network_parts(found.checkpoint, trained.config);
  trained.scaling = load_scaling(part_of(found.checkpoint, "scaling"));
  trained.step = found.step;
  trained.checkpoint = found.path;
  trained.model = make_model(trained.config);
  trained.model->load_state_dict(part_of(found.checkpoint, "model").tensors);
  trained.model->eval();
  trained.classes = load_names(part_of(found.checkpoint, "classes"));
  return trained;
}

}  // namespace baregrad::train
