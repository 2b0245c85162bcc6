// The fork-join thread pool. Each thread has a share of the chunks, which is claimed in tickets by
// any thread, so nobody waits for a worker that is not scheduled yet.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "core/integer_math.h"
#include "parallel/affinity.h"
#include "parallel/float_control.h"
#include "parallel/interrupt.h"
#include "parallel/observer.h"
#include "parallel/parallel_for.h"
#include "parallel/parker.h"
#include "parallel/serial.h"
#include "parallel/thread_variable.h"

namespace baregrad {
namespace parallel {
namespace {

using Clock = std::chrono::steady_clock;

// A share is claimed in this many steps: enough to balance cores of different speed, few enough
// that claiming costs little compared with the chunks.
constexpr std::uint32_t kTicketsPerShare = 8;
// How long an idle thread spins before it parks. It does not yield meanwhile: on a busy machine
// that gives the core away for a whole time slice, which measured worse. Waking a parked thread
// costs its waker 5 to 10 us on a virtual machine.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerClockRead = 64;
constexpr std::int64_t kNoError = std::numeric_limits<std::int64_t>::max();
// The index of a chunk before all others: an interrupt takes precedence over exceptions of chunks.
constexpr std::int64_t kInterrupted = -1;
// How long a caller that waits for its workers sleeps between two calls of the interrupt check.
constexpr timespec kCheckInterval{0, 50'000'000};

constinit thread_local bool t_in_region = false;

void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Done>
bool spin_until(Done done, std::chrono::nanoseconds limit) noexcept {
  Clock::time_point deadline{};
  for (;;) {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) return true;
      pause_cpu();
    }
    // The clock is first read here, so that a short wait does not read it at all.
    const Clock::time_point now = Clock::now();
    if (deadline == Clock::time_point{}) {
      deadline = now + limit;
    }
    if (now >= deadline) return false;
  }
}

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

// One thread's part of a region: the same contiguous chunks each time, so that data stays in the
// caches that hold it. Chunks that a thread does not get to are taken by others. A copy of the job
// is next to the ticket counter, so starting a worker moves one cache line.
//
// Protocol: the caller writes the plain fields, then stores `tickets`. The thread that decrements a
// non-zero `tickets` owns that ticket; until it has reported the ticket as done, the region cannot
// end and the plain fields cannot change. So a decrement is valid in whichever region it happens,
// and only `tickets` may be read before it.
struct alignas(128) Share {
  std::atomic<std::uint32_t> tickets{0};
  std::uint32_t ticket_count = 0;
  ChunkFn body;
  std::int64_t n = 0;
  std::int64_t grain = 0;
  Range chunks{0, 0};

  // Rarely written, hence on the second line.
  alignas(64) Parker parker;
  int participants = 0;
  unsigned float_bits = 0;
  // The observer, what the region computes, and since when this thread has worked on it.
  const Observer* observer = nullptr;
  const char* region = nullptr;
  std::uint64_t since = 0;
  // The worker's system id, how late it is (measured by its parent in the tree of wakers), and
  // whether it has itself children that were woken and have not run yet.
  pid_t thread = 0;
  WakeDelay delay;
  bool has_waking_children = false;
  // The lowest chunk that threw on this thread, and its exception.
  std::int64_t error_chunk = kNoError;
  std::exception_ptr error;
};

class Pool {
 public:
  /// nullptr when there is not enough memory.
  static Pool* instance() noexcept;

  /// False, with nothing run, when the pool is busy or no worker can be created.
  bool try_run(std::int64_t n, std::int64_t grain, std::int64_t chunks, int threads, ChunkFn body);
  void retry_failed_spawns() noexcept { may_spawn_.store(true, std::memory_order_relaxed); }
  static void restart_in_child() noexcept;

 private:
  int enlist(int participants) noexcept;
  bool spawn(int index) noexcept;
  static void* worker_main(void* share);
  void work(int self) noexcept;
  std::uint32_t take_share(Share& victim, Share& self) noexcept;
  void run_ticket(const Share& share, std::uint32_t ticket, Share& self) noexcept;
  void poll() noexcept;
  void report(std::int64_t chunk, std::exception_ptr error, Share& self) noexcept;
  void wake_children(int self, int participants) noexcept;
  void move_stuck_children(int self) noexcept;
  void leave_callers_core(int self) noexcept;
  std::exception_ptr collect_error(int participants) noexcept;

  // Accessed by callers only.
  alignas(128) std::atomic<bool> busy_{false};
  std::atomic<bool> may_spawn_{true};
  int workers_ = 0;
  // Tickets of the running region that are not reported as done.
  alignas(128) std::atomic<std::uint32_t> pending_{0};
  Parker caller_parker_;
  // Read by all threads often, rarely written.
  alignas(128) std::atomic<std::int64_t> first_error_{kNoError};
  std::atomic<std::int64_t> spin_ns_{0};
  std::atomic<int> caller_core_{-1};
  Share shares_[kMaxThreads];
};

// Not a function-local static: a fork during its initialisation would leave the guard locked.
constinit std::atomic<Pool*> g_pool{nullptr};
constinit std::atomic<int> g_num_threads{0};
constinit std::atomic<const Observer*> g_observer{nullptr};
constinit std::atomic<int> g_cores{0};

int cores() noexcept {
  int count = g_cores.load(std::memory_order_relaxed);
  if (count == 0) {
    count = cores_in_affinity_mask();
    g_cores.store(count, std::memory_order_relaxed);
  }
  return count;
}

// A BAREGRAD_NUM_THREADS that is not a number from 1 to 1024 must not stop a program from starting.
// The command and the Python package report it (thread_variable.h).
int initial_num_threads() noexcept {
  if (const char* text = thread_variable()) {
    if (const std::optional<int> count = parse_thread_count(text)) return *count;
  }
  return std::min(cores(), kMaxThreads);
}

int num_threads() noexcept {
  int count = g_num_threads.load(std::memory_order_relaxed);
  if (count == 0) [[unlikely]] {
    const int initial = initial_num_threads();
    // A set_num_threads that came first takes precedence.
    if (g_num_threads.compare_exchange_strong(count, initial, std::memory_order_relaxed)) {
      count = initial;
    }
  }
  return count;
}

Pool* Pool::instance() noexcept {
  Pool* pool = g_pool.load(std::memory_order_acquire);
  if (pool == nullptr) [[unlikely]] {
    Pool* fresh = new (std::nothrow) Pool;
    if (fresh == nullptr) return nullptr;
    if (g_pool.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel)) return fresh;
    delete fresh;
  }
  return pool;
}

// In the child of a fork only the forking thread exists. The state of the other threads is reset;
// the next region starts new workers.
void Pool::restart_in_child() noexcept {
  Pool* pool = g_pool.load(std::memory_order_relaxed);
  if (pool == nullptr) return;
  for (int i = 0; i <= pool->workers_; ++i) {
    Share& share = pool->shares_[i];
    share.tickets.store(0, std::memory_order_relaxed);
    share.parker.reset();
    share.error_chunk = kNoError;
    // May be half written: overwritten, not destroyed.
    new (&share.error) std::exception_ptr;
  }
  pool->pending_.store(0, std::memory_order_relaxed);
  pool->caller_parker_.reset();
  pool->first_error_.store(kNoError, std::memory_order_relaxed);
  set_abandoned(false);
  pool->workers_ = 0;
  pool->may_spawn_.store(true, std::memory_order_relaxed);
  pool->busy_.store(false, std::memory_order_relaxed);
}

[[maybe_unused]] const int g_fork_handler =
    pthread_atfork(nullptr, nullptr, &Pool::restart_in_child);

bool Pool::spawn(int index) noexcept {
  // Signals for the program are handled by its own threads. Faults belong to the thread that caused
  // them, and SIGPROF to the thread that uses the CPU.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    sigdelset(&blocked, signal);
  }
  if (pthread_sigmask(SIG_SETMASK, &blocked, &before) != 0) return false;
  pthread_t thread;
  const bool created = pthread_create(&thread, nullptr, &Pool::worker_main, &shares_[index]) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Never joined: a worker lives until the process ends, and uses nothing that exit() destroys.
  if (created) {
    pthread_detach(thread);
  }
  return created;
}

// How many of `participants` are available, the caller included.
int Pool::enlist(int participants) noexcept {
  while (workers_ < participants - 1 && may_spawn_.load(std::memory_order_relaxed)) {
    if (spawn(workers_ + 1)) {
      ++workers_;
    } else {
      // Retrying in each region would cost more than the worker is worth.
      may_spawn_.store(false, std::memory_order_relaxed);
    }
  }
  return std::min(participants, workers_ + 1);
}

bool Pool::try_run(std::int64_t n, std::int64_t grain, std::int64_t chunks, int threads,
                   ChunkFn body) {
  if (busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  const int participants = enlist(static_cast<int>(std::min<std::int64_t>(chunks, threads)));
  if (participants == 1) {
    busy_.store(false, std::memory_order_release);
    return false;
  }

  // With more threads than cores, a spinning thread keeps a working one from running.
  const std::int64_t spin_ns =
      participants <= cores() ? std::chrono::nanoseconds(kSpin).count() : 0;
  if (spin_ns_.load(std::memory_order_relaxed) != spin_ns) {
    spin_ns_.store(spin_ns, std::memory_order_relaxed);
  }

  const int core = sched_getcpu();
  if (caller_core_.load(std::memory_order_relaxed) != core) {
    caller_core_.store(core, std::memory_order_relaxed);
  }

  const Observer* observer = g_observer.load(std::memory_order_acquire);
  const char* region = observer != nullptr ? observer->region() : nullptr;
  if (region == nullptr) observer = nullptr;

  const unsigned float_bits = float_control();
  const EvenSplit split = EvenSplit::into_parts(chunks, participants);
  std::uint32_t total = 0;
  for (int i = 0; i < participants; ++i) {
    Share& share = shares_[i];
    share.body = body;
    share.n = n;
    share.grain = grain;
    share.chunks = {split.begin(i), split.end(i)};
    share.ticket_count = static_cast<std::uint32_t>(
        std::min<std::int64_t>(share.chunks.end - share.chunks.begin, kTicketsPerShare));
    total += share.ticket_count;
    if (share.participants != participants) share.participants = participants;
    if (share.float_bits != float_bits) share.float_bits = float_bits;
    if (share.observer != observer) share.observer = observer;
    if (share.region != region) share.region = region;
  }
  pending_.store(total, std::memory_order_relaxed);
  for (int i = participants - 1; i >= 0; --i) {
    shares_[i].tickets.store(shares_[i].ticket_count, std::memory_order_seq_cst);
  }
  wake_children(0, participants);

  {
    const SerialScope scope;
    work(0);
  }
  const auto all_done = [this] { return pending_.load(std::memory_order_seq_cst) == 0; };
  spin_until(all_done, std::chrono::nanoseconds(spin_ns));
  while (!all_done()) {
    caller_parker_.park_unless(all_done, has_interrupt_check() ? &kCheckInterval : nullptr,
                               [this] { poll(); });
  }

  std::exception_ptr error = collect_error(participants);
  busy_.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(std::move(error));
  return true;
}

void* Pool::worker_main(void* share_address) {
  Pool& pool = *g_pool.load(std::memory_order_acquire);
  Share& share = *static_cast<Share*>(share_address);
  const int self = static_cast<int>(&share - pool.shares_);
  pthread_setname_np(pthread_self(), "baregrad");
  share.thread = gettid();
  t_in_region = true;
  mark_worker_thread();
  const auto has_tickets = [&share] { return share.tickets.load(std::memory_order_seq_cst) != 0; };
  for (;;) {
    const std::chrono::nanoseconds spin(pool.spin_ns_.load(std::memory_order_relaxed));
    // A worker that wakes too late for its region spins again: the next region may be near.
    bool claimed = false;
    if (!spin_until(has_tickets, spin)) {
      claimed = share.parker.park_unless(has_tickets);
    }
    // Two threads that change one mask at once could put back what the other had narrowed.
    if (!claimed) pool.leave_callers_core(self);
    pool.work(self);
  }
}

// Works on its own share, then on what is left of the others'.
void Pool::work(int self) noexcept {
  Share& own = shares_[self];
  std::uint32_t done = take_share(own, own);
  if (done == 0 && self != 0) return;  // all taken by others: the region may be over
  const int participants = own.participants;
  for (int i = 1; i < participants; ++i) {
    const int victim = self + i < participants ? self + i : self + i - participants;
    done += take_share(shares_[victim], own);
  }
  if (self != 0 && own.observer != nullptr) {
    own.observer->worked(own.region, self, own.since);
  }
  // The last thread to report ends the region, which must not be touched from then on. A wake-up
  // that comes too late finds the caller running, or parked in a later region, where it parks
  // again.
  if (pending_.fetch_sub(done, std::memory_order_seq_cst) == done && self != 0) {
    caller_parker_.unpark();
  }
}

// Claims and runs tickets of `victim` until there are none; returns how many.
std::uint32_t Pool::take_share(Share& victim, Share& self) noexcept {
  std::uint32_t taken = 0;
  std::uint32_t left = victim.tickets.load(std::memory_order_relaxed);
  while (left != 0) {
    if (!victim.tickets.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
      continue;
    }
    if (&victim == &self && taken == 0 && &self != shares_) {
      set_float_control(self.float_bits);
      wake_children(static_cast<int>(&self - shares_), self.participants);
      if (self.observer != nullptr) self.since = self.observer->now();
    }
    run_ticket(victim, victim.ticket_count - left, self);
    if (self.has_waking_children) [[unlikely]] {
      move_stuck_children(static_cast<int>(&self - shares_));
    }
    ++taken;
    left = victim.tickets.load(std::memory_order_relaxed);
  }
  return taken;
}

void Pool::run_ticket(const Share& share, std::uint32_t ticket, Share& self) noexcept {
  const std::int64_t first = share.chunks.begin;
  const EvenSplit split = EvenSplit::into_parts(share.chunks.end - first, share.ticket_count);
  const std::int64_t end = first + split.end(ticket);
  for (std::int64_t chunk = first + split.begin(ticket); chunk < end; ++chunk) {
    if (&self == shares_) poll();
    // A chunk before the failed one still runs: if it fails too, it is the first one.
    if (chunk > first_error_.load(std::memory_order_relaxed)) return;
    try {
      const std::int64_t begin = chunk * share.grain;
      share.body(begin, begin + std::min(share.grain, share.n - begin));
    } catch (...) {
      report(chunk, std::current_exception(), self);
      return;
    }
  }
}

void Pool::report(std::int64_t chunk, std::exception_ptr error, Share& self) noexcept {
  std::int64_t lowest = first_error_.load(std::memory_order_relaxed);
  while (chunk < lowest &&
         !first_error_.compare_exchange_weak(lowest, chunk, std::memory_order_relaxed)) {
  }
  if (chunk < self.error_chunk) {
    self.error_chunk = chunk;
    self.error = std::move(error);
  }
}

// Calls the interrupt check, in the caller of the region.
void Pool::poll() noexcept {
  try {
    poll_interrupt();
  } catch (...) {
    set_abandoned(true);
    report(kInterrupted, std::current_exception(), shares_[0]);
  }
}

// Parked workers are woken along a binary tree, so that the caller wakes two of them at most.
void Pool::wake_children(int self, int participants) noexcept {
  bool any_waking = false;
  for (int child = 2 * self + 1; child <= 2 * self + 2 && child < participants; ++child) {
    Share& share = shares_[child];
    if (share.parker.unpark()) share.delay.reset();
    if (share.parker.is_waking()) [[unlikely]] {
      share.delay.begin_region();
      any_waking = true;
    }
  }
  Share& own = shares_[self];
  if (own.has_waking_children != any_waking) own.has_waking_children = any_waking;
}

// Moves children that wait behind this thread for its core (affinity.h): a thread cannot leave a
// core before it has run there.
void Pool::move_stuck_children(int self) noexcept {
  Share& own = shares_[self];
  own.has_waking_children = false;
  // Workers beyond the number of cores have to share one anyway. Only callers count cores: a
  // worker's mask may be narrowed at this moment.
  const int end =
      std::min({2 * self + 3, own.participants, g_cores.load(std::memory_order_relaxed)});
  for (int child = 2 * self + 1; child < end; ++child) {
    Share& share = shares_[child];
    if (!share.parker.is_waking()) continue;
    if (!share.delay.look()) {
      own.has_waking_children = true;
    } else if (share.parker.claim_wakeup()) {
      leave_core(share.thread, sched_getcpu());
    }
  }
}

// Moves worker `self` off the caller's core. Workers beyond the number of cores have to share one
// anyway.
void Pool::leave_callers_core(int self) noexcept {
  const int core = caller_core_.load(std::memory_order_relaxed);
  if (self < g_cores.load(std::memory_order_relaxed) && core >= 0 && core == sched_getcpu()) {
    leave_core(0, core);
  }
}

std::exception_ptr Pool::collect_error(int participants) noexcept {
  const std::int64_t first = first_error_.load(std::memory_order_relaxed);
  if (first == kNoError) return nullptr;
  first_error_.store(kNoError, std::memory_order_relaxed);
  if (first == kInterrupted) set_abandoned(false);
  std::exception_ptr result;
  for (int i = 0; i < participants; ++i) {
    Share& share = shares_[i];
    if (share.error_chunk == first) result = std::move(share.error);
    share.error_chunk = kNoError;
    share.error = nullptr;
  }
  return result;
}

}  // namespace

namespace detail {

void parallel_for_chunks(std::int64_t n, std::int64_t grain, ChunkFn body) {
  if (n < 0 || grain < 1) {
    throw ValueError("parallel_for: needs n >= 0 and grain >= 1, got n = " + std::to_string(n) +
                     " and grain = " + std::to_string(grain));
  }
  if (n == 0) return;
  if (!t_in_region) {
    const int threads = num_threads();
    if (threads > 1) {
      const std::int64_t chunks = n / grain + (n % grain != 0 ? 1 : 0);
      Pool* pool = Pool::instance();
      if (pool != nullptr && pool->try_run(n, grain, chunks, threads, body)) return;
    }
  }
  const SerialScope scope;
  std::int64_t begin = 0;
  for (; n - begin > grain; begin += grain) {
    body(begin, begin + grain);
    poll_interrupt();
  }
  body(begin, n);
}

}  // namespace detail

bool in_parallel_region() noexcept { return t_in_region; }

SerialScope::SerialScope() noexcept : outer_(t_in_region) { t_in_region = true; }
SerialScope::~SerialScope() { t_in_region = outer_; }

void set_observer(const Observer* observer) noexcept {
  g_observer.store(observer, std::memory_order_release);
}

}  // namespace parallel

int get_num_threads() noexcept { return parallel::num_threads(); }

void set_num_threads(int count) {
  if (count < 1 || count > parallel::kMaxThreads) {
    throw ValueError("set_num_threads: takes 1 to " + std::to_string(parallel::kMaxThreads) +
                     " threads, got " + std::to_string(count));
  }
  if (parallel::t_in_region) {
    throw ValueError("set_num_threads: called inside a parallel region; call it between regions");
  }
  parallel::g_num_threads.store(count, std::memory_order_relaxed);
  // Counted anew in the next region: the affinity mask may have changed.
  parallel::g_cores.store(0, std::memory_order_relaxed);
  if (parallel::Pool* pool = parallel::g_pool.load(std::memory_order_acquire)) {
    pool->retry_failed_spawns();
  }
}

}  // namespace baregrad
