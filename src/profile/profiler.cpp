// The watcher of the profiler. Each thread has a stack of open events and a buffer of finished
// ones.
#include "profile/profiler.h"

#include <chrono>
#include <mutex>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include "core/fork.h"
#include "core/made_once.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/label.h"
#include "ops/watch.h"
#include "parallel/observer.h"
#include "profile/work.h"

namespace baregrad::profile {

namespace {

std::uint64_t now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// An event that has begun and not ended.
struct Frame {
  Event event;
  std::uint64_t recording = 0;  // the recording in which it began; 0: none
  OpId op = OpId::kCount;
  const OpCall* call = nullptr;
  std::vector<std::uint64_t> shapes;  // of a node in backward
};

struct ThreadState {
  std::uint64_t recording = 0;  // the recording of the buffer
  std::shared_ptr<Buffer> buffer;
  std::vector<Frame> frames;
  std::size_t unstored = 0;  // begun events that could not be stored, for lack of memory
  std::vector<std::uint64_t> words;
};

// A plain pointer: it can still be used during thread exit and process exit.
constinit thread_local ThreadState* state_of_thread = nullptr;
struct StateOwner {
  ~StateOwner() { delete std::exchange(state_of_thread, nullptr); }
};

ThreadState* this_thread() noexcept {
  if (state_of_thread == nullptr) [[unlikely]] {
    static thread_local StateOwner owner;
    static_cast<void>(owner);
    state_of_thread = new (std::nothrow) ThreadState;
  }
  return state_of_thread;
}

class Profiler final : public watch::Watcher, public detail::ForkParticipant {
 public:
  static Profiler& instance() {
    return profiler_.get([] { return new Profiler; });
  }

  std::uint64_t begin(const std::string& target);
  std::optional<Trace> end(std::uint64_t number);
  std::optional<std::string> target();

  void op_begins(const OpCall& call) override { push(Kind::Op, call.name(), label(), &call); }
  void op_ends(const OpCall& call, std::span<const Tensor> results) override {
    end_op(call, results, false);
  }
  void op_failed() noexcept override {
    ThreadState* thread = this_thread();
    if (thread == nullptr || thread->unstored != 0 || thread->frames.empty() ||
        thread->frames.back().call == nullptr) {
      static_cast<void>(pop());
      return;
    }
    end_op(*thread->frames.back().call, {}, true);
  }

  void backward_begins(const char* op, const char* label,
                       std::span<const Tensor> gradients) override;
  void gradient_made(const char* op, const char* label, const Tensor& gradient) override;
  void backward_ends(const char*) override { end_backward(false); }
  void backward_failed() noexcept override { end_backward(true); }

  void kernel_begins(OpId op) noexcept override {
    if (Frame* frame = push(Kind::Kernel, op_name(op), nullptr, nullptr)) frame->op = op;
  }
  void kernel_ends(OpId op) noexcept override;

  void before_fork() noexcept override { mutex_.lock(); }
  void after_fork(bool in_child) noexcept override;

  ~Profiler() { detail::remove_fork_participant(*this); }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

 private:
  Profiler() { detail::add_fork_participant(*this); }

  Frame* push(Kind kind, const char* name, const char* label, const OpCall* call) noexcept;
  std::optional<Frame> pop() noexcept;
  /// Whether the frame belongs to the current recording.
  bool is_current(const Frame& frame) const noexcept {
    return frame.recording != 0 && frame.recording == running_.load(std::memory_order_acquire);
  }
  Buffer* buffer_of(ThreadState& thread, std::uint64_t recording, int worker = 0) noexcept;
  void end_op(const OpCall& call, std::span<const Tensor> results, bool failed) noexcept;
  void end_backward(bool failed) noexcept;
  static const char* label() noexcept;

  // Called by the thread pool.
  static const char* region() noexcept;
  static void worked(const char* region, int worker, std::uint64_t since) noexcept;
  static constexpr parallel::Observer kObserver{&region, &now, &worked};

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  Trace trace_;
  std::atomic<std::uint64_t> running_{0};

  static constinit MadeOnce<Profiler> profiler_;
};
constinit MadeOnce<Profiler> Profiler::profiler_;

std::uint64_t Profiler::begin(const std::string& target) {
  const std::lock_guard lock(mutex_);
  if (running_.load(std::memory_order_relaxed) != 0) return 0;
  trace_ = {target, now(), {}};
  running_.store(++last_, std::memory_order_release);
  watch::set(watch::Slot::Profile, this);
  parallel::set_observer(&kObserver);
  return last_;
}

std::optional<Trace> Profiler::end(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t running = running_.load(std::memory_order_relaxed);
  if (running == 0 || (number != 0 && number != running)) return {};
  watch::unset(watch::Slot::Profile);
  parallel::set_observer(nullptr);
  running_.store(0, std::memory_order_release);
  return std::exchange(trace_, {});
}

std::optional<std::string> Profiler::target() {
  const std::lock_guard lock(mutex_);
  if (running_.load(std::memory_order_relaxed) == 0) return {};
  return trace_.target;
}

/// A child does not record: two processes would write one file.
void Profiler::after_fork(bool in_child) noexcept {
  if (in_child && running_.load(std::memory_order_relaxed) != 0) {
    watch::unset(watch::Slot::Profile);
    parallel::set_observer(nullptr);
    running_.store(0, std::memory_order_release);
    trace_ = {};
  }
  mutex_.unlock();
}

/// The buffer of this thread for the recording; null if it has ended.
Buffer* Profiler::buffer_of(ThreadState& thread, std::uint64_t recording, int worker) noexcept {
  if (thread.recording == recording) return thread.buffer.get();
  try {
    const auto id = static_cast<std::int64_t>(::syscall(SYS_gettid));
    const std::string name = worker > 0         ? message("worker ", worker)
                             : id == ::getpid() ? std::string("main")
                                                : message("thread ", id);
    auto buffer = std::make_shared<Buffer>(name, id);
    const std::lock_guard lock(mutex_);
    if (running_.load(std::memory_order_relaxed) != recording) return nullptr;
    trace_.threads.push_back(buffer);
    thread.buffer = std::move(buffer);
    thread.recording = recording;
    return thread.buffer.get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// In backward, the label of an op is that of the node whose gradient it computes.
const char* Profiler::label() noexcept {
  if (const ThreadState* thread = this_thread()) {
    for (auto frame = thread->frames.rbegin(); frame != thread->frames.rend(); ++frame) {
      if (frame->event.kind == Kind::Backward) return frame->event.label;
    }
  }
  return watch::current_label();
}

Frame* Profiler::push(Kind kind, const char* name, const char* label, const OpCall* call) noexcept {
  ThreadState* thread = this_thread();
  if (thread == nullptr) return nullptr;
  try {
    if (thread->unstored != 0) throw std::bad_alloc();
    Frame& frame = thread->frames.emplace_back();
    frame.recording = running_.load(std::memory_order_acquire);
    frame.event.kind = kind;
    frame.event.name = name;
    frame.event.label = label;
    frame.call = call;
    frame.event.begin = now();
    return &frame;
  } catch (const std::bad_alloc&) {
    ++thread->unstored;
    return nullptr;
  }
}

std::optional<Frame> Profiler::pop() noexcept {
  ThreadState* thread = this_thread();
  if (thread == nullptr) return {};
  if (thread->unstored != 0) {
    --thread->unstored;
    return {};
  }
  if (thread->frames.empty()) return {};
  Frame frame = std::move(thread->frames.back());
  thread->frames.pop_back();
  return frame;
}

void Profiler::end_op(const OpCall& call, std::span<const Tensor> results, bool failed) noexcept {
  const std::uint64_t end = now();
  std::optional<Frame> frame = pop();
  if (!frame.has_value() || !is_current(*frame)) return;
  ThreadState& thread = *this_thread();
  Buffer* buffer = buffer_of(thread, frame->recording);
  if (buffer == nullptr) return;
  Event& event = frame->event;
  event.end = end;
  event.failed = failed;
  event.inputs = static_cast<std::uint32_t>(call.inputs.size());
  event.results = static_cast<std::uint32_t>(results.size());
  try {
    const Work work = work_of(call, results);
    event.flops = work.flops;
    event.bytes = work.bytes;
    thread.words.clear();
    for (const Tensor* t : call.inputs.first(std::min(call.inputs.size(), kMostShapes))) {
      append_shape(thread.words, *t);
    }
    for (const Tensor& t : results.first(std::min(results.size(), kMostShapes))) {
      append_shape(thread.words, t);
    }
    buffer->append(event, thread.words);
  } catch (const std::bad_alloc&) {
    // Out of memory: the event is dropped.
  }
}

void Profiler::kernel_ends(OpId op) noexcept {
  const std::uint64_t end = now();
  std::optional<Frame> frame = pop();
  if (!frame.has_value() || !is_current(*frame)) return;
  ThreadState& thread = *this_thread();
  frame->event.end = end;
  // The event of the op includes its kernel, which gets the shapes and counts of the op.
  if (!thread.frames.empty()) {
    Frame& around = thread.frames.back();
    if (around.call != nullptr && around.call->op == op && around.event.kernel_end == 0) {
      around.event.kernel = frame->event.name;
      around.event.kernel_begin = frame->event.begin;
      around.event.kernel_end = end;
      return;
    }
  }
  if (Buffer* buffer = buffer_of(thread, frame->recording)) buffer->append(frame->event, {});
}

void Profiler::backward_begins(const char* op, const char* label,
                               std::span<const Tensor> gradients) {
  Frame* frame = push(Kind::Backward, op, label, nullptr);
  if (frame == nullptr) return;
  try {
    for (const Tensor& t : gradients.first(std::min(gradients.size(), kMostShapes))) {
      append_shape(frame->shapes, t);
    }
    frame->event.inputs = static_cast<std::uint32_t>(gradients.size());
  } catch (const std::bad_alloc&) {
    frame->shapes.clear();
  }
}

void Profiler::gradient_made(const char*, const char*, const Tensor& gradient) {
  ThreadState* thread = this_thread();
  if (thread == nullptr || thread->unstored != 0 || thread->frames.empty()) return;
  Frame& frame = thread->frames.back();
  if (frame.event.kind != Kind::Backward) return;
  try {
    if (frame.event.results < kMostShapes) append_shape(frame.shapes, gradient);
    ++frame.event.results;
  } catch (const std::bad_alloc&) {
    // Out of memory: the shape is dropped.
  }
}

void Profiler::end_backward(bool failed) noexcept {
  const std::uint64_t end = now();
  std::optional<Frame> frame = pop();
  if (!frame.has_value() || !is_current(*frame)) return;
  Buffer* buffer = buffer_of(*this_thread(), frame->recording);
  if (buffer == nullptr) return;
  frame->event.end = end;
  frame->event.failed = failed;
  // The names of user functions may not outlive their nodes.
  frame->event.name = buffer->keep(frame->event.name);
  if (frame->event.name != nullptr) buffer->append(frame->event, frame->shapes);
}

const char* Profiler::region() noexcept {
  const ThreadState* thread = this_thread();
  if (thread == nullptr || thread->frames.empty()) return nullptr;
  const Event& event = thread->frames.back().event;
  return event.kind == Kind::Kernel ? event.name : nullptr;
}

void Profiler::worked(const char* region, int worker, std::uint64_t since) noexcept {
  const std::uint64_t end = now();
  Profiler& profiler = instance();
  const std::uint64_t recording = profiler.running_.load(std::memory_order_acquire);
  ThreadState* thread = this_thread();
  if (recording == 0 || thread == nullptr) return;
  Buffer* buffer = profiler.buffer_of(*thread, recording, worker);
  if (buffer == nullptr) return;
  Event event;
  event.kind = Kind::Worker;
  event.name = region;
  event.begin = since;
  event.end = end;
  buffer->append(event, {});
}

}  // namespace

std::uint64_t begin_recording(const std::string& target) {
  return Profiler::instance().begin(target);
}
std::optional<Trace> end_recording(std::uint64_t number) {
  return Profiler::instance().end(number);
}
std::optional<std::string> recording_target() { return Profiler::instance().target(); }

}  // namespace baregrad::profile
