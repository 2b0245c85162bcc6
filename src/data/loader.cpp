// The loader: distributes batches to workers and delivers them in order.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include "baregrad/allocator.h"
#include "baregrad/autograd.h"
#include "baregrad/data_loader.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/device_hooks.h"
#include "core/message.h"
#include "core/philox.h"
#include "parallel/interrupt.h"
#include "parallel/serial.h"

namespace baregrad::data {

namespace {

constexpr int kMostWorkers = 256;
constexpr int kMostPrefetch = 65536;
/// The period of interrupt checks while the caller waits for a batch.
constexpr std::chrono::milliseconds kInterruptPeriod{50};

/// The seed of one part of an epoch: a separate Philox block of the loader's seed.
std::uint64_t derived_seed(std::uint64_t seed, std::int64_t epoch, std::uint64_t part) {
  const auto e = static_cast<std::uint64_t>(epoch);
  const PhiloxCounter block =
      philox({static_cast<std::uint32_t>(e), static_cast<std::uint32_t>(e >> 32),
              static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(part >> 32)},
             {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return block[0] | std::uint64_t{block[1]} << 32;
}

/// A slot of the ring: one batch, and the memory that is reused for it.
struct PreparedBatch {
  Batch batch;
  Batch raw;  // before the transform
  std::vector<std::int64_t> indices;
  std::int64_t number = -1;  // the index of the batch that is ready here
  std::exception_ptr error;
};

/// The inputs of the batches of one epoch. Changes only while no worker is active.
struct Plan {
  const Dataset* dataset = nullptr;
  const LoaderOptions* options = nullptr;
  std::int64_t items = 0;
  std::int64_t epoch = 0;
  std::vector<std::int64_t> order;  // empty: in the order of the dataset
  Allocator* allocator = nullptr;

  void make(std::int64_t number, PreparedBatch& slot) const {
    const AllocatorScope scope(*allocator);
    // The default device of the calling thread has no effect here, as it has none on workers.
    const DefaultDeviceScope on_cpu{Device()};
    const no_grad off;
    const std::int64_t begin = number * options->batch_size;
    const std::int64_t count = std::min(options->batch_size, items - begin);
    std::span<const std::int64_t> indices;
    if (order.empty()) {
      slot.indices.resize(static_cast<std::size_t>(count));
      std::iota(slot.indices.begin(), slot.indices.end(), begin);
      indices = slot.indices;
    } else {
      indices = {order.data() + begin, static_cast<std::size_t>(count)};
    }
    if (!options->transform && !options->device) {
      dataset->get_into(indices, slot.batch);
      return;
    }
    slot.batch = Batch();  // may share memory with `raw`
    dataset->get_into(indices, slot.raw);
    if (!options->transform) {
      slot.batch = sent(slot.raw);
      return;
    }
    Generator generator(derived_seed(options->seed, epoch, static_cast<std::uint64_t>(number)));
    slot.batch = sent(options->transform(slot.raw, generator));
  }

  /// The batch on the device that the options ask for.
  Batch sent(Batch batch) const {
    if (!options->device) return batch;
    const auto send = [&](Tensor& field) {
      if (field.defined()) field = field.to(*options->device);
    };
    send(batch.input);
    send(batch.target);
    std::for_each(batch.more.begin(), batch.more.end(), send);
    return batch;
  }
};

/// Worker threads, and the ring of slots between them and the caller. Batch k is in slot k % slots.
/// There is one slot more than `ahead`, for the batch that the caller uses.
class Crew {
 public:
  Crew(const Plan& plan, int workers, int ahead)
      : plan_(plan),
        ahead_(ahead),
        slots_(static_cast<std::size_t>(ahead) + 1),
        process_(::getpid()) {
    threads_.reserve(static_cast<std::size_t>(workers));
    // Signals are delivered to the program's own threads, not to workers.
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&blocked, signal);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // Fewer threads deliver the same batches; without threads the caller makes them.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool has_workers() const { return !threads_.empty(); }
  bool is_of_this_process() const { return process_ == ::getpid(); }

  /// From batch `first` to `end` of the plan.
  void start(std::int64_t first, std::int64_t end) {
    {
      const std::lock_guard lock(mutex_);
      for (PreparedBatch& slot : slots_) {
        slot.number = -1;
        slot.error = nullptr;
      }
      ticket_ = first;
      delivered_ = first;
      end_ = end;
    }
    wanted_.notify_all();
  }
  /// Workers start no further batch. Does not wait for batches in progress.
  void cancel() {
    const std::lock_guard lock(mutex_);
    end_ = 0;
  }
  /// Returns when no worker reads the plan any more.
  void pause() {
    std::unique_lock lock(mutex_);
    end_ = 0;
    ready_.wait(lock, [this] { return busy_ == 0; });
  }
  const Batch* take(std::int64_t number) {
    PreparedBatch& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
    {
      std::unique_lock lock(mutex_);
      while (!ready_.wait_for(lock, kInterruptPeriod, [&] { return slot.number == number; })) {
        // The check may run any code, so the lock is released.
        lock.unlock();
        parallel::poll_interrupt();
        lock.lock();
      }
      if (slot.error) std::rethrow_exception(slot.error);
      delivered_ = number + 1;
    }
    wanted_.notify_one();
    return &slot.batch;
  }

 private:
  void work() {
    pthread_setname_np(pthread_self(), "baregrad-data");
    const parallel::SerialScope serial;
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock,
                   [this] { return stop_ || (ticket_ < end_ && ticket_ < delivered_ + ahead_); });
      if (stop_) return;
      const std::int64_t number = ticket_++;
      PreparedBatch& slot = slots_[static_cast<std::size_t>(number) % slots_.size()];
      ++busy_;
      lock.unlock();
      std::exception_ptr error;
      try {
        plan_.make(number, slot);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      slot.error = std::move(error);
      slot.number = number;
      --busy_;
      ready_.notify_one();  // only the caller waits
    }
  }

  const Plan& plan_;
  const int ahead_;
  std::vector<PreparedBatch> slots_;
  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::condition_variable ready_;
  // Guarded by the mutex, as are number and error of the slots.
  std::int64_t ticket_ = 0;     // the next batch to be made
  std::int64_t delivered_ = 0;  // batches before this one are no longer used
  std::int64_t end_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

std::string text(bool value) { return value ? "1" : "0"; }

}  // namespace

struct DataLoader::Impl {
  DatasetPtr dataset;
  LoaderOptions options;
  std::int64_t items = 0;
  std::int64_t batches = 0;
  Plan plan;
  std::int64_t epoch = 0;
  std::int64_t position = 0;
  bool running = false;            // the plan is that of `epoch`
  bool resumed = false;            // the position comes from a state
  std::weak_ptr<const bool> loop;  // alive while an unfinished Iterator is
  PreparedBatch own;               // without workers
  std::unique_ptr<Crew> crew;

  ~Impl() { forget_crew_of_parent(); }

  void forget_crew_of_parent() {
    // In a forked child the threads do not exist, and one of them may have held the lock: leaked.
    if (crew != nullptr && !crew->is_of_this_process()) {
      static_cast<void>(crew.release());
      running = false;
    }
  }

  void move_to(std::int64_t to_epoch, std::int64_t to_position) {
    forget_crew_of_parent();
    if (crew != nullptr) crew->pause();
    epoch = to_epoch;
    position = to_position;
    running = false;
    resumed = false;
  }

  void start() {
    forget_crew_of_parent();
    if (crew != nullptr) crew->pause();  // workers may still read the plan of a cancelled epoch
    plan.dataset = dataset.get();
    plan.options = &options;
    plan.items = items;
    plan.epoch = epoch;
    plan.allocator = &current_allocator();
    plan.order.clear();
    if (options.shuffle) {
      Generator generator(derived_seed(options.seed, epoch, ~std::uint64_t{0}));
      const Tensor order = randperm(plan.items, DType::Int64, &generator, Device());
      const auto* first = order.data<std::int64_t>();
      plan.order.assign(first, first + plan.items);
    }
    if (options.workers > 0 && crew == nullptr) {
      const int ahead = options.prefetch > 0 ? options.prefetch : 2 * options.workers;
      crew = std::make_unique<Crew>(plan, options.workers, ahead);
    }
    if (crew != nullptr && crew->has_workers()) crew->start(position, batches);
    running = true;
  }

  const Batch* make_next() {
    if (!running) start();
    if (crew == nullptr || !crew->has_workers()) {
      plan.make(position, own);
      return &own.batch;
    }
    try {
      return crew->take(position);
    } catch (...) {
      crew->cancel();
      running = false;
      throw;
    }
  }

  const Batch* next() {
    resumed = false;
    forget_crew_of_parent();
    if (position == batches) {
      move_to(epoch + 1, 0);
      return nullptr;
    }
    const Batch* batch = make_next();
    ++position;
    return batch;
  }
};

DataLoader::DataLoader(DatasetPtr dataset, LoaderOptions options) {
  constexpr const char* kWho = "DataLoader";
  if (dataset == nullptr) throw ValueError(message(kWho, ": the dataset is null"));
  if (options.batch_size < 1) {
    throw ValueError(message(kWho, ": batch_size is ", options.batch_size, ", needs at least 1"));
  }
  if (options.workers < 0 || options.workers > kMostWorkers) {
    throw ValueError(
        message(kWho, ": workers is ", options.workers, ", takes 0 to ", kMostWorkers));
  }
  if (options.prefetch < 0 || options.prefetch > kMostPrefetch) {
    throw ValueError(
        message(kWho, ": prefetch is ", options.prefetch, ", takes 0 to ", kMostPrefetch));
  }
  if (options.device && !options.device->is_cpu()) detail::hooks_of(*options.device, kWho);
  const std::int64_t items = dataset->size();
  if (items < 0) throw ValueError(message(kWho, ": the dataset says it has ", items, " items"));
  impl_ = std::make_unique<Impl>();
  impl_->items = items;
  impl_->batches = items / options.batch_size;
  if (!options.drop_last && items % options.batch_size != 0) ++impl_->batches;
  impl_->dataset = std::move(dataset);
  impl_->options = std::move(options);
}

DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

std::int64_t DataLoader::size() const noexcept { return impl_->batches; }
const Dataset& DataLoader::dataset() const noexcept { return *impl_->dataset; }
const LoaderOptions& DataLoader::options() const noexcept { return impl_->options; }
std::int64_t DataLoader::epoch() const noexcept { return impl_->epoch; }
std::int64_t DataLoader::position() const noexcept { return impl_->position; }

const Batch* DataLoader::next() { return impl_->next(); }

void DataLoader::set_epoch(std::int64_t epoch) {
  if (epoch < 0) throw ValueError(message("DataLoader::set_epoch: epoch ", epoch, " is negative"));
  impl_->move_to(epoch, 0);
}

DataLoader::Iterator DataLoader::begin() {
  if (!impl_->loop.expired()) {
    throw ValueError(
        "DataLoader::begin: another loop over this loader is running; loops at the same time need "
        "a loader each");
  }
  if (!impl_->resumed && impl_->position != 0) impl_->move_to(impl_->epoch, 0);
  auto loop = std::make_shared<const bool>(true);
  impl_->loop = loop;
  return {this, impl_->next(), std::move(loop)};
}

State DataLoader::state() const {
  State state;
  state.values["epoch"] = std::to_string(impl_->epoch);
  state.values["position"] = std::to_string(impl_->position);
  state.values["seed"] = std::to_string(impl_->options.seed);
  state.values["items"] = std::to_string(impl_->items);
  state.values["batch_size"] = std::to_string(impl_->options.batch_size);
  state.values["shuffle"] = text(impl_->options.shuffle);
  state.values["drop_last"] = text(impl_->options.drop_last);
  return state;
}

void DataLoader::load_state(const State& state) {
  constexpr const char* kWho = "DataLoader::load_state";
  const auto value = [&](const char* key) -> const std::string& {
    const auto found = state.values.find(key);
    if (found == state.values.end()) throw ValueError(message(kWho, ": no value '", key, "'"));
    return found->second;
  };
  const auto number = [&]<class T>(const char* key, T greatest) {
    const std::string& digits = value(key);
    T result{};
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
    if (code != std::errc() || end != digits.data() + digits.size() || result < T{0} ||
        result > greatest) {
      throw ValueError(
          message(kWho, ": '", key, "' is '", digits, "', not a number from 0 to ", greatest));
    }
    return result;
  };
  // With other differences the batches would not be those of the saved run.
  const State mine = this->state();
  for (const char* key : {"items", "batch_size", "shuffle", "drop_last"}) {
    const std::string& here = mine.values.at(key);
    if (value(key) != here) {
      throw ValueError(message(kWho, ": the state was saved with ", key, " ", value(key),
                               ", this loader has ", here));
    }
  }
  constexpr std::int64_t kMostEpochs = std::int64_t{1} << 62;
  const std::int64_t epoch = number("epoch", kMostEpochs);
  const std::int64_t position = number("position", impl_->batches);
  const std::uint64_t seed = number("seed", ~std::uint64_t{0});
  impl_->move_to(epoch, position);
  impl_->options.seed = seed;
  impl_->resumed = true;
}

}  // namespace baregrad::data
