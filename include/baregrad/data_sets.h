// The sets everybody starts with: MNIST and Fashion-MNIST from files, digits from no file at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad::data {

struct ImageSet {
  Tensor images;                     ///< uint8 [N,28,28]
  Tensor labels;                     ///< int64 [N], from 0 to 9
  std::vector<std::string> classes;  ///< what each label is called
  std::string name;                  ///< one of dataset_names()
  std::filesystem::path folder;      ///< where it came from; empty for digits
};

/// The folder that holds a set's four files, plain or gzipped. `name` is "mnist" or "fashion" (or
/// "fashion-mnist"). Looked at, in this order: `given`, $BAREGRAD_DATA, ./data, the user's cache
/// ($XDG_CACHE_HOME or ~/.cache, there baregrad), ../shared/data, /usr/share/datasets; in each the
/// sub-folders of the set's names, and in the first two the folder itself. `looked` takes all that
/// were tried. Throws ValueError for another name.
BAREGRAD_API std::optional<std::filesystem::path> find_dataset(
    const std::string& name, const std::filesystem::path& given = {},
    std::vector<std::filesystem::path>* looked = nullptr);

/// 60,000 images to train with, or 10,000 to test. Throws an IoError that lists the folders looked
/// at when there is none, and one that names the file for anything wrong in it.
BAREGRAD_API ImageSet mnist(const std::filesystem::path& root = {}, bool train = true);
BAREGRAD_API ImageSet fashion_mnist(const std::filesystem::path& root = {}, bool train = true);

/// Digits drawn with a pen that is never held the same way twice. Image i depends on `seed` and i
/// alone, on any machine, at any number of threads; the labels 0 to 9 are mixed.
BAREGRAD_API ImageSet digits(std::int64_t count, std::uint64_t seed = 0);

/// "mnist", "fashion", "digits": what load_dataset knows, the best first.
BAREGRAD_API std::vector<std::string> dataset_names();
/// The first of these whose files are found; "digits" needs none.
BAREGRAD_API std::string best_available(const std::filesystem::path& given = {});
/// By name; "best" asks best_available. Digits come as many as MNIST has, from one seed to train
/// with and another to test. `at_most`: only the first so many; 0: all.
BAREGRAD_API ImageSet load_dataset(const std::string& name, bool train,
                                   const std::filesystem::path& given = {},
                                   std::int64_t at_most = 0);

}  // namespace baregrad::data
