// Writes files for tests/io/test_files.py and test_events.py, and copies files of other programs by
// reading and writing them.
//
//   io_samples write FOLDER            tensors.safetensors, tensors.npz, packed.npz, *.npy
//   io_samples copy FROM TO            formats by the names' suffixes
//   io_samples events FOLDER           two runs, the second of which resumes at step 3
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "baregrad/io.h"
#include "baregrad/ops.h"

namespace {

using namespace baregrad;

/// Values that NumPy can make too: 0, 1, 2, ... of the dtype, transposed.
NamedTensors samples() {
  NamedTensors out;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string base(name(dtype));
    const Tensor count = arange(0, 24, 1, DType::Int64).to(dtype).reshape({2, 3, 4});
    out.push_back({base + ".cube", count});
    out.push_back({base + ".turned", count.permute({2, 0, 1})});
    out.push_back({base + ".scalar", count[1][2][3]});
    out.push_back({base + ".empty", Tensor::allocate({0, 5}, dtype, "samples")});
  }
  return out;
}

bool ends(std::string_view text, std::string_view end) { return text.ends_with(end); }

void write(const std::string& folder) {
  const NamedTensors all = samples();
  io::save_safetensors(folder + "/tensors.safetensors", all, {{"who", "baregrad \"\xc3\xa9\""}});
  NamedTensors known;
  for (const NamedTensor& entry : all) {
    if (entry.tensor.dtype() == DType::BFloat16) continue;
    known.push_back(entry);
    io::save_npy(folder + "/" + entry.name + ".npy", entry.tensor);
  }
  io::save_npz(folder + "/tensors.npz", known);
  io::save_npz(folder + "/packed.npz", known, io::NpzMode::Deflated);
}

void copy(const std::string& from, const std::string& to) {
  NamedTensors tensors;
  io::Metadata metadata;
  if (ends(from, ".safetensors")) {
    io::SafeTensors file = io::load_safetensors(from);
    tensors = std::move(file.tensors);
    metadata = std::move(file.metadata);
  } else if (ends(from, ".npz")) {
    tensors = io::load_npz(from);
  } else {
    tensors = {{"array", io::load_npy(from)}};
  }
  if (ends(to, ".safetensors")) {
    io::save_safetensors(to, tensors, metadata);
  } else if (ends(to, ".npz")) {
    io::save_npz(to, tensors);
  } else {
    io::save_npy(to, tensors.at(0).tensor);
  }
}

void events(const std::string& folder) {
  {
    io::EventWriter writer(folder);
    for (int step = 0; step < 5; ++step)
      writer.add_scalar("loss", 1.0 / (1 + step), step, 100 + step);
    writer.add_text("notes", "first **run**", 0, 100);
  }
  io::EventWriter writer(folder, 3);
  for (int step = 3; step < 6; ++step) writer.add_scalar("loss", 10.0 + step, step, 200 + step);
  writer.flush();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "write" && argc == 3) {
      write(argv[2]);
    } else if (command == "copy" && argc == 4) {
      copy(argv[2], argv[3]);
    } else if (command == "events" && argc == 3) {
      events(argv[2]);
    } else {
      std::fprintf(stderr, "io_samples: write FOLDER | copy FROM TO | events FOLDER\n");
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
