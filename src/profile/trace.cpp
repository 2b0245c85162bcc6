// Buffers of events in chunks of words, and their output as JSON.
#include "profile/trace.h"

#include <algorithm>
#include <bit>
#include <new>

#include <unistd.h>

#include "core/json_string.h"
#include "core/message.h"

namespace baregrad::profile {

void append_shape(std::vector<std::uint64_t>& words, const Tensor& t) {
  if (!t.defined()) {
    words.push_back(~std::uint64_t{0});
    return;
  }
  words.push_back(static_cast<std::uint64_t>(t.dtype()) << 8 |
                  static_cast<std::uint64_t>(t.ndim()));
  for (const std::int64_t size : t.shape()) words.push_back(static_cast<std::uint64_t>(size));
}

Buffer::~Buffer() {
  Chunk* chunk = first_.load(std::memory_order_relaxed);
  while (chunk != nullptr) {
    Chunk* next = chunk->next.load(std::memory_order_relaxed);
    delete chunk;
    chunk = next;
  }
}

Event Buffer::read(const std::uint64_t* words) noexcept {
  std::array<std::uint64_t, kEventWords> raw;
  std::copy_n(words, kEventWords, raw.begin());
  return std::bit_cast<Event>(raw);
}

Buffer::Chunk* Buffer::chunk_with_room(std::size_t words) noexcept {
  if (last_ != nullptr &&
      last_->used.load(std::memory_order_relaxed) + words <= last_->words.size()) {
    return last_;
  }
  auto* fresh = new (std::nothrow) Chunk;
  if (fresh == nullptr) return nullptr;
  (last_ != nullptr ? last_->next : first_).store(fresh, std::memory_order_release);
  last_ = fresh;
  return fresh;
}

void Buffer::append(Event event, std::span<const std::uint64_t> shapes) noexcept {
  const std::size_t words = kEventWords + shapes.size();
  Chunk* chunk = chunk_with_room(words);
  if (chunk == nullptr) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  event.words = static_cast<std::uint32_t>(words);
  const std::size_t at = chunk->used.load(std::memory_order_relaxed);
  const auto raw = std::bit_cast<std::array<std::uint64_t, kEventWords>>(event);
  std::copy(shapes.begin(), shapes.end(),
            std::copy(raw.begin(), raw.end(), chunk->words.data() + at));
  chunk->used.store(at + words, std::memory_order_release);
}

const char* Buffer::keep(const char* name) noexcept {
  try {
    return names_.emplace(name).first->c_str();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

namespace {

using baregrad::json_string;

/// The contents of one line of the file.
struct Line {
  Event event;
  std::span<const std::uint64_t> shapes;
};

const char* category(Kind kind) {
  switch (kind) {
    case Kind::Op:
      return "op";
    case Kind::Backward:
      return "backward";
    case Kind::Kernel:
    case Kind::Worker:
      break;
  }
  return "kernel";
}

/// Nanoseconds as microseconds: 1234 is 1.234.
std::string microseconds(std::uint64_t ns) {
  std::string fraction = std::to_string(ns % 1000);
  return message(ns / 1000, '.', std::string(3 - fraction.size(), '0'), fraction);
}

/// Removes the stored shapes from the front of `words`; `total` is the number of shapes of the op.
std::string shapes_text(std::span<const std::uint64_t>& words, std::size_t total) {
  std::string out = "[";
  const std::size_t count = std::min(total, kMostShapes);
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += ',';
    const std::uint64_t head = words[0];
    words = words.subspan(1);
    if (head == ~std::uint64_t{0}) {
      out += "\"undefined\"";
      continue;
    }
    Dims shape;
    for (std::uint64_t axis = 0; axis < (head & 0xFF); ++axis) {
      shape.push_back(static_cast<std::int64_t>(words[axis]));
    }
    words = words.subspan(head & 0xFF);
    out += message('"', name(static_cast<DType>(head >> 8)), to_string(shape), '"');
  }
  if (total > count) out += message(",\"... ", total - count, " more\"");
  return out + "]";
}

std::string args_text(const Line& line, const Buffer& thread) {
  const Event& event = line.event;
  std::string out = "{\"thread\":" + json_string(thread.thread());
  if (event.label != nullptr) out += ",\"label\":" + json_string(event.label);
  if (event.kind != Kind::Worker && !line.shapes.empty()) {
    std::span<const std::uint64_t> words = line.shapes;
    out += ",\"inputs\":" + shapes_text(words, event.inputs);
    out += ",\"results\":" + shapes_text(words, event.results);
  }
  const bool counted = (event.kind == Kind::Op || event.kind == Kind::Kernel) && !event.failed;
  if (counted) out += message(",\"bytes\":", event.bytes, ",\"flops\":", event.flops);
  if (event.failed) out += ",\"failed\":true";
  return out + "}";
}

/// Sorted by begin, enclosing events first: viewers expect a parent before its children.
std::vector<Line> lines_of(const Buffer& thread) {
  std::vector<Line> lines;
  thread.each([&](const Event& event, std::span<const std::uint64_t> shapes) {
    lines.push_back({event, shapes});
    if (event.kernel_end == 0) return;
    Event kernel = event;
    kernel.kind = Kind::Kernel;
    kernel.name = event.kernel;
    kernel.begin = event.kernel_begin;
    kernel.end = event.kernel_end;
    lines.push_back({kernel, shapes});
  });
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.event.begin != b.event.begin ? a.event.begin < b.event.begin
                                          : a.event.end > b.event.end;
  });
  return lines;
}

std::string metadata(const char* what, const std::string& pid, std::int64_t tid,
                     std::string_view name) {
  return message("{\"ph\":\"M\",\"name\":\"", what, "\",\"pid\":", pid, ",\"tid\":", tid,
                 ",\"args\":{\"name\":", json_string(name), "}}");
}

}  // namespace

void write_json(const Trace& trace, const io::Sink& write) {
  const std::string pid = std::to_string(::getpid());
  std::uint64_t dropped = 0;
  write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  write(metadata("process_name", pid, ::getpid(), "baregrad"));
  for (const auto& thread : trace.threads) {
    dropped += thread->dropped();
    write(",\n" + metadata("thread_name", pid, thread->id(), thread->thread()));
    for (const Line& line : lines_of(*thread)) {
      const Event& event = line.event;
      write(message(",\n{\"ph\":\"X\",\"cat\":\"", category(event.kind),
                    "\",\"name\":", json_string(event.name), ",\"pid\":", pid,
                    ",\"tid\":", thread->id(), ",\"ts\":", microseconds(event.begin - trace.start),
                    ",\"dur\":", microseconds(event.end - event.begin),
                    ",\"args\":", args_text(line, *thread), "}"));
    }
  }
  write(
      message("\n],\"otherData\":{\"program\":\"baregrad\",\"dropped_events\":", dropped, "}}\n"));
}

}  // namespace baregrad::profile
