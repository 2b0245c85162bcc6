// MNIST and its likes: where their files may be, under which names, and what must be in them.
#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "baregrad/data_files.h"
#include "baregrad/data_sets.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"

namespace baregrad::data {

namespace {

namespace fs = std::filesystem;

struct Known {
  const char* name;
  std::vector<std::string> folders;  // the first that has the files counts
  std::vector<std::string> classes;
};

Known known(const std::string& name, const char* who) {
  if (name == "mnist") {
    return {"mnist",
            {"mnist", "MNIST", "MNIST/raw"},
            {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}};
  }
  if (name == "fashion" || name == "fashion-mnist" || name == "fashion_mnist") {
    return {"fashion",
            {"fashion-mnist", "fashion_mnist", "fashion", "FashionMNIST", "FashionMNIST/raw"},
            {"t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
             "ankle boot"}};
  }
  throw ValueError(message(who, ": no dataset '", name, "'; there are mnist, fashion and digits"));
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

/// Both sets have files of the same names: a folder called after the one does not hold the other.
bool may_be_of(const Known& set, const fs::path& folder) {
  const fs::path plain = (folder / "").lexically_normal().parent_path();
  const std::string last = plain.filename().string();
  const std::string of = last == "raw" ? plain.parent_path().filename().string() : last;
  for (const char* other : {"mnist", "fashion"}) {
    if (std::string(other) == set.name) continue;
    const std::vector<std::string>& folders = known(other, "find_dataset").folders;
    if (std::find(folders.begin(), folders.end(), of) != folders.end()) return false;
  }
  return true;
}

ImageSet load(const std::string& name, const fs::path& root, bool train, const char* who) {
  std::vector<fs::path> looked;
  const std::optional<fs::path> folder = find_dataset(name, root, &looked);
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
  set.classes = known(name, who).classes;
  set.name = known(name, who).name;
  set.folder = *folder;
  return set;
}

}  // namespace

std::optional<fs::path> find_dataset(const std::string& name, const fs::path& given,
                                     std::vector<fs::path>* looked) {
  const Known& set = known(name, "find_dataset");
  const auto look = [&](const fs::path& folder) {
    if (looked != nullptr) looked->push_back(folder);
    return holds_all(folder);
  };
  const fs::path environment = from_environment("BAREGRAD_DATA");
  // What a person named may be the folder itself.
  for (const fs::path& place : {given, environment, fs::path("data"), cache_folder(),
                                fs::path("../shared/data"), fs::path("/usr/share/datasets")}) {
    if (place.empty()) continue;
    const bool named = place == given || place == environment;
    if (named && may_be_of(set, place) && look(place)) return place;
    for (const std::string& folder : set.folders) {
      if (look(place / folder)) return place / folder;
    }
  }
  return {};
}

ImageSet mnist(const fs::path& root, bool train) { return load("mnist", root, train, "mnist"); }
ImageSet fashion_mnist(const fs::path& root, bool train) {
  return load("fashion", root, train, "fashion_mnist");
}

std::string best_available(const fs::path& given) {
  for (const char* name : {"mnist", "fashion"}) {
    if (find_dataset(name, given)) return name;
  }
  return "digits";
}

ImageSet load_dataset(const std::string& name, bool train, const fs::path& given,
                      std::int64_t at_most) {
  constexpr const char* kWho = "load_dataset";
  constexpr std::int64_t kTrain = 60000;
  constexpr std::int64_t kTest = 10000;
  if (at_most < 0) throw ValueError(message(kWho, ": at most ", at_most, " images"));
  const std::string chosen = name == "best" ? best_available(given) : name;
  if (chosen == "digits") {
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
