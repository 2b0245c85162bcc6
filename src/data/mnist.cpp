// MNIST and similar sets: their names and folders, and checks of their files.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>

#include "baregrad/data_files.h"
#include "baregrad/data_sets.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"

namespace baregrad::data {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMnistFolders[] = {"mnist", "MNIST", "MNIST/raw"};
constexpr const char* kMnistClasses[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
constexpr const char* kFashionSpellings[] = {"fashion-mnist", "fashion_mnist"};
constexpr const char* kFashionFolders[] = {"fashion-mnist", "fashion_mnist", "fashion",
                                           "FashionMNIST", "FashionMNIST/raw"};
constexpr const char* kFashionClasses[] = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                           "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};

struct DataSet {
  const char* name;
  std::span<const char* const> spellings = {};  ///< other names for it
  std::span<const char* const> folders = {};    ///< the first one with all files is used
  std::span<const char* const> classes = {};

  bool is_drawn() const noexcept { return folders.empty(); }
  bool is_called(const std::string& text) const {
    return text == name || std::find(spellings.begin(), spellings.end(), text) != spellings.end();
  }
};
/// Every set that can be chosen by name, the best first. The last one needs no files.
constexpr DataSet kDataSets[] = {
    {"mnist", {}, kMnistFolders, kMnistClasses},
    {"fashion", kFashionSpellings, kFashionFolders, kFashionClasses},
    {"digits"},
};

const DataSet& set_called(const std::string& name, const char* who) {
  std::string names;
  for (const DataSet& set : kDataSets) {
    if (set.is_called(name)) return set;
    const bool last = &set == std::end(kDataSets) - 1;
    names += message(names.empty() ? "" : last ? " and " : ", ", set.name);
  }
  throw ValueError(message(who, ": no dataset '", name, "'; there are ", names));
}

/// "train" or "t10k", "images" or "labels": the first spelling that is there.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& part,
                                  const std::string& what) {
  const std::string kind = what == "images" ? "idx3-ubyte" : "idx1-ubyte";
  for (const char* joint : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      fs::path file = folder / message(part, "-", what, joint, kind, suffix);
      std::error_code error;
      if (fs::is_regular_file(file, error)) return file;
    }
  }
  return {};
}

bool holds_all(const fs::path& folder) {
  for (const char* part : {"train", "t10k"}) {
    for (const char* what : {"images", "labels"}) {
      if (!find_file(folder, part, what)) return false;
    }
  }
  return true;
}

fs::path from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

fs::path cache_folder() {
  if (const fs::path cache = from_environment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache / "baregrad";
  }
  const fs::path home = from_environment("HOME");
  return home.empty() ? home : home / ".cache" / "baregrad";
}

/// The files of all sets have the same names. A folder named after one set does not hold another.
bool may_be_of(const DataSet& set, const fs::path& folder) {
  const fs::path plain = (folder / "").lexically_normal().parent_path();
  const std::string last = plain.filename().string();
  const std::string of = last == "raw" ? plain.parent_path().filename().string() : last;
  return std::none_of(std::begin(kDataSets), std::end(kDataSets), [&](const DataSet& other) {
    return &other != &set &&
           std::find(other.folders.begin(), other.folders.end(), of) != other.folders.end();
  });
}

std::optional<fs::path> find(const DataSet& set, const fs::path& given,
                             std::vector<fs::path>* looked) {
  const auto look = [&](const fs::path& folder) {
    if (looked != nullptr) looked->push_back(folder);
    return holds_all(folder);
  };
  const fs::path environment = from_environment("BAREGRAD_DATA");
  // A folder that the user named may itself hold the files.
  for (const fs::path& place : {given, environment, fs::path("data"), cache_folder(),
                                fs::path("../shared/data"), fs::path("/usr/share/datasets")}) {
    if (place.empty()) continue;
    const bool named = place == given || place == environment;
    if (named && may_be_of(set, place) && look(place)) return place;
    for (const char* folder : set.folders) {
      if (look(place / folder)) return place / folder;
    }
  }
  return {};
}

/// Reads a set that has files.
ImageSet load(const DataSet& chosen, const fs::path& root, bool train, const char* who) {
  std::vector<fs::path> looked;
  const std::optional<fs::path> folder = find(chosen, root, &looked);
  if (!folder) {
    std::string places;
    for (const fs::path& place : looked) places += message("\n  ", place.string());
    throw IoError(message(who,
                          ": not found; looked for train-images-idx3-ubyte[.gz] and the three "
                          "files that belong to it in",
                          places));
  }
  const std::string part = train ? "train" : "t10k";
  const fs::path images = *find_file(*folder, part, "images");
  const fs::path labels = *find_file(*folder, part, "labels");
  ImageSet set;
  set.images = read_idx(images.string());
  const Tensor numbers = read_idx(labels.string());
  if (set.images.dtype() != DType::UInt8 || set.images.ndim() != 3 || set.images.shape()[1] != 28 ||
      set.images.shape()[2] != 28) {
    throw IoError(message(who, ": '", images.string(), "' holds ", describe(set.images),
                          " instead of uint8[N,28,28]"));
  }
  if (numbers.dtype() != DType::UInt8 || numbers.ndim() != 1 ||
      numbers.shape()[0] != set.images.shape()[0]) {
    throw IoError(message(who, ": '", labels.string(), "' holds ", describe(numbers),
                          " instead of uint8[", set.images.shape()[0], "], one for each image"));
  }
  const auto* first = numbers.data<std::uint8_t>();
  const auto* wrong =
      std::find_if(first, first + numbers.numel(), [](std::uint8_t label) { return label > 9; });
  if (wrong != first + numbers.numel()) {
    throw IoError(message(who, ": '", labels.string(), "' has a label ", *wrong, " at ",
                          wrong - first, "; they go from 0 to 9"));
  }
  set.labels = numbers.to(DType::Int64);
  set.classes.assign(chosen.classes.begin(), chosen.classes.end());
  set.name = chosen.name;
  set.folder = *folder;
  return set;
}

}  // namespace

std::optional<fs::path> find_dataset(const std::string& name, const fs::path& given,
                                     std::vector<fs::path>* looked) {
  constexpr const char* kWho = "find_dataset";
  const DataSet& set = set_called(name, kWho);
  if (set.is_drawn()) throw ValueError(message(kWho, ": '", name, "' has no files, it is drawn"));
  return find(set, given, looked);
}

ImageSet mnist(const fs::path& root, bool train) {
  constexpr const char* kWho = "mnist";
  return load(set_called("mnist", kWho), root, train, kWho);
}
ImageSet fashion_mnist(const fs::path& root, bool train) {
  constexpr const char* kWho = "fashion_mnist";
  return load(set_called("fashion", kWho), root, train, kWho);
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const DataSet& set : kDataSets) names.emplace_back(set.name);
  return names;
}

std::string best_available(const fs::path& given) {
  const auto* best = std::find_if(
      std::begin(kDataSets), std::end(kDataSets),
      [&](const DataSet& set) { return set.is_drawn() || find(set, given, nullptr).has_value(); });
  return best->name;
}

ImageSet load_dataset(const std::string& name, bool train, const fs::path& given,
                      std::int64_t at_most) {
  constexpr const char* kWho = "load_dataset";
  constexpr std::int64_t kTrain = 60000;
  constexpr std::int64_t kTest = 10000;
  if (at_most < 0) throw ValueError(message(kWho, ": at most ", at_most, " images"));
  const DataSet& chosen = set_called(name == "best" ? best_available(given) : name, kWho);
  if (chosen.is_drawn()) {
    const std::int64_t all = train ? kTrain : kTest;
    return digits(at_most == 0 ? all : std::min(at_most, all), train ? 0 : 1);
  }
  ImageSet set = load(chosen, given, train, kWho);
  if (at_most > 0 && at_most < set.images.shape()[0]) {
    set.images = slice(set.images, 0, {0, at_most});
    set.labels = slice(set.labels, 0, {0, at_most});
  }
  return set;
}

}  // namespace baregrad::data
