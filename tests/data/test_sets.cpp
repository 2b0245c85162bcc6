// MNIST and similar sets, the folders searched for them, and generated digits.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include <unistd.h>

#include "baregrad/data_sets.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "tests/data/support.h"
#include "tests/io/temporary_folder.h"

namespace baregrad {
namespace {

namespace fs = std::filesystem;
using data::ImageSet;
using namespace test;

/// Four files of three images each.
void write_set(const fs::path& folder, const std::string& joint, bool packed, std::uint8_t mark,
               const ByteVector& labels = {3, 1, 9}) {
  fs::create_directories(folder);
  for (const char* part : {"train", "t10k"}) {
    const auto put = [&](const std::string& name, const ByteVector& bytes) {
      write_file((folder / (name + (packed ? ".gz" : ""))).string(), packed ? gzip(bytes) : bytes);
    };
    ByteVector pixels(3 * 784, mark);
    pixels[0] = part == std::string("train") ? 1 : 2;
    put(std::string(part) + "-images" + joint + "idx3-ubyte", idx(8, {3, 28, 28}, pixels));
    put(std::string(part) + "-labels" + joint + "idx1-ubyte",
        idx(8, {static_cast<std::uint32_t>(labels.size())}, labels));
  }
}

/// Sets an environment variable for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

/// A process in an empty folder with an empty home.
class Sets : public ::testing::Test {
 protected:
  Sets()
      : before_(fs::current_path()),
        data_("BAREGRAD_DATA", ""),
        cache_("XDG_CACHE_HOME", ""),
        home_("HOME", folder_.file("home")) {
    fs::create_directories(folder_.file("work"));
    fs::current_path(folder_.file("work"));
  }
  ~Sets() override { fs::current_path(before_); }
  fs::path at(const std::string& name) const { return folder_.file(name); }
  static int mark_of(const ImageSet& set) { return set.images.data<std::uint8_t>()[1]; }

  const TemporaryFolder folder_;

 private:
  const fs::path before_;
  const Variable data_, cache_, home_;
};

TEST_F(Sets, AreReadUnderEverySpelling) {
  int number = 0;
  for (const char* joint : {"-", "."}) {
    for (const bool packed : {false, true}) {
      const fs::path root = at(std::to_string(number));
      write_set(root / "mnist", joint, packed, static_cast<std::uint8_t>(100 + number));
      const ImageSet train = data::mnist(root, true);
      EXPECT_EQ(train.images.shape(), Dims({3, 28, 28}));
      EXPECT_EQ(train.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{3, 1, 9}));
      EXPECT_EQ(train.images.data<std::uint8_t>()[0], 1);
      EXPECT_EQ(mark_of(train), 100 + number);
      EXPECT_EQ(train.folder, root / "mnist");
      EXPECT_EQ(train.name, "mnist");
      EXPECT_EQ(train.classes.size(), 10U);
      EXPECT_EQ(data::mnist(root, false).images.data<std::uint8_t>()[0], 2);
      ++number;
    }
  }
}

TEST_F(Sets, AreLookedForInOrder) {
  const fs::path shared = at("shared") / "data" / "mnist";
  write_set(shared, "-", false, 15);
  EXPECT_EQ(mark_of(data::mnist()), 15);
  write_set(at("home") / ".cache" / "baregrad" / "mnist", "-", false, 14);
  EXPECT_EQ(mark_of(data::mnist()), 14);
  const Variable cache("XDG_CACHE_HOME", at("cache").string());
  EXPECT_EQ(mark_of(data::mnist()), 15);
  write_set(at("cache") / "baregrad" / "MNIST" / "raw", "-", false, 13);
  EXPECT_EQ(mark_of(data::mnist()), 13);
  write_set(at("work") / "data" / "mnist", "-", false, 12);
  EXPECT_EQ(mark_of(data::mnist()), 12);
  const Variable environment("BAREGRAD_DATA", at("environment").string());
  EXPECT_EQ(mark_of(data::mnist()), 12);
  write_set(at("environment"), "-", false, 11);
  EXPECT_EQ(mark_of(data::mnist()), 11);
  write_set(at("given") / "mnist", "-", false, 10);
  EXPECT_EQ(mark_of(data::mnist(at("given"))), 10);
  EXPECT_EQ(mark_of(data::mnist(at("given") / "mnist")), 10);
  EXPECT_EQ(mark_of(data::mnist()), 11);
}

TEST_F(Sets, OneIsNotTakenForTheOther) {
  write_set(at("d") / "fashion-mnist", "-", false, 7);
  for (const fs::path& given :
       {at("d"), at("d") / "fashion-mnist", at("d") / "fashion-mnist" / ""}) {
    EXPECT_EQ(data::find_dataset("mnist", given), std::nullopt) << given;
    EXPECT_EQ(mark_of(data::fashion_mnist(given)), 7);
  }
  EXPECT_EQ(data::best_available(at("d")), "fashion");
  write_set(at("d") / "mnist", "-", true, 8);
  EXPECT_EQ(data::best_available(at("d")), "mnist");
  EXPECT_EQ(mark_of(data::load_dataset("best", true, at("d"))), 8);
  EXPECT_EQ(mark_of(data::load_dataset("fashion-mnist", false, at("d"))), 7);
  EXPECT_EQ(data::load_dataset("fashion", false, at("d")).classes[9], "ankle boot");
}

TEST_F(Sets, AFolderWithoutAllFourFilesIsPassedOver) {
  write_set(at("a") / "mnist", "-", false, 5);
  fs::remove(at("a") / "mnist" / "t10k-labels-idx1-ubyte");
  std::vector<fs::path> looked;
  EXPECT_EQ(data::find_dataset("mnist", at("a"), &looked), std::nullopt);
  EXPECT_NE(std::find(looked.begin(), looked.end(), at("a") / "mnist"), looked.end());
  EXPECT_NE(std::find(looked.begin(), looked.end(), fs::path("data/mnist")), looked.end());
  EXPECT_NE(std::find(looked.begin(), looked.end(), fs::path("/usr/share/datasets/mnist")),
            looked.end());
  expect_error<IoError>([&] { data::mnist(at("a")); }, "mnist: not found; looked for");
  expect_error<IoError>([&] { data::mnist(at("a")); }, (at("a") / "mnist").string());
  expect_error<ValueError>([] { data::find_dataset("cifar"); },
                           "find_dataset: no dataset 'cifar'; there are mnist, fashion and digits");
  expect_error<ValueError>([] { data::find_dataset("digits"); },
                           "find_dataset: 'digits' has no files, it is drawn");
  expect_error<ValueError>([] { data::load_dataset("cifar", true); },
                           "no dataset 'cifar'; there are mnist, fashion and digits");
}

TEST_F(Sets, FilesThatDoNotFitEachOtherAreNamed) {
  write_set(at("a") / "mnist", "-", false, 5, {1, 2});
  expect_error<IoError>([&] { data::mnist(at("a")); }, "holds uint8[2] instead of uint8[3]");
  write_set(at("b") / "mnist", "-", false, 5, {1, 10, 2});
  expect_error<IoError>([&] { data::mnist(at("b")); }, "has a label 10 at 1; they go from 0 to 9");
  write_set(at("c") / "mnist", "-", false, 5);
  write_file((at("c") / "mnist" / "train-images-idx3-ubyte").string(),
             idx(8, {3, 2, 2}, ByteVector(12)));
  expect_error<IoError>([&] { data::mnist(at("c")); },
                        "holds uint8[3,2,2] instead of uint8[N,28,28]");
  write_file((at("c") / "mnist" / "train-images-idx3-ubyte").string(), {0, 0});
  expect_error<IoError>([&] { data::mnist(at("c")); }, "train-images-idx3-ubyte': ends early");
}

// ---- The real sets, where they are installed

/// Also found beside the checkout, from any working folder.
const fs::path kShared = BAREGRAD_TEST_DIR "/../../shared/data";

void expect_real(const ImageSet& train, const ImageSet& test) {
  EXPECT_EQ(train.images.shape(), Dims({60000, 28, 28}));
  EXPECT_EQ(test.images.shape(), Dims({10000, 28, 28}));
  EXPECT_EQ(train.labels.shape(), Dims({60000}));
  EXPECT_EQ(test.labels.shape(), Dims({10000}));
}

TEST(RealSets, NO_TSAN_Mnist) {
  if (!data::find_dataset("mnist", kShared)) {
    GTEST_SKIP() << "MNIST is not installed: set BAREGRAD_DATA to the folder that has mnist/";
  }
  const ImageSet train = data::mnist(kShared);
  expect_real(train, data::mnist(kShared, false));
  // The published first labels, and the usual mean for normalisation, 0.1307.
  const auto labels = train.labels.to_vector<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(labels.begin(), labels.begin() + 10),
            (std::vector<std::int64_t>{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}));
  EXPECT_NEAR(mean(train.images.to(DType::Float32)).item<double>() / 255, 0.1307, 5e-5);
}

TEST(RealSets, NO_TSAN_FashionMnist) {
  if (!data::find_dataset("fashion", kShared)) {
    GTEST_SKIP() << "Fashion-MNIST is not installed: Debian has it as dataset-fashion-mnist";
  }
  const ImageSet train = data::fashion_mnist(kShared);
  expect_real(train, data::fashion_mnist(kShared, false));
  EXPECT_NEAR(mean(train.images.to(DType::Float32)).item<double>() / 255, 0.2860, 5e-5);
}

// ---- Digits

std::uint64_t hash_of(const Tensor& t) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  const auto* p = static_cast<const std::uint8_t*>(t.data_ptr());
  for (std::size_t i = 0; i < t.nbytes(); ++i) hash = (hash ^ p[i]) * 1099511628211U;
  return hash;
}

TEST(Digits, AreTheSameAtAnyNumberOfThreadsAndOnAnyMachine) {
  const int threads = get_num_threads();
  for (const int count : {1, 2, 4}) {
    set_num_threads(count);
    const ImageSet set = data::digits(500, 42);
    EXPECT_EQ(hash_of(set.images), 11831435556016243955U) << count;
    EXPECT_EQ(hash_of(set.labels), 9192972377523853706U) << count;
  }
  set_num_threads(threads);
}

TEST(Digits, AnImageDependsOnItsSeedAndNumberAlone) {
  const ImageSet many = data::digits(50, 7);
  const ImageSet few = data::digits(20, 7);
  EXPECT_TRUE(std::equal(few.images.data<std::uint8_t>(),
                         few.images.data<std::uint8_t>() + 20 * 784,
                         many.images.data<std::uint8_t>()));
  const ImageSet other = data::digits(50, 8);
  EXPECT_NE(hash_of(many.images), hash_of(other.images));
  EXPECT_NE(hash_of(many.labels), hash_of(other.labels));
  EXPECT_EQ(data::digits(0).images.shape(), Dims({0, 28, 28}));
  expect_error<ValueError>([] { data::digits(-1); }, "digits: cannot draw -1 images");
}

TEST(Digits, HaveInkInTheMiddleAndAllLabelsAboutAsOften) {
  const ImageSet set = data::digits(5000, 1);
  std::vector<int> counts(10);
  for (const std::int64_t label : set.labels.to_vector<std::int64_t>()) {
    ASSERT_GE(label, 0);
    ASSERT_LT(label, 10);
    ++counts[static_cast<std::size_t>(label)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 500, 100);
  std::set<std::vector<std::uint8_t>> distinct;
  const auto* p = set.images.data<std::uint8_t>();
  for (int i = 0; i < 5000; ++i, p += 784) {
    const auto ink = std::count_if(p, p + 784, [](std::uint8_t v) { return v > 127; });
    EXPECT_GT(ink, 12) << i;
    EXPECT_LT(ink, 330) << i;
    std::vector<std::uint8_t> image(p, p + 784);
    int border = 0;
    for (int k = 0; k < 28; ++k) {
      for (const int at : {k, 27 * 28 + k, 28 * k, 28 * k + 27}) {
        border += image[static_cast<std::size_t>(at)] > 127 ? 1 : 0;
      }
    }
    EXPECT_LT(border, 20) << i;
    distinct.insert(std::move(image));
  }
  EXPECT_EQ(distinct.size(), 5000U);
}

}  // namespace
}  // namespace baregrad
