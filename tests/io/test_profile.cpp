// The profiler's file, read back: events, nesting, counts; and the errors of start and stop.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "baregrad/baregrad.h"
#include "tests/io/temporary_folder.h"

namespace baregrad {
namespace {

using nlohmann::json;
using test::contents;
using test::TemporaryFolder;

/// The complete events recorded while `act` runs, checked for form and nesting.
template <class F>
std::vector<json> record(const F& act, json* whole = nullptr) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trace.json");
  profile::Recording recording = profile::record(path);
  act();
  recording.stop();
  const json file = json::parse(contents(path));
  std::vector<json> events;
  std::set<std::int64_t> named;
  for (const json& event : file.at("traceEvents")) {
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") named.insert(event.at("tid").get<std::int64_t>());
    } else {
      EXPECT_EQ(event.at("ph"), "X") << event;
      EXPECT_EQ(event.at("pid"), ::getpid());
      EXPECT_GE(event.at("ts").get<double>(), 0) << event;
      EXPECT_GE(event.at("dur").get<double>(), 0) << event;
      EXPECT_TRUE(named.count(event.at("tid").get<std::int64_t>())) << event;
      events.push_back(event);
    }
  }
  if (whole != nullptr) *whole = file;
  return events;
}

std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}
std::int64_t begin_of(const json& e) { return nanoseconds(e.at("ts")); }
std::int64_t end_of(const json& e) { return begin_of(e) + nanoseconds(e.at("dur")); }
bool contains(const json& outer, const json& inner) {
  return outer.at("tid") == inner.at("tid") && begin_of(outer) <= begin_of(inner) &&
         end_of(inner) <= end_of(outer);
}

/// Two events of a thread are disjoint or nested.
void expect_nesting(const std::vector<json>& events) {
  std::map<std::int64_t, std::vector<json>> open;
  for (const json& event : events) {
    std::vector<json>& stack = open[event.at("tid").get<std::int64_t>()];
    while (!stack.empty() && end_of(stack.back()) <= begin_of(event)) stack.pop_back();
    if (!stack.empty()) {
      EXPECT_TRUE(contains(stack.back(), event)) << stack.back() << "\n" << event;
    }
    stack.push_back(event);
  }
}

std::vector<json> select(const std::vector<json>& events, const std::string& category,
                         const std::string& name = "") {
  std::vector<json> found;
  std::copy_if(events.begin(), events.end(), std::back_inserter(found), [&](const json& e) {
    return e.at("cat") == category && (name.empty() || e.at("name") == name);
  });
  return found;
}

json only(const std::vector<json>& events, const std::string& category, const std::string& name) {
  const std::vector<json> found = select(events, category, name);
  EXPECT_EQ(found.size(), 1U) << category << " " << name;
  return found.size() == 1 ? found[0] : json();
}

TEST(Profile, AnOpItsKernelAndTheirArguments) {
  const Tensor a = ones({3, 4});
  const Tensor b = ones({4, 5});
  json whole;
  const auto events = record([&] { matmul(a, b); }, &whole);
  ASSERT_EQ(events.size(), 2U);
  const json op = only(events, "op", "matmul");
  const json kernel = only(events, "kernel", "matmul");
  EXPECT_TRUE(contains(op, kernel));
  for (const json& event : {op, kernel}) {
    const json& args = event.at("args");
    EXPECT_EQ(args.at("inputs"), (json{"float32[3,4]", "float32[4,5]"}));
    EXPECT_EQ(args.at("results"), json::array({"float32[3,5]"}));
    EXPECT_EQ(args.at("flops"), 2 * 3 * 4 * 5);
    EXPECT_EQ(args.at("bytes"), 4 * (12 + 20 + 15));
    EXPECT_EQ(args.at("thread"), "main");
    EXPECT_FALSE(args.contains("label"));
  }
  EXPECT_EQ(whole.at("displayTimeUnit"), "ns");
  EXPECT_EQ(whole.at("otherData").at("dropped_events"), 0);
}

TEST(Profile, OpsAreCalledAsTheUserCalledThemAndKernelsByTheTable) {
  const auto events = record([] { zeros({4}); });
  EXPECT_TRUE(contains(only(events, "op", "zeros"), only(events, "kernel", "fill")));
}

TEST(Profile, CountsFollowTheConvention) {
  const Tensor x = ones({8, 16});
  const Tensor w = ones({4, 16});
  const Tensor bias = ones({4});
  const Tensor narrow = ones({8, 1}, DType::Float64);
  const Tensor repeated = broadcast_to(narrow, {8, 16});
  const auto count = [](const auto& act, const std::string& name) {
    const json args = only(record(act), "op", name).at("args");
    return std::pair(args.at("flops").template get<int>(), args.at("bytes").template get<int>());
  };
  EXPECT_EQ(count([&] { exp(x); }, "exp"), std::pair(128, 2 * 512));
  EXPECT_EQ(count([&] { square(repeated); }, "square"), std::pair(128, 64 + 1024));
  EXPECT_EQ(count([&] { sum(x); }, "sum"), std::pair(128, 512 + 4));
  EXPECT_EQ(count([&] { argmax(x); }, "argmax"), std::pair(128, 512 + 8));
  EXPECT_EQ(count([&] { softmax(x, 1); }, "softmax"), std::pair(128, 1024));
  // layer_norm also returns a mean and a deviation per row; cross-entropy also a logsumexp.
  EXPECT_EQ(count([&] { layer_norm(x, {16}); }, "layer_norm"), std::pair(128, 1024 + 8 * 8));
  EXPECT_EQ(count([&] { cross_entropy(x, zeros({8}, DType::Int64)); }, "cross_entropy").first, 128);
  EXPECT_EQ(count([&] { linear(x, w, bias, Activation::Relu); }, "linear"),
            std::pair(32 * (2 * 16 + 2), 512 + 256 + 16 + 128));
  EXPECT_EQ(count(
                [&] {
                  addmm(ones({8, 4}), x, w.mT());
                },
                "addmm"),
            std::pair(32 * (2 * 16 + 1), 128 + 512 + 256 + 128));
  EXPECT_EQ(count([&] { x.mT(); }, "permute_dims"), std::pair(0, 0));
  EXPECT_EQ(count([&] { concat({x, x}, 0); }, "concat"), std::pair(0, 2048));
}

TEST(Profile, BackwardHoldsTheOpsOfItsRules) {
  const Tensor x = ones({5}).requires_grad_();
  const auto events = record([&] {
    Tensor y;
    {
      const autograd::Label label("block \"1\"");
      y = exp(x) * x;
    }
    sum(y).backward();
  });
  expect_nesting(events);
  const json forward = only(events, "op", "exp");
  EXPECT_EQ(forward.at("args").at("label"), "block \"1\"");
  const std::vector<json> nodes = select(events, "backward");
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].at("name"), "sum");
  EXPECT_FALSE(nodes[0].at("args").contains("label"));
  const json multiply = only(events, "backward", "multiply");
  EXPECT_EQ(multiply.at("args").at("label"), "block \"1\"");
  EXPECT_EQ(multiply.at("args").at("inputs"), json::array({"float32[5]"}));
  EXPECT_EQ(multiply.at("args").at("results"), (json{"float32[5]", "float32[5]"}));
  std::size_t inside = 0;
  for (const json& op : select(events, "op", "multiply")) {
    if (!contains(multiply, op)) continue;
    ++inside;
    EXPECT_EQ(op.at("args").at("label"), "block \"1\"") << "that of the node";
  }
  EXPECT_EQ(inside, 2U) << "one product per factor";
  for (const json& op : select(events, "op")) {
    EXPECT_FALSE(op.at("args").at("results").empty()) << op;
  }
}

TEST(Profile, EveryThreadHasItsOwnLine) {
  std::int64_t other = 0;
  const auto events = record([&] {
    exp(ones({3}));
    std::thread([&] {
      exp(ones({3}));
      other = ::gettid();
    }).join();
  });
  const auto kernels = select(events, "kernel", "exp");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].at("args").at("thread"), "main");
  EXPECT_EQ(kernels[0].at("tid"), ::gettid());
  EXPECT_EQ(kernels[1].at("args").at("thread"), "thread " + std::to_string(other));
  EXPECT_EQ(kernels[1].at("tid"), other);
}

TEST(Profile, WorkersThatHelpedAreShown) {
  const int threads = get_num_threads();
  set_num_threads(4);
  const Tensor big = ones({1 << 20});
  bool seen = false;
  // A worker may start too late to get any work: then the test repeats.
  for (int attempt = 0; attempt < 1000 && !seen; ++attempt) {
    const auto events = record([&] { exp(big); });
    expect_nesting(events);
    const json op = only(events, "op", "exp");
    int own = 0;
    for (const json& kernel : select(events, "kernel", "exp")) {
      if (kernel.at("tid") == op.at("tid")) {
        ++own;
        continue;
      }
      seen = true;
      EXPECT_EQ(kernel.at("args").at("thread").get<std::string>().rfind("worker ", 0), 0U);
      EXPECT_GE(begin_of(kernel), begin_of(op));
      EXPECT_LE(end_of(kernel), end_of(op)) << "a region ends when all have reported";
    }
    EXPECT_EQ(own, 1);
  }
  set_num_threads(threads);
  EXPECT_TRUE(seen);
}

TEST(Profile, ManyEventsFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 3000;  // more than one chunk of a buffer
  const auto events = record([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        const Tensor x = ones({2, 3});
        for (int i = 0; i < kCalls; ++i) x + x;
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  expect_nesting(events);
  EXPECT_EQ(select(events, "op", "add").size(), kThreads * kCalls);
  EXPECT_EQ(select(events, "kernel", "add").size(), kThreads * kCalls);
}

TEST(Profile, StartingAndStoppingWhileOthersWork) {
  std::atomic<bool> done{false};
  std::thread worker([&] {
    const Tensor x = ones({4}).requires_grad_();
    while (!done) sum(exp(x) * x).backward();
  });
  for (int i = 0; i < 20; ++i) expect_nesting(record([] { ones({10}) * 2.0; }));
  done = true;
  worker.join();
}

TEST(Profile, OpsThatFailAreMarked) {
  const auto events = record([] {
    EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
    exp(ones({2}));
  });
  expect_nesting(events);
  const json failed = only(events, "op", "matmul");
  EXPECT_EQ(failed.at("args").at("failed"), true);
  EXPECT_EQ(failed.at("args").at("inputs"), (json{"float32[2,3]", "float32[2,3]"}));
  EXPECT_FALSE(failed.at("args").contains("flops"));
  EXPECT_FALSE(only(events, "op", "exp").at("args").contains("failed"));
}

TEST(Profile, BesideAnomalyModeEveryEndIsSeen) {
  const auto events = record([] {
    const autograd::AnomalyScope anomaly;
    EXPECT_THROW(log(zeros({2})), GradError);
    const Tensor x = zeros({2}).requires_grad_();
    EXPECT_THROW(sum(sqrt(x)).backward(), GradError);
    exp(ones({2}));
  });
  expect_nesting(events);
  EXPECT_EQ(select(events, "op", "log").size(), 1U);
  EXPECT_EQ(only(events, "backward", "sqrt").at("args").at("failed"), true);
  const json last = only(events, "op", "exp");
  for (const json& event : events) {
    if (event != last && event.at("name") != "exp") {
      EXPECT_FALSE(contains(event, last)) << event;
    }
  }
}

TEST(Profile, ManyInputsAreCutShort) {
  const auto events = record([] { concat(std::vector<Tensor>(20, ones({1})), 0); });
  const json inputs = only(events, "op", "concat").at("args").at("inputs");
  ASSERT_EQ(inputs.size(), 9U);
  EXPECT_EQ(inputs[8], "... 12 more");
}

TEST(Profile, WhatItRefuses) {
  const TemporaryFolder folder;
  EXPECT_FALSE(profile::is_recording());
  try {
    profile::stop();
    FAIL() << "no error";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "profile::stop: nothing is being recorded");
  }
  const std::string missing = folder.file("none/trace.json");
  try {
    profile::start(missing);
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_EQ(e.what(),
              "profile::start: cannot write '" + missing + "': No such file or directory");
  }
  EXPECT_FALSE(profile::is_recording());
  profile::start(folder.file("a.json"));
  EXPECT_TRUE(profile::is_recording());
  EXPECT_THROW(profile::start(folder.file("b.json")), ValueError);
  EXPECT_THROW(profile::Recording(folder.file("b.json")), ValueError);
  profile::stop();
  EXPECT_TRUE(std::filesystem::exists(folder.file("a.json")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("b.json")));
}

TEST(Profile, AFileThatCannotBeWrittenAtTheEnd) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("gone"));
  profile::start(folder.file("gone/trace.json"));
  std::filesystem::remove(folder.file("gone"));
  EXPECT_THROW(profile::stop(), IoError);
  EXPECT_FALSE(profile::is_recording());
  profile::start(folder.file("next.json"));
  profile::stop();
  EXPECT_TRUE(json::accept(contents(folder.file("next.json"))));
}

TEST(Profile, AScopeEndsItsOwnRecordingAlone) {
  const TemporaryFolder folder;
  {
    const profile::Recording scope(folder.file("scope.json"));
    exp(ones({1}));
  }
  EXPECT_TRUE(json::accept(contents(folder.file("scope.json"))));
  {
    const profile::Recording scope(folder.file("first.json"));
    profile::stop();
    profile::start(folder.file("second.json"));
  }
  EXPECT_TRUE(profile::is_recording()) << "the second is not the scope's";
  profile::stop();
}

TEST(Fork, TheChildRecordsNothing) {
  const TemporaryFolder folder;
  profile::start(folder.file("trace.json"));
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int status = profile::is_recording() ? 1 : 0;
    exp(ones({4}));
    try {
      profile::stop();
      status = 2;
    } catch (const ValueError&) {
      static_cast<void>(0);
    }
    ::_exit(status);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(profile::is_recording());
  profile::stop();
}

}  // namespace
}  // namespace baregrad
