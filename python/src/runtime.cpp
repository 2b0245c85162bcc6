// The engine in its process: threads, memory, signals, build information.
#include <atomic>
#include <chrono>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/table.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "core/message.h"
#include "module_use.h"
#include "parallel/thread_variable.h"
#include "scope_manager.h"

#ifndef BAREGRAD_VERSION
#define BAREGRAD_VERSION "unversioned"
#endif

namespace baregrad::python {
namespace {

bool in_main_thread() noexcept { return syscall(SYS_gettid) == getpid(); }

// ---- Exit

/// Set late in the interpreter's shutdown, shortly before other threads stop running.
std::atomic<bool> g_leaving{false};
/// The number of threads that are taking the lock again.
std::atomic<int> g_returning{0};

bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Other steps of the shutdown may wait for this thread, so it blocks only once the interpreter is
/// really finalizing, usually a moment after g_leaving is set.
void stay_away() noexcept {
  if (in_main_thread()) return;
  for (int i = 0; i < 100; ++i) {
    while (is_finalizing()) pause();
    usleep(1000);
  }
}

/// At exit, with the lock: threads that wait for the lock get it now; threads that come later
/// block.
void leave() {
  g_leaving = true;
  while (g_returning > 0) {
    const nb::gil_scoped_release release;  // this thread runs the shutdown and must not block
    usleep(100);
  }
}

void watch_for_exit() {
  // In the child of a fork the other threads are gone.
  pthread_atfork(nullptr, nullptr, [] { g_returning = 0; });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&leave));
}

/// Lets Ctrl-C interrupt long ops: Python's handlers run in the main thread, with the lock.
void check_signals() {
  if (!in_main_thread() || Py_IsInitialized() == 0) return;
  const LockTaken lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Allocator& allocator_named(const std::optional<std::string>& name) {
  return name ? allocator_by_name(*name) : current_allocator();
}

nb::dict stats_of(const std::optional<std::string>& name) {
  const Allocator& allocator = allocator_named(name);
  const AllocatorStats stats = allocator.stats();
  nb::dict dict;
  dict["allocator"] = std::string(allocator.name());
  dict["live_bytes"] = stats.live_bytes;
  dict["peak_bytes"] = stats.peak_bytes;
  dict["reserved_bytes"] = stats.reserved_bytes;
  dict["allocations"] = stats.allocations;
  dict["system_allocations"] = stats.system_allocations;
  return dict;
}

/// An AllocatorScope, chosen by name.
class NamedScope {
 public:
  explicit NamedScope(const std::string& name) : scope_(allocator_by_name(name)) {}

 private:
  AllocatorScope scope_;
};

void bind_memory(nb::module_& m) {
  nb::module_ sub = m.def_submodule("memory");
  const auto by_name = nb::arg("allocator") = nb::none();
  sub.def("stats", &stats_of, by_name,
          nb::sig("def stats(allocator: str | None = None) -> dict[str, typing.Any]"),
          "Counters of an allocator (\"pool\", \"system\", \"arena\"), of the one in use when None."
          "\n\n"
          ">>> before = bg.memory.stats()[\"live_bytes\"]\n"
          ">>> x = bg.ones((1024,))\n"
          ">>> bg.memory.stats()[\"live_bytes\"] - before\n"
          "4096");
  sub.def(
      "reset_peak",
      [](const std::optional<std::string>& name) { allocator_named(name).reset_peak(); }, by_name,
      R"(Resets peak_bytes to live_bytes.

>>> bg.memory.reset_peak()
>>> stats = bg.memory.stats()
>>> stats["peak_bytes"] == stats["live_bytes"]
True)");
  sub.def(
      "trim",
      [](const std::optional<std::string>& name) {
        const LockReleased release;
        return allocator_named(name).trim();
      },
      by_name, R"(Returns cached memory to the system; the result is the number of bytes.

>>> x = bg.ones((1 << 20,))
>>> del x
>>> bg.memory.trim() >= 4 << 20
True)");
  sub.def(
      "set_limit", [](std::size_t bytes) { pool_allocator().set_limit(bytes); }, nb::arg("bytes"),
      R"(Limits the bytes that the pool holds from the system; 0 for no limit.

>>> bg.memory.set_limit(1 << 30)
>>> try:
...     x = bg.zeros((1 << 30,))
... except MemoryError:
...     print("four gigabytes are too much")
... finally:
...     bg.memory.set_limit(0)
four gigabytes are too much)");
  sub.def(
      "limit", [] { return pool_allocator().limit(); }, R"(The value of set_limit; 0 is no limit.

>>> bg.memory.limit()
0)");
  using Scope = ScopeManager<NamedScope, std::string>;
  nb::class_<Scope> scope(sub, "scope",
                          "In its scope, new tensors of this thread come from another allocator."
                          "\n\n"
                          ">>> with bg.memory.scope(\"system\"):\n"
                          "...     bg.memory.stats()[\"allocator\"]\n"
                          "'system'");
  scope.def(
      "__init__",
      [](Scope* self, const std::string& name) {
        static_cast<void>(allocator_by_name(name));  // throws for an unknown name
        new (self) Scope(name);
      },
      nb::arg("allocator"));
  def_context_manager(scope);
}

nb::dict config() {
  nb::list isas;
  for (const kernels::Isa isa : kernels::available_isas()) {
    isas.append(std::string(kernels::isa_name(isa)));
  }
  nb::dict dict;
  dict["version"] = BAREGRAD_VERSION;
  dict["compiler"] = __VERSION__;
  dict["isa"] = std::string(kernels::isa_name(kernels::active_isa()));
  dict["available_isas"] = isas;
  dict["threads"] = get_num_threads();
  dict["allocator"] = std::string(current_allocator().name());
  return dict;
}

}  // namespace

void LockReleased::come_back(PyThreadState* state) noexcept {
  g_returning.fetch_add(1);
  if (g_leaving) [[unlikely]] {
    g_returning.fetch_sub(1);
    stay_away();
    g_returning.fetch_add(1);
  }
  PyEval_RestoreThread(state);
  g_returning.fetch_sub(1);
}

void LockReleased::forget_others() noexcept {
  inside_ = own_inside_;
  waiting_ = 0;
}

void LockReleased::let_pass() noexcept {
  while (waiting_ != 0) {
    PyThreadState* const state = PyEval_SaveThread();
    usleep(100);
    come_back(state);
  }
}

/// While one exists, other threads that are about to start a call wait.
class Waiting {
 public:
  Waiting() noexcept { ++LockReleased::waiting_; }
  ~Waiting() { --LockReleased::waiting_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
};

void wait_for_other_threads(const char* who) {
  const Waiting waiting;
  constexpr auto kPatience = std::chrono::seconds(4);
  const auto begin = std::chrono::steady_clock::now();
  while (LockReleased::others_inside()) {
    if (std::chrono::steady_clock::now() - begin > kPatience) {
      throw ValueError(message(who,
                               ": other threads have been computing for four seconds, perhaps with "
                               "these tensors; call it when they are done"));
    }
    const nb::gil_scoped_release release;
    usleep(100);
  }
}

void bind_runtime(nb::module_& m) {
  // In the child of a fork the other threads are gone.
  pthread_atfork(nullptr, nullptr, [] { LockReleased::forget_others(); });
  m.attr("__version__") = BAREGRAD_VERSION;
  m.def("get_num_threads", &get_num_threads,
        R"(The number of threads that ops use, including the caller. Results do not depend on it.

>>> bg.get_num_threads() >= 1
True)");
  m.def("set_num_threads", &set_num_threads, nb::arg("count"),
        R"(Sets the number of threads that ops use: 1 to 1024.

>>> before = bg.get_num_threads()
>>> bg.set_num_threads(3)
>>> bg.get_num_threads()
3
>>> bg.set_num_threads(before))");
  m.def("config", &config, nb::sig("def config() -> dict[str, typing.Any]"),
        "Version, compiler, instruction set in use, threads and allocator.\n\n"
        ">>> bg.config()[\"version\"] == bg.__version__\n"
        "True");
  bind_memory(m);
  watch_for_exit();
  const std::string problem = parallel::thread_variable_problem();
  if (!problem.empty()) {
    const std::string text = problem + "; " + std::to_string(get_num_threads()) + " are used";
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw nb::python_error();
  }
  set_interrupt_check(&check_signals);
}

}  // namespace baregrad::python
