// Tensors to and from files: safetensors, npy, npz; checkpoints; what a training run logs.
//
// Files are written whole or not at all (temporary file, fsync, rename, fsync of the folder).
// Readers check every declared size against the length of the file before they allocate, and open
// nothing that a file names. A file that is not what it should be is an IoError that says what is
// wrong.
//
// Names (of tensors, metadata, parts, metrics, tags) are UTF-8 without NUL characters. Writers
// throw ValueError for others, and for paths with a NUL; readers throw IoError.
//
// Errors open with the name of the function that was called.
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

/// How tensors get out of a file.
struct LoadOptions {
  /// false: every tensor is a copy with memory of its own. What happens to the file afterwards does
  /// not matter; one that becomes shorter while it is read is an IoError.
  ///
  /// true: tensors lie in a private mapping of the file where its data is aligned for their dtype
  /// (always in files of ours), and are copies elsewhere. Only what is used is read, and writing to
  /// them never changes the file. The file must stay as it is while they live: where another
  /// program writes into it, pages that were not used yet show the new bytes, and using a page that
  /// was cut off ends the process with SIGBUS. Replacing the file, as the functions here do, is
  /// safe.
  bool mmap = false;
};

// ---- safetensors: all dtypes

using Metadata = std::map<std::string, std::string>;

struct SafeTensors {
  NamedTensors tensors;  ///< in the header's order
  Metadata metadata;
};

/// The header keeps the given order; the data is laid out by item size, so that every tensor is
/// aligned. Any layout is written without a copy of the whole. Throws ValueError for an undefined
/// tensor, a name twice, a bad one, and "__metadata__".
BAREGRAD_API void save_safetensors(const std::string& path, const NamedTensors& tensors,
                                   const Metadata& metadata = {});
BAREGRAD_API SafeTensors load_safetensors(const std::string& path, const LoadOptions& options = {});
/// The same as bytes in memory; parsed tensors are copies, `label` stands for the file in messages.
BAREGRAD_API Bytes safetensors_bytes(const NamedTensors& tensors, const Metadata& metadata = {});
BAREGRAD_API SafeTensors parse_safetensors(std::span<const std::uint8_t> bytes,
                                           const std::string& label = "memory");

// ---- npy and npz: all dtypes but bfloat16, which NumPy's formats do not know

/// Throws DTypeError for bfloat16.
BAREGRAD_API void save_npy(const std::string& path, const Tensor& tensor);
/// Versions 1.0 to 3.0. Fortran order gives a tensor with such strides; big-endian data is turned
/// around. Objects, structures, strings and complex numbers are refused.
BAREGRAD_API Tensor load_npy(const std::string& path, const LoadOptions& options = {});
BAREGRAD_API Bytes npy_bytes(const Tensor& tensor);
BAREGRAD_API Tensor parse_npy(std::span<const std::uint8_t> bytes,
                              const std::string& label = "memory");

enum class NpzMode { Stored, Deflated };

/// A name is that of the member without ".npy". Throws ValueError for a name twice, DTypeError for
/// bfloat16.
BAREGRAD_API void save_npz(const std::string& path, const NamedTensors& tensors,
                           NpzMode mode = NpzMode::Stored);
/// In the order of the archive's directory, always copies. Checksums are checked; members that
/// claim more than deflate can hold (1032 to 1), share bytes or are encrypted are refused.
BAREGRAD_API NamedTensors load_npz(const std::string& path);
BAREGRAD_API Bytes npz_bytes(const NamedTensors& tensors, NpzMode mode = NpzMode::Stored);
BAREGRAD_API NamedTensors parse_npz(std::span<const std::uint8_t> bytes,
                                    const std::string& label = "memory");

// ---- Checkpoints

/// Everything a run needs to go on, by part: "model", "optimizer", "loader", ...
struct Checkpoint {
  std::map<std::string, State> parts;
};

/// One safetensors file: tensors are named "part/name" ('/' and '%' in a part's name as %2F and
/// %25), values are metadata under such names, and a checksum covers all of it.
BAREGRAD_API void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Throws IoError also when the checksum does not fit.
BAREGRAD_API Checkpoint load_checkpoint(const std::string& path, const LoadOptions& options = {});

/// The last few checkpoints of a run: step-000000123.safetensors. One run at a time writes into a
/// folder. Reading, which is all but save(), changes nothing on the disk, so that anybody may look
/// at the folder of a run that is going on.
///
/// Newer is what was saved later. Usually that is what has the greater step. A checkpoint that is
/// saved where one of a greater step stands (by a run that went back, or another run in an old
/// folder) begins a new generation: a number in the file, one more than those before have, which
/// counts before the step.
class BAREGRAD_API CheckpointFolder {
 public:
  /// `keep` is at least 1.
  explicit CheckpointFolder(std::string folder, int keep = 3);

  /// Returns the path. The first save of an object makes the folder with its parents; one that
  /// disappears later is an IoError. Only when the new file is safely there are others removed, so
  /// that it and the keep - 1 newest others stay; and with them the temporary files of saves that
  /// were cut off.
  std::string save(std::int64_t step, const Checkpoint& checkpoint);

  struct Found {
    std::int64_t step = 0;
    std::string path;
    Checkpoint checkpoint;
    std::vector<std::string> damaged;  ///< newer files that did not load: the message of each
  };
  /// The newest checkpoint that loads; nothing where there is no file, or no folder. Throws IoError
  /// when there are files and none loads: starting again would be the wrong guess.
  std::optional<Found> latest() const;
  /// Steps on disk, ascending, loadable or not.
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

/// A file that TensorBoard reads. Each run start makes a new file in the folder (made with its
/// parents), whose name comes after those of the files that are there; a record is on its way to
/// the disk when the call returns, so that a crash of the process tears at most the one being
/// written.
class BAREGRAD_API EventWriter {
 public:
  /// `resume_step`: TensorBoard drops what earlier files say of this step and later ones.
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

/// What a line of metrics may hold. NaN and infinities, which JSON does not have, become null.
using MetricValue = std::variant<bool, std::int64_t, double, std::string>;
using Metrics = std::vector<std::pair<std::string, MetricValue>>;

/// Appends one JSON object a line: {"step":7,"loss":0.5}.
class BAREGRAD_API MetricsWriter {
 public:
  /// A torn last line is cut off. `resume_step`: so are the lines from the first of this or a later
  /// step on, which the resumed run is about to write again. Throws IoError for a file that holds
  /// anything else than lines of a MetricsWriter, and leaves it as it is.
  explicit MetricsWriter(const std::string& path, std::optional<std::int64_t> resume_step = {});
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;

  /// Throws ValueError for a name that occurs twice, and for "step".
  void write(std::int64_t step, const Metrics& metrics);
  /// Waits until all lines are on the disk.
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baregrad::io
