// NumPy and PyTorch as peers: a Python process executes requests and times them itself, so that the
// communication is not counted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/notebook.h"

namespace baregrad::lab {

/// The Python that can `import baregrad`: $BAREGRAD_LAB_PYTHON, else python3. Empty, with the
/// reason in `why`, when there is none.
std::string find_python(std::string& why);

class PythonPeer {
 public:
  /// Starts `python -m baregrad.lab.peer` with `threads` threads in every library. Null when there
  /// is none; the notebook then records the absence.
  static std::unique_ptr<PythonPeer> start(Notebook& notebook, int threads);
  ~PythonPeer();
  PythonPeer(const PythonPeer&) = delete;
  PythonPeer& operator=(const PythonPeer&) = delete;

  /// "numpy", "torch".
  bool has(const std::string& library) const;
  /// "2.13.0+cpu"
  std::string version(const std::string& library) const;
  /// Sends a request and returns the answer; both are objects of one line. Throws Error with
  /// Python's message when it fails.
  Json ask(const Json& question);

 private:
  PythonPeer() = default;
  int to_ = -1;
  int from_ = -1;
  int process_ = -1;
  std::string unread_;
  Json hello_;
};

}  // namespace baregrad::lab
