// What a recording holds: per thread a list of events, which only that thread appends to.
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

/// The fixed part of an event; shapes follow it, as words.
struct Event {
  std::uint64_t begin = 0;  ///< nanoseconds of the steady clock
  std::uint64_t end = 0;
  std::uint64_t kernel_begin = 0;  ///< of an op: the part that computes; both 0 without one
  std::uint64_t kernel_end = 0;
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;
  const char* name = nullptr;
  const char* kernel = nullptr;  ///< the name of the op whose kernel it is
  const char* label = nullptr;   ///< null: none
  std::uint32_t inputs = 0;      ///< how many there were; the first kMostShapes are described
  std::uint32_t results = 0;
  std::uint32_t words = 0;  ///< of the whole event
  Kind kind = Kind::Op;
  bool failed = false;
};
static_assert(sizeof(Event) % sizeof(std::uint64_t) == 0);

inline constexpr std::size_t kMostShapes = 8;

/// dtype and number of axes in one word, then the sizes.
void append_shape(std::vector<std::uint64_t>& words, const Tensor& t);

/// Appended to by one thread and read by any other at any time: what is published never changes.
class Buffer {
 public:
  Buffer(std::string thread, std::int64_t id) : thread_(std::move(thread)), id_(id) {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// `shapes`: those of inputs, then of results. Without memory the event is counted and dropped.
  void append(Event event, std::span<const std::uint64_t> shapes) noexcept;
  /// A copy that lives as long as the buffer; null without memory.
  const char* keep(const char* name) noexcept;

  /// visit(event, shapes) for each, in the order in which they ended.
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
  Chunk* last_ = nullptr;  // the owner's
  std::atomic<std::uint64_t> dropped_{0};
  std::unordered_set<std::string> names_;  // the owner's
};

struct Trace {
  std::string target;       ///< what the recording was started for: a file
  std::uint64_t start = 0;  ///< nanoseconds of the steady clock
  std::vector<std::shared_ptr<const Buffer>> threads;
};

/// In the JSON object format that Perfetto and chrome://tracing read. `write` takes the text, part
/// after part.
void write_json(const Trace& trace, const io::Sink& write);

}  // namespace baregrad::profile
