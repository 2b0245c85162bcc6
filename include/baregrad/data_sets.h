// Well-known data sets: MNIST and Fashion-MNIST from files, and generated digits.
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
  std::vector<std::string> classes;  ///< the name of each label
  std::string name;                  ///< one of dataset_names()
  std::filesystem::path folder;      ///< where it was found; empty for digits
};

/// The folder that holds the four files of a set, plain or gzipped. `name` is "mnist" or "fashion"
/// (or "fashion-mnist"). The search order is: `given`, $BAREGRAD_DATA, ./data, baregrad/ in the
/// user's cache
/// ($XDG_CACHE_HOME or ~/.cache), ../shared/data, /usr/share/datasets. In each of them the
/// sub-folders with the set's names are searched, in the first two also the folder itself. `looked`
/// receives all searched folders. Throws ValueError for another name.
BAREGRAD_API std::optional<std::filesystem::path> find_dataset(
    const std::string& name, const std::filesystem::path& given = {},
    std::vector<std::filesystem::path>* looked = nullptr);

/// 60,000 training images or 10,000 test images. Throws an IoError that lists the searched folders
/// if the files are not found, and one that names the file if it is not valid.
BAREGRAD_API ImageSet mnist(const std::filesystem::path& root = {}, bool train = true);
BAREGRAD_API ImageSet fashion_mnist(const std::filesystem::path& root = {}, bool train = true);

/// Generated handwritten digits, with random distortions. Image i depends only on `seed` and i: it
/// is the same on every machine and for any number of threads. The labels 0 to 9 are shuffled.
BAREGRAD_API ImageSet digits(std::int64_t count, std::uint64_t seed = 0);

/// The names that load_dataset accepts, best first: "mnist", "fashion", "digits".
BAREGRAD_API std::vector<std::string> dataset_names();
/// The first of them whose files are found. "digits" needs no files.
BAREGRAD_API std::string best_available(const std::filesystem::path& given = {});
/// A data set by name; "best" stands for best_available. There are as many digits as MNIST has
/// images, with different seeds for training and test. `at_most`: the number of images, from the
/// first; 0: all.
BAREGRAD_API ImageSet load_dataset(const std::string& name, bool train,
                                   const std::filesystem::path& given = {},
                                   std::int64_t at_most = 0);

}  // namespace baregrad::data
