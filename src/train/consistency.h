// What the parts of a checkpoint must agree on. A checksum says that a file is as it was written,
// not that it was written by this program.
#pragma once

#include <cstdint>

#include "baregrad/io.h"
#include "baregrad/train.h"

namespace baregrad::train {

/// The pictures and classes of every task.
inline constexpr std::int64_t kPictureSize = 28;
inline constexpr std::int64_t kNumClasses = 10;

/// Throws IoError unless model, classes and scaling fit the config. To be called before a network
/// of that config is made: a file of a few bytes could ask for one that takes all memory.
void check_network_parts(const io::Checkpoint& checkpoint, const Config& config);

/// Where a run stands, as its parts say it one by one.
struct Standing {
  std::int64_t file_step = 0;  ///< of the checkpoint's name
  std::int64_t epoch = 0;
  std::int64_t position = 0;  ///< batches of the epoch that are done
  std::int64_t batches = 0;   ///< per epoch
  std::int64_t images = 0;    ///< to learn from
  std::int64_t seen = 0;      ///< images of this epoch so far
  std::int64_t right = 0;     ///< of those
};
/// Throws IoError unless these agree with each other, the config and the checkpoint's schedule and
/// loader.
void check_standing(const io::Checkpoint& checkpoint, const Config& config,
                    const Standing& standing);

}  // namespace baregrad::train
