// Reading and writing tensors: safetensors, npy, npz, checkpoints, and logs of training runs.
//
// Files are written whole or not at all (temporary file, fsync, rename, fsync of the folder).
// Readers check every declared size against the length of the file before they allocate. They never
// open a path that is stored in a file. An invalid file is an IoError that says what is wrong.
//
// Names (of tensors, metadata, parts, metrics, tags) are UTF-8 without NUL characters. Writers
// throw ValueError for other names, and for paths with a NUL; readers throw IoError.
//
// Error messages start with the name of the function that was called.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "baregrad/export.h"
#include "baregrad/state.h"
#include "baregrad/tensor.h"

namespace baregrad::io {

using Bytes = std::vector<std::uint8_t>;

/// How tensors are loaded from a file.
struct LoadOptions {
  /// false: every tensor is a copy with its own memory. Later changes of the file have no effect. A
  /// file that becomes shorter while it is read is an IoError.
  ///
  /// true: tensors use a private mapping of the file where its data is aligned for their dtype
  /// (always in files that this library wrote), and are copies elsewhere. Only pages that are used
  /// are read. Writing to the tensors never changes the file. The file must not change while they
  /// live: if another program writes into it, pages that were not used yet show the new bytes, and
  /// using a page that was cut off ends the process with SIGBUS. Replacing the file, as the
  /// functions here do, is safe.
  bool mmap = false;
  /// The device of the tensors; the default device when absent. Files do not store a device. With
  /// mmap, only tensors on the CPU use the mapping.
  std::optional<Device> device = {};
};

// ---- safetensors: all dtypes

using Metadata = std::map<std::string, std::string>;

struct SafeTensors {
  NamedTensors tensors;  ///< in the header's order
  Metadata metadata;
};

/// The header keeps the given order; the data is sorted by item size, so that every tensor is
/// aligned. Strided tensors are written piece by piece, without a full copy. Throws ValueError for
/// an undefined tensor, an invalid or repeated name, and the name "__metadata__".
BAREGRAD_API void save_safetensors(const std::string& path, const NamedTensors& tensors,
                                   const Metadata& metadata = {});
BAREGRAD_API SafeTensors load_safetensors(const std::string& path, const LoadOptions& options = {});
/// The same in memory. Parsed tensors are copies; messages use `label` in place of the file's name.
BAREGRAD_API Bytes safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata = {});
BAREGRAD_API SafeTensors parse_safetensors(std::span<const std::uint8_t> bytes,
                                           const std::string& label = "memory");

// ---- npy and npz: all dtypes but bfloat16, which NumPy's formats do not have

/// Throws DTypeError for bfloat16.
BAREGRAD_API void save_npy(const std::string& path, const Tensor& tensor);
/// Versions 1.0 to 3.0. Fortran order gives a tensor with column-major strides; big-endian data is
/// byte-swapped. Objects, structures, strings and complex numbers are refused.
BAREGRAD_API Tensor load_npy(const std::string& path, const LoadOptions& options = {});
BAREGRAD_API Bytes npy_bytes(const Tensor& tensor);
BAREGRAD_API Tensor parse_npy(std::span<const std::uint8_t> bytes,
                              const std::string& label = "memory");

enum class NpzMode { Stored, Deflated };

/// A tensor's name is its member's name without ".npy". Throws ValueError for a repeated name,
/// DTypeError for bfloat16.
BAREGRAD_API void save_npz(const std::string& path, const NamedTensors& tensors,
                           NpzMode mode = NpzMode::Stored);
/// Tensors in the order of the archive's directory, always copies. Checksums are verified. Members
/// that claim more than deflate can hold (1032 to 1), share bytes or are encrypted are refused.
/// ValueError with mmap: an archive cannot be mapped.
BAREGRAD_API NamedTensors load_npz(const std::string& path, const LoadOptions& options = {});
BAREGRAD_API Bytes npz_bytes(const NamedTensors& tensors, NpzMode mode = NpzMode::Stored);
BAREGRAD_API NamedTensors parse_npz(std::span<const std::uint8_t> bytes,
                                    const std::string& label = "memory");

// ---- Checkpoints

/// Everything that a run needs to resume, by part: "model", "optimizer", "loader", ...
struct Checkpoint {
  std::map<std::string, State> parts;
};

/// One safetensors file. Tensors are named "part/name" ('/' and '%' in a part's name are written as
/// %2F and %25). Values are metadata under such names. A checksum covers the whole file.
BAREGRAD_API void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Also throws IoError when the checksum does not match.
BAREGRAD_API Checkpoint load_checkpoint(const std::string& path, const LoadOptions& options = {});

/// The last few checkpoints of a run: step-000000123.safetensors. Only one run at a time may write
/// into a folder. Only save() changes the disk: other processes may read the folder of an active
/// run.
///
/// A checkpoint is newer if it was saved later. Usually its step is greater. If the folder already
/// holds a checkpoint of a greater step (the run went back, or another run used the folder), save()
/// begins a new generation. The generation is a number in the file, one more than the highest in
/// the folder; it is compared before the step.
class BAREGRAD_API CheckpointFolder {
 public:
  /// `keep` is at least 1.
  explicit CheckpointFolder(std::string folder, int keep = 3);

  /// Returns the path. The first save of an object creates the folder and its parents; if the
  /// folder disappears later, save throws IoError. Other files are removed only when the new file
  /// is safely on the disk: it and the keep - 1 newest others stay. Temporary files of interrupted
  /// saves are removed too.
  std::string save(std::int64_t step, const Checkpoint& checkpoint);

  struct Found {
    std::int64_t step = 0;
    std::string path;
    Checkpoint checkpoint;
    std::vector<std::string> damaged;  ///< newer files that did not load: the message of each
  };
  /// The newest checkpoint that loads. Empty if there is no file or no folder. Throws IoError when
  /// there are files and none loads, because restarting from the beginning would be wrong.
  std::optional<Found> latest() const;
  /// Steps of all files, ascending, including files that do not load.
  std::vector<std::int64_t> steps() const;
  std::string path_of(std::int64_t step) const;
  const std::string& folder() const noexcept { return folder_; }

 private:
  struct Known;
  std::string folder_;
  int keep_;
  std::shared_ptr<Known> known_;
};

// ---- Logs of a run

/// A file that TensorBoard reads. Each start of a run creates a new file in the folder (created
/// with its parents); its name sorts after the existing ones. A record is passed to the operating
/// system before the call returns, so that a crash of the process damages at most the record being
/// written.
class BAREGRAD_API EventWriter {
 public:
  /// `resume_step`: TensorBoard drops the records of earlier files from this step on.
  explicit EventWriter(const std::string& folder, std::optional<std::int64_t> resume_step = {});
  ~EventWriter();
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;

  /// `wall_time`: seconds since 1970; now when absent.
  void add_scalar(const std::string& tag, double value, std::int64_t step,
                  std::optional<double> wall_time = {});
  void add_text(const std::string& tag, const std::string& text, std::int64_t step,
                std::optional<double> wall_time = {});
  /// Waits until all records are on the disk.
  void flush();
  const std::string& path() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A value in a line of metrics. NaN and infinities become null, as JSON has neither.
using MetricValue = std::variant<bool, std::int64_t, double, std::string>;
using Metrics = std::vector<std::pair<std::string, MetricValue>>;

/// Appends one JSON object per line: {"step":7,"loss":0.5}.
class BAREGRAD_API MetricsWriter {
 public:
  /// An incomplete last line is cut off. With `resume_step`, lines from the first one of this or a
  /// later step on are cut off too: the resumed run writes them again. Throws IoError, and changes
  /// nothing, if the file holds anything but lines of a MetricsWriter.
  explicit MetricsWriter(const std::string& path, std::optional<std::int64_t> resume_step = {});
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;

  /// Throws ValueError for a repeated name, and for "step".
  void write(std::int64_t step, const Metrics& metrics);
  /// Waits until all lines are on the disk.
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baregrad::io
