// The contents of a recording: one list of events per thread, to which only that thread appends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "baregrad/tensor.h"
#include "io/output.h"

namespace baregrad::profile {

enum class Kind : std::uint8_t { Op, Kernel, Worker, Backward };

/// The fixed part of an event. Shapes follow it, as words.
struct Event {
  std::uint64_t begin = 0;  ///< nanoseconds of the steady clock
  std::uint64_t end = 0;
  std::uint64_t kernel_begin = 0;  ///< of an op: its kernel; both are 0 without one
  std::uint64_t kernel_end = 0;
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;
  const char* name = nullptr;
  const char* kernel = nullptr;  ///< the name of the kernel's op
  const char* label = nullptr;   ///< null without a label
  std::uint32_t inputs = 0;      ///< the number of inputs; the first kMostShapes are stored
  std::uint32_t results = 0;
  std::uint32_t words = 0;  ///< of the whole event
  Kind kind = Kind::Op;
  bool failed = false;
};
static_assert(sizeof(Event) % sizeof(std::uint64_t) == 0);

inline constexpr std::size_t kMostShapes = 8;

/// Appends the dtype and the number of axes as one word, then the sizes.
void append_shape(std::vector<std::uint64_t>& words, const Tensor& t);

/// One thread appends; any thread may read at any time. Published events do not change.
class Buffer {
 public:
  Buffer(std::string thread, std::int64_t id) : thread_(std::move(thread)), id_(id) {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// `shapes`: of the inputs, then of the results. If memory runs out, the event is dropped and
  /// counted.
  void append(Event event, std::span<const std::uint64_t> shapes) noexcept;
  /// A copy of the name with the lifetime of the buffer; null if memory runs out.
  const char* keep(const char* name) noexcept;

  /// Calls visit(event, shapes) for each event, in the order of their ends.
  template <class F>
  void each(const F& visit) const {
    for (const Chunk* chunk = first_.load(std::memory_order_acquire); chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_acquire)) {
      const std::size_t used = chunk->used.load(std::memory_order_acquire);
      for (std::size_t at = 0; at < used;) {
        const Event event = read(chunk->words.data() + at);
        visit(event, std::span<const std::uint64_t>(chunk->words)
                         .subspan(at + kEventWords, event.words - kEventWords));
        at += event.words;
      }
    }
  }
  const std::string& thread() const noexcept { return thread_; }
  std::int64_t id() const noexcept { return id_; }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kEventWords = sizeof(Event) / sizeof(std::uint64_t);
  struct Chunk {
    std::array<std::uint64_t, 8192> words;
    std::atomic<std::size_t> used{0};
    std::atomic<Chunk*> next{nullptr};
  };
  static_assert(kEventWords + 2 * kMostShapes * (1 + kMaxDims) < 8192, "an event fits a chunk");

  static Event read(const std::uint64_t* words) noexcept;
  Chunk* chunk_with_room(std::size_t words) noexcept;

  std::string thread_;
  std::int64_t id_;
  std::atomic<Chunk*> first_{nullptr};
  Chunk* last_ = nullptr;  // used only by the appending thread
  std::atomic<std::uint64_t> dropped_{0};
  std::unordered_set<std::string> names_;  // used only by the appending thread
};

struct Trace {
  std::string target;       ///< the file of the recording
  std::uint64_t start = 0;  ///< nanoseconds of the steady clock
  std::vector<std::shared_ptr<const Buffer>> threads;
};

/// Writes the JSON object format of Perfetto and chrome://tracing. `write` is called with one part
/// of the text after the other.
void write_json(const Trace& trace, const io::Sink& write);

}  // namespace baregrad::profile
