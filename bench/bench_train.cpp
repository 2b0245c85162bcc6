// Whole training steps: forward, loss, backward, optimizer; and an epoch from files on disk.
#include <memory>
#include <string>
#include <vector>

#include "baregrad/data.h"
#include "baregrad/nn.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "baregrad/optim.h"
#include "baregrad/train.h"
#include "bench/benches.h"
#include "bench/step_cost.h"
#include "train/step_memory.h"

namespace baregrad::bench {
namespace {

/// One network, one batch, one optimizer.
struct Setup {
  std::shared_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor x;
  Tensor y;  ///< classes, or values for a mean square loss

  void step() const {
    const Tensor out = (*model)(x);
    const Tensor loss = y.dtype() == DType::Int64 ? cross_entropy(out, y) : mean(square(out - y));
    loss.backward();
    optimizer->step();
    optimizer->zero_grad();
  }
};

std::string shape_text(const std::vector<std::int64_t>& sizes, std::int64_t batch) {
  std::string text;
  for (const std::int64_t size : sizes) {
    if (!text.empty()) text += '-';
    text += std::to_string(size);
  }
  return text + ", batch " + std::to_string(batch);
}

/// Notes how much memory the steps after the first ten took from the system.
void note_memory(Session& session, const Setup& setup, const std::string& alloc,
                 const std::string& what) {
  constexpr int kWarm = 10;
  constexpr int kSteps = 200;
  train::StepMemory memory(alloc);
  for (int i = 0; i < kWarm; ++i) memory.run([&] { setup.step(); });
  const std::uint64_t allocations = pool_allocator().stats().system_allocations;
  const std::int64_t faults = page_faults().minor;
  for (int i = 0; i < kSteps; ++i) memory.run([&] { setup.step(); });
  session.note(what + ", --alloc " + alloc + ", " + std::to_string(kSteps) +
               " steps after the first ten: " +
               std::to_string(pool_allocator().stats().system_allocations - allocations) +
               " allocations from the system, " + std::to_string(page_faults().minor - faults) +
               " page faults");
}

void measure_step(Session& session, const Setup& setup, const std::string& name,
                  const std::vector<std::int64_t>& sizes) {
  const std::int64_t batch = setup.x.shape()[0];
  Row row;
  row.name = name;
  row.dtype = "float32";
  row.shape = shape_text(sizes, batch);
  row.threads = session.threads();
  row.flops = mlp_step_flops(sizes, batch);
  row.candidates = {candidate(kOurs, [&] { setup.step(); })};
  session.measure(row);
  for (const char* alloc : {"pool", "arena"}) note_memory(session, setup, alloc, row.shape);
}

Setup classifier(std::int64_t batch) {
  Setup setup;
  manual_seed(0);
  setup.model = nn::make<nn::MLP>(std::vector<std::int64_t>{784, 512, 10});
  setup.optimizer = std::make_unique<optim::AdamW>(setup.model->parameters());
  setup.x = randn({batch, 784});
  setup.y = randint(0, 10, {batch});
  return setup;
}

Setup toy(std::int64_t batch) {
  Setup setup;
  manual_seed(0);
  setup.model = nn::make<nn::MLP>(std::vector<std::int64_t>{2, 16, 16, 1});
  setup.optimizer =
      std::make_unique<optim::SGD>(setup.model->parameters(), optim::SGDOptions{.lr = 1e-4});
  setup.x = randn({batch, 2});
  setup.y = randn({batch, 1});
  return setup;
}

/// From the files (or the generated digits) to updated weights.
void measure_epoch(Session& session) {
  constexpr std::int64_t kBatch = 64;
  const std::string name = data::best_available();
  Row row;
  row.name = "epoch of " + name + ", AdamW";
  row.dtype = "float32";
  row.shape = shape_text({784, 512, 10}, kBatch);
  row.threads = session.threads();
  row.calls = 1;
  train::Config config;
  config.data = name;
  if (session.options().quick) config.items = 2048;
  const Setup setup = classifier(kBatch);
  std::int64_t images = 0;
  const auto epoch = [&](const data::DatasetPtr& dataset) {
    data::DataLoader loader(dataset, {.batch_size = kBatch, .shuffle = true});
    images = 0;
    for (const data::Batch& batch : loader) {
      cross_entropy((*setup.model)(reshape(batch.input, {-1, 784})), batch.target).backward();
      setup.optimizer->step();
      setup.optimizer->zero_grad();
      images += batch.size();
    }
  };
  const train::Task task = train::load_task(config);
  row.elements = task.train->size();
  row.candidates = {candidate(kOurs, [&] { epoch(train::load_task(config).train); })};
  row.shape += ", files read";
  session.measure(row);
  row.shape = shape_text({784, 512, 10}, kBatch) + ", in memory";
  row.candidates = {candidate(kOurs, [&] { epoch(task.train); })};
  session.measure(row);
}

}  // namespace

void bench_train(Session& session) {
  const std::vector<std::int64_t> usual = {64, 128, 1024};
  for (const std::int64_t batch : session.sizes(usual)) {
    measure_step(session, classifier(batch), "training step, AdamW", {784, 512, 10});
  }
  measure_step(session, toy(32), "training step, SGD", {2, 16, 16, 1});
  measure_epoch(session);
}

}  // namespace baregrad::bench
