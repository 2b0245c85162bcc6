// Checks across the parts of a checkpoint.
#include "train/consistency.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "baregrad/error.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/printable.h"
#include "train/parts.h"

namespace baregrad::train {

namespace {

[[noreturn]] void misfit(const std::string& what) {
  throw IoError(message("train: the parts of the checkpoint do not fit each other: ", what));
}

/// The number of parameters of a config's network. It cannot overflow: sizes are at most 10^6
/// (Config::check), and the header of a checkpoint limits the number of layers.
std::int64_t network_numel(const Config& config) {
  const auto layer = [](std::int64_t in, std::int64_t out) { return in * out + out; };
  if (config.model == "cnn") {
    constexpr std::int64_t kFirst = 32;
    constexpr std::int64_t kSecond = 64;
    constexpr std::int64_t kWindow = 9;
    constexpr std::int64_t kHidden = 128;
    constexpr std::int64_t kLeft = kSecond * (kPictureSize / 4) * (kPictureSize / 4);
    return layer(kWindow, kFirst) + layer(kFirst * kWindow, kSecond) + layer(kLeft, kHidden) +
           layer(kHidden, kNumClasses);
  }
  std::int64_t in = kPictureSize * kPictureSize;
  std::int64_t total = 0;
  for (const std::int64_t out : config.hidden) {
    total += layer(in, out);
    in = out;
  }
  return total + layer(in, kNumClasses);
}

void check_classes(const State& part) {
  const std::vector<std::string> names = load_names(part);
  if (static_cast<std::int64_t>(names.size()) != kNumClasses ||
      part.values.size() != names.size() || !part.tensors.empty()) {
    misfit(message("it names ", names.size(), " classes (of ", part.values.size(),
                   " values), its network tells ", kNumClasses, " apart"));
  }
  const std::set<std::string> different(names.begin(), names.end());
  if (different.size() != names.size()) misfit("two classes have the same name");
}

void check_scaling(const State& part) {
  const data::Scaling scaling = load_scaling(part);
  if (std::isfinite(scaling.mean) && std::isfinite(scaling.std) && scaling.std > 0) return;
  misfit(message("pixels cannot be scaled by mean ", number_text(static_cast<double>(scaling.mean)),
                 " and deviation ", number_text(static_cast<double>(scaling.std))));
}

}  // namespace

void check_network_parts(const io::Checkpoint& checkpoint, const Config& config) {
  check_classes(part_of(checkpoint, "classes"));
  check_scaling(part_of(checkpoint, "scaling"));
  std::int64_t found = 0;
  for (const NamedTensor& entry : part_of(checkpoint, "model").tensors) {
    found += entry.tensor.numel();
  }
  const std::int64_t needed = network_numel(config);
  if (found == needed) return;
  misfit(message("its tensors hold ", found, " numbers, the ", config.model, " of its config ",
                 needed));
}

void check_standing(const io::Checkpoint& checkpoint, const Config& config,
                    const Standing& standing) {
  if (standing.epoch > config.epochs) {
    misfit(message("it is in epoch ", standing.epoch, " of ", config.epochs));
  }
  const std::int64_t step = standing.epoch * standing.batches + standing.position;
  if (step != standing.file_step) {
    misfit(message("its name says step ", standing.file_step, ", its loader ", step));
  }
  const auto schedule = number<std::int64_t>(part_of(checkpoint, "schedule"), "step");
  if (schedule != step) misfit(message("its schedule is at step ", schedule, ", not at ", step));
  const auto seed = number<std::uint64_t>(part_of(checkpoint, "loader"), "seed");
  if (seed != config.seed) {
    misfit(message("its loader has seed ", seed, ", its config ", config.seed));
  }
  // position <= batches, and batches is images / batch, rounded up.
  const std::int64_t seen =
      standing.position == standing.batches ? standing.images : standing.position * config.batch;
  if (standing.seen != seen || standing.right < 0 || standing.right > seen) {
    misfit(message("it has seen ", standing.seen, " images of this epoch, ", standing.right,
                   " of them right, where ", seen, " are in its batches"));
  }
}

}  // namespace baregrad::train
