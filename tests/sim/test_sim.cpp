// The sim device: host reads fault, errors arrive late, calls keep their order, devices stay apart.
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "backends/registry.h"
#include "baregrad/baregrad.h"
#include "core/host.h"
#include "tests/message_of.h"

namespace baregrad {
namespace {

const Device kSim0{DeviceType::Sim, 0};
const Device kSim1{DeviceType::Sim, 1};
constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;
/// Memory of each device.
constexpr std::int64_t kMegabytes = 64;

/// Before main: the device is found when it is first asked for, with what is set then.
[[maybe_unused]] const bool g_environment_set = [] {
  setenv("BAREGRAD_SIM", "1", 1);
  setenv("BAREGRAD_SIM_DELAY_US", "200", 0);
  setenv("BAREGRAD_SIM_MEMORY_MB", std::to_string(kMegabytes).c_str(), 1);
  return true;
}();

/// 0, 1, 2, ... on a device.
Tensor counting(std::int64_t n, Device device, DType dtype = float32) {
  return arange(Scalar(n), dtype, device);
}

std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

using Floats = std::vector<float>;

// ---- Memory

TEST(SimDeathTest, TheHostCannotReadItsMemory) {
  const Tensor x = counting(8, kSim0);
  const volatile char* first = static_cast<const char*>(x.data_ptr());
  EXPECT_DEATH(static_cast<void>(*first), "");
}

TEST(SimDeathTest, TheHostCannotWriteItsMemory) {
  const Tensor x = counting(8, kSim1);
  volatile char* first = static_cast<char*>(x.data_ptr());
  EXPECT_DEATH(*first = 1, "");
}

TEST(Sim, TypedPointersAreRefused) {
  EXPECT_EQ(message_of<ValueError>([] { counting(8, kSim0).data<float>(); }),
            "data: float32[8] is on sim:0; take cpu() first");
}

TEST(Sim, OutOfMemoryNamesTheShape) {
  const std::string text = message_of<OutOfMemory>([] {
    empty({kMegabytes, kMegabyte}, float32, kSim0);
  });
  EXPECT_NE(text.find("empty: no memory for float32[64,1048576]: sim:0: no room"),
            std::string::npos)
      << text;
}

TEST(Sim, ReleasedBlocksAreJoinedAndUsedAgain) {
  for (int round = 0; round < 4; ++round) {
    // Three blocks side by side, then one that needs the room of all of them.
    {
      std::vector<Tensor> parts;
      for (int k = 0; k < 3; ++k) parts.push_back(full({20, kMegabyte}, k, int8, kSim0));
      EXPECT_EQ(parts[1].index({0, 0}).item<int>(), 1);
    }
    const Tensor all = full({60, kMegabyte}, round, int8, kSim0);
    EXPECT_EQ(all.index({59, -1}).item<int>(), round);
  }
}

TEST(Sim, ABlockInUseByAWaitingCallIsNotGivenAway) {
  const Tensor one = ones({kMegabyte}, int8, kSim0);
  for (int round = 0; round < 8; ++round) {
    // The operand is released while the sum waits in the queue; the next block wants its place.
    const Tensor total = sum(full({kMegabyte}, 3, int8, kSim0), {}, false, int64);
    const Tensor other = full({kMegabyte}, 5, int8, kSim0);
    EXPECT_EQ(total.item<std::int64_t>(), 3 * kMegabyte);
  }
}

// ---- Results

TEST(Sim, ElementsComeBackFromEveryView) {
  const Tensor x = reshape(counting(12, kSim0), {3, 4});
  EXPECT_EQ(x.device(), kSim0);
  EXPECT_EQ(values(flip(x[1])), (Floats{7, 6, 5, 4}));
  EXPECT_EQ(values(x.mT()[2]), (Floats{2, 6, 10}));
  EXPECT_EQ(values(x[1][2].expand({3})), (Floats{6, 6, 6}));
  EXPECT_EQ(x.index({2, 3}).item<float>(), 11);
  EXPECT_EQ(to_string(x[0]), to_string(x[0].cpu()));
  EXPECT_EQ(x.mT().cpu().device(), Device());
  EXPECT_EQ(values(x.mT().cpu()), values(x.mT()));
}

TEST(Sim, CallsTakeEffectInTheirOrder) {
  const Tensor x = zeros({1000}, float64, kSim0);
  double expected = 0;
  for (int k = 1; k <= 200; ++k) {
    add_(x, k);
    multiply_(x, k % 2 == 0 ? 0.5 : 1.5);
    expected = (expected + k) * (k % 2 == 0 ? 0.5 : 1.5);
  }
  EXPECT_EQ(x.to_vector<double>(), std::vector<double>(1000, expected));
}

TEST(Sim, BytesOfTheHostAreReadAtTheCall) {
  const Tensor x = empty({4}, float32, kSim0);
  Floats host{1, 2, 3, 4};
  write_from_host(x, host.data(), sizeof(float) * 4);
  std::fill(host.begin(), host.end(), -1.0F);
  EXPECT_EQ(values(x), (Floats{1, 2, 3, 4}));
}

TEST(Sim, TwoThreadsAtOneDevice) {
  const auto work = [](std::int64_t start, std::int64_t* sum_of_it) {
    Tensor x = zeros({64}, int64, kSim0);
    for (std::int64_t k = 0; k < 100; ++k) x = x + (start + k);
    *sum_of_it = sum(x).item<std::int64_t>();
  };
  std::int64_t totals[2] = {};
  std::thread other(work, 1000, &totals[1]);
  work(0, &totals[0]);
  other.join();
  EXPECT_EQ(totals[0], 64 * 4950);
  EXPECT_EQ(totals[1], 64 * (4950 + 100 * 1000));
}

TEST(Sim, RandomNumbersAreThoseOfTheCpu) {
  Generator a(7);
  Generator b(7);
  EXPECT_EQ(values(rand({100}, float32, &a, kSim0)), values(rand({100}, float32, &b)));
  EXPECT_EQ(values(randn({100}, float32, &a, kSim0)), values(randn({100}, float32, &b)));
}

TEST(Sim, TheClockRuns) {
  const std::uint64_t before = backends::time_stamp(kSim0);
  const Tensor x = counting(1000, kSim0) + 1;
  EXPECT_GT(backends::time_stamp(kSim0), before);
}

// ---- Errors

/// Positions of which one is out of range, which only who reads them can know.
Tensor bad_positions() { return Tensor::of<std::int64_t>({0, 99}).to(kSim0); }

TEST(Sim, ErrorsOfValuesArriveLateAndOnce) {
  const Tensor x = counting(4, kSim0);
  const Tensor wrong = gather(x, 0, bad_positions());
  const Tensor fine = x + 1;
  const std::string text = message_of<IndexError>([] { synchronize(kSim0); });
  EXPECT_EQ(text.find("gather: "), 0U) << text;
  EXPECT_NE(text.find("sim:0, launch "), std::string::npos) << text;
  EXPECT_NE(text.find("reported late"), std::string::npos) << text;
  EXPECT_NE(text.find(" gather add)"), std::string::npos) << text;
  EXPECT_NO_THROW(synchronize(kSim0));
  EXPECT_EQ(values(fine), (Floats{1, 2, 3, 4}));
}

TEST(Sim, ACopyToTheHostReportsWhatWentWrongBefore) {
  const Tensor x = counting(4, kSim0);
  const Tensor wrong = gather(x, 0, bad_positions());
  EXPECT_THROW(values(x), IndexError);
  EXPECT_EQ(values(x), (Floats{0, 1, 2, 3}));
}

TEST(Sim, OfTwoErrorsTheFirstIsReported) {
  const Tensor x = counting(4, kSim0);
  const Tensor wrong = gather(x, 0, bad_positions());
  const Tensor later = floor_divide(astype(x, int64), zeros({4}, int64, kSim0));
  EXPECT_THROW(synchronize(kSim0), IndexError);
  EXPECT_NO_THROW(synchronize(kSim0));
}

TEST(Sim, TheOtherDeviceKnowsNothingOfIt) {
  const Tensor wrong = gather(counting(4, kSim0), 0, bad_positions());
  EXPECT_EQ(values(counting(3, kSim1)), (Floats{0, 1, 2}));
  EXPECT_NO_THROW(synchronize(kSim1));
  EXPECT_THROW(synchronize(kSim0), IndexError);
}

TEST(Sim, ShapesAreCheckedAtOnce) {
  EXPECT_THROW(counting(4, kSim0) + counting(3, kSim0), ShapeError);
  EXPECT_NO_THROW(synchronize(kSim0));
}

// ---- Several devices

TEST(Sim, TensorsOfTwoDevicesAreRefused) {
  const Tensor here = counting(4, kSim0);
  const Tensor there = counting(4, kSim1);
  const Tensor host = arange(4, float32);
  for (const Tensor& other : {there, host}) {
    const std::string text = message_of<ValueError>([&] { add(here, other); });
    EXPECT_NE(text.find("add: "), std::string::npos) << text;
    EXPECT_NE(text.find("sim:0"), std::string::npos) << text;
    EXPECT_NE(text.find(to_string(other.device())), std::string::npos) << text;
  }
  EXPECT_THROW(add_(here, there), ValueError);
  EXPECT_THROW(add_(host, there), ValueError);
  EXPECT_THROW(matmul(here, there), ValueError);
}

TEST(Sim, NumbersOfTheCpuJoin) {
  const Tensor x = counting(3, kSim1);
  const Tensor two = Tensor::scalar(2.0, float32);
  EXPECT_EQ(values(x * two), (Floats{0, 2, 4}));
  EXPECT_EQ(values(two - x), (Floats{2, 1, 0}));
  EXPECT_EQ((two - x).device(), kSim1);
  EXPECT_EQ(values(x + 1), (Floats{1, 2, 3}));
}

TEST(Sim, ANumberOfTheCpuGetsItsGradientThere) {
  const Tensor x = counting(3, kSim0).requires_grad_();
  const Tensor two = Tensor::scalar(2.0, float32).requires_grad_();
  sum(x * two).backward();
  EXPECT_EQ(two.grad().device(), Device());
  EXPECT_EQ(two.grad().item<float>(), 3);
  EXPECT_EQ(values(x.grad()), (Floats{2, 2, 2}));
}

TEST(Sim, CopiesHaveGradients) {
  const Tensor x = counting(4, kSim0).requires_grad_();
  const Tensor across = flip(x * 2).to(kSim1);
  EXPECT_EQ(across.device(), kSim1);
  const Tensor weights = counting(4, kSim1);
  const Tensor home = (across * weights).cpu();
  EXPECT_EQ(home.device(), Device());
  sum(home).backward();
  EXPECT_EQ(x.grad().device(), kSim0);
  EXPECT_EQ(values(x.grad()), (Floats{6, 4, 2, 0}));
}

TEST(Sim, ManyCopiesBothWays) {
  Tensor x = counting(100, kSim0, int64);
  Tensor y = counting(100, kSim1, int64);
  for (int k = 0; k < 50; ++k) {
    const Tensor from_y = y.to(kSim0);
    const Tensor from_x = x.to(kSim1);
    x = x + from_y;
    y = y - from_x;
  }
  std::vector<std::int64_t> a(100);
  std::iota(a.begin(), a.end(), 0);
  std::vector<std::int64_t> b = a;
  for (int k = 0; k < 50; ++k) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::int64_t old = a[i];
      a[i] = old + b[i];
      b[i] -= old;
    }
  }
  EXPECT_EQ(x.to_vector<std::int64_t>(), a);
  EXPECT_EQ(y.to_vector<std::int64_t>(), b);
}

TEST(Sim, CopyIntoATensorOfAnotherDevice) {
  const Tensor x = zeros({4}, float32, kSim1);
  copy_(x, counting(4, kSim0));
  EXPECT_EQ(values(x), (Floats{0, 1, 2, 3}));
  const Tensor host = zeros({4});
  copy_(host, x);
  EXPECT_EQ(values(host), (Floats{0, 1, 2, 3}));
}

// ---- The default

TEST(Sim, TheDefaultDeviceIsThatOfTheInnermostScope) {
  EXPECT_EQ(zeros({1}).device(), default_device());
  {
    const DefaultDeviceScope outer(kSim1);
    EXPECT_EQ(zeros({1}).device(), kSim1);
    EXPECT_EQ(Tensor::of<float>({1, 2}).device(), kSim1);
    {
      const DefaultDeviceScope inner(kSim0);
      EXPECT_EQ(arange(3).device(), kSim0);
      EXPECT_EQ(rand({3}).device(), kSim0);
      EXPECT_EQ(eye(2, {}, 0, float32, Device()).device(), Device());
      std::thread([] { EXPECT_EQ(zeros({1}).device(), Device()); }).join();
    }
    EXPECT_EQ(ones({1}).device(), kSim1);
    EXPECT_EQ(ones_like(zeros({1}, float32, kSim0)).device(), kSim0);
  }
  EXPECT_EQ(zeros({1}).device(), Device());
}

TEST(Sim, ADeviceThatIsNotThereIsRefused) {
  EXPECT_EQ(device_count(DeviceType::Sim), 2);
  EXPECT_EQ(message_of<ValueError>([] { zeros({1}, float32, Device(DeviceType::Sim, 2)); }),
            "allocate: there is no device sim:2; 2 of sim are there");
  EXPECT_THROW(DefaultDeviceScope(Device(DeviceType::Sim, 7)), ValueError);
  EXPECT_EQ(device_info(kSim1).find("sim:1: a pretend accelerator"), 0U) << device_info(kSim1);
}

// ---- Finding it

/// Runs in a new process of this program, in which nothing has asked for the device yet.
class SimFoundDeathTest : public ::testing::Test {
 protected:
  SimFoundDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  static void tell_and_exit() {
    const std::string text = device_info(kSim0);
    std::fputs(text.c_str(), stderr);
    std::exit(is_available(DeviceType::Sim) ? 1 : 0);
  }
};

TEST_F(SimFoundDeathTest, NotWithoutBeingAskedFor) {
  EXPECT_EXIT(
      {
        unsetenv("BAREGRAD_SIM");
        tell_and_exit();
      },
      ::testing::ExitedWithCode(0), "sim:0 is not available: .*BAREGRAD_SIM=1");
}

TEST_F(SimFoundDeathTest, ALibraryThatIsNotThereIsNamed) {
  EXPECT_EXIT(
      {
        setenv("BAREGRAD_SIM_LIBRARY", "no/such/library.so", 1);
        tell_and_exit();
      },
      ::testing::ExitedWithCode(0), "sim:0 is not available: .*cannot open no/such/library.so");
}

TEST(Sim, BackendsOfAnotherInterfaceAreRefused) {
  baregrad_backend other{};
  other.name = "other";
  other.abi = BAREGRAD_BACKEND_ABI + 1;
  other.device_type = static_cast<std::uint32_t>(DeviceType::Cuda);
  EXPECT_THROW(backends::add_backend(other), ValueError);
  other.abi = BAREGRAD_BACKEND_ABI;
  other.device_type = 200;
  EXPECT_THROW(backends::add_backend(other), ValueError);
  other.device_type = static_cast<std::uint32_t>(DeviceType::Sim);
  ASSERT_TRUE(is_available(DeviceType::Sim));
  EXPECT_EQ(message_of<ValueError>([&] { backends::add_backend(other); }),
            "backend other: devices of type sim have a backend already");
  EXPECT_THROW(backends::add_backend_library("no/such/library.so"), IoError);
}

// ---- Forks

TEST(Fork, AChildIsToldThatTheDeviceStayedBehind) {
  Tensor x = counting(1000, kSim0);
  for (int k = 0; k < 20; ++k) x = x + 1;  // the queue is not empty when the process forks
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    try {
      values(x + 1);
    } catch (const Error& e) {
      { const Tensor gone = std::move(x); }  // releasing does not hang either
      _exit(std::strstr(e.what(), "forked") != nullptr ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(x[0].item<float>(), 20);
}

}  // namespace
}  // namespace baregrad
