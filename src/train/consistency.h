// Consistency checks between the parts of a checkpoint. A checksum shows that a file is unchanged,
// not that this program wrote it.
#pragma once

#include <cstdint>

#include "baregrad/io.h"
#include "baregrad/train.h"

namespace baregrad::train {

/// The size of the pictures and the number of classes, the same for all tasks.
inline constexpr std::int64_t kPictureSize = 28;
inline constexpr std::int64_t kNumClasses = 10;

/// Throws IoError unless model, classes and scaling fit the config. Call it before the network of
/// the config is allocated: a file of a few bytes could describe one that takes all memory.
void check_network_parts(const io::Checkpoint& checkpoint, const Config& config);

/// The progress of a run, as the parts of its checkpoint state it.
struct Standing {
  std::int64_t file_step = 0;  ///< the step in the checkpoint's name
  std::int64_t epoch = 0;
  std::int64_t position = 0;  ///< completed batches of the epoch
  std::int64_t batches = 0;   ///< per epoch
  std::int64_t images = 0;    ///< training images
  std::int64_t seen = 0;      ///< images of this epoch that were used
  std::int64_t right = 0;     ///< those of them that were classified correctly
};
/// Throws IoError unless these values are consistent with each other, with the config, and with the
/// checkpoint's schedule and loader.
void check_standing(const io::Checkpoint& checkpoint, const Config& config,
                    const Standing& standing);

}  // namespace baregrad::train
