// Finds and opens the BLAS libraries.
#include "bench/peers_blas.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <dlfcn.h>
#include <link.h>
#include <omp.h>

#include "baregrad/error.h"

namespace baregrad::bench::peers {
namespace {

namespace fs = std::filesystem;

/// An open library, and the file that must define its functions: several libraries export the same
/// names.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) { dlinfo(handle_, RTLD_DI_LINKMAP, &map_); }
  std::string path() const { return map_ == nullptr ? "" : map_->l_name; }

  /// Null unless this file itself defines the function: a definition in another library would time
  /// the wrong peer.
  template <class Function>
  void find(const char* name, Function& function) const {
    void* found = dlsym(handle_, name);
    Dl_info info{};
    void* map = nullptr;
    if (found != nullptr) dladdr1(found, &info, &map, RTLD_DL_LINKMAP);
    function = map != nullptr && map == map_ ? reinterpret_cast<Function>(found) : nullptr;
  }

 private:
  void* handle_;
  link_map* map_ = nullptr;
};

void find_fortran(const Library& library, Blas& blas) {
  library.find("sgemm_", blas.sgemm);
  library.find("dgemm_", blas.dgemm);
  library.find("sgemv_", blas.sgemv);
  library.find("dgemv_", blas.dgemv);
}

void fill_openblas(const Library& library, Blas& blas) {
  find_fortran(library, blas);
  library.find("openblas_set_num_threads", blas.set_threads);
  library.find("openblas_get_num_threads", blas.get_threads);
  const char* (*config)() = nullptr;
  library.find("openblas_get_config", config);
  if (config != nullptr) blas.version = config();
}

// BLIS counts in dim_t; these wrappers have the signature of the others.
std::int64_t (*blis_get_threads)() = nullptr;
void (*blis_set_threads)(std::int64_t) = nullptr;

void fill_blis(const Library& library, Blas& blas) {
  find_fortran(library, blas);
  library.find("bli_thread_set_num_threads", blis_set_threads);
  library.find("bli_thread_get_num_threads", blis_get_threads);
  if (blis_set_threads != nullptr) blas.set_threads = [](int n) { blis_set_threads(n); };
  if (blis_get_threads != nullptr) {
    blas.get_threads = [] { return static_cast<int>(blis_get_threads()); };
  }
  const char* (*version)() = nullptr;
  library.find("bli_info_get_version_str", version);
  if (version != nullptr) blas.version = std::string("BLIS ") + version();
}

void fill_dnnl(const Library& library, Blas& blas) {
  library.find("dnnl_sgemm", blas.dnnl_sgemm);
  // Debian's build shares our libgomp.
  blas.set_threads = omp_set_num_threads;
  blas.get_threads = omp_get_max_threads;
  struct Version {
    int major, minor, patch;
  };
  const Version* (*version)() = nullptr;
  library.find("dnnl_version", version);
  if (version != nullptr) {
    const Version& v = *version();
    blas.version = "oneDNN " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." +
                   std::to_string(v.patch);
  }
}

void fill_mkl(const Library& library, Blas& blas) {
  find_fortran(library, blas);
  library.find("cblas_sgemm_batch_strided", blas.sgemm_batch);
  library.find("cblas_dgemm_batch_strided", blas.dgemm_batch);
  library.find("cblas_gemm_f16f16f32", blas.gemm_f16);
  library.find("cblas_gemm_bf16bf16f32", blas.gemm_bf16);
  library.find("MKL_Set_Num_Threads", blas.set_threads);
  library.find("MKL_Get_Max_Threads", blas.get_threads);
  int (*set_interface)(int) = nullptr;
  library.find("MKL_Set_Interface_Layer", set_interface);
  constexpr int kLp64 = 0;
  if (set_interface != nullptr) set_interface(kLp64);
  // MKL may otherwise use fewer threads than it is told to.
  void (*set_dynamic)(int) = nullptr;
  library.find("MKL_Set_Dynamic", set_dynamic);
  if (set_dynamic != nullptr) set_dynamic(0);
  void (*version)(char*, int) = nullptr;
  library.find("MKL_Get_Version_String", version);
  if (version != nullptr) {
    std::array<char, 256> text{};
    version(text.data(), static_cast<int>(text.size()) - 1);
    blas.version = text.data();
  }
}

std::vector<std::string> mkl_files() {
  if (const char* named = std::getenv("BAREGRAD_MKL"); named != nullptr && *named != '\0') {
    return {named};
  }
  constexpr const char* kNames[] = {"libmkl_rt.so.3", "libmkl_rt.so.2"};
  std::vector<std::string> files;
  for (const char* name : kNames) files.emplace_back(name);
  // `make bench` puts it into the .venv above the program.
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  while (!error && folder.has_relative_path()) {
    for (const char* name : kNames) {
      const fs::path file = folder / ".venv" / "lib" / name;
      if (fs::exists(file, error)) files.push_back(file.string());
    }
    folder = folder.parent_path();
  }
  return files;
}

struct Known {
  std::string_view name;
  const char* package;
  std::vector<std::string> (*files)();
  void (*fill)(const Library& library, Blas& blas);
  // Idle workers spin for 100 or 200 ms by default, into the turns of other candidates. This
  // reduces it to 20 to 30 ms, more than any pause within a turn. A value set by the user stays.
  const char* patience = nullptr;
  const char* patience_value = nullptr;
};

// Opened in this order: MKL makes its symbols visible to libraries opened later.
constexpr std::array kKnown = {
    Known{"openblas", "Debian package libopenblas0-pthread",
          [] { return std::vector<std::string>{"libopenblas.so.0"}; }, fill_openblas,
          "OPENBLAS_THREAD_TIMEOUT", "26"},
    Known{"blis", "Debian package libblis4-pthread",
          [] { return std::vector<std::string>{"libblis.so.4"}; }, fill_blis},
    Known{"dnnl", "Debian package libdnnl2",
          [] { return std::vector<std::string>{"libdnnl.so.2"}; }, fill_dnnl},
    Known{"mkl", "PyPI package mkl, file named by BAREGRAD_MKL", mkl_files, fill_mkl,
          "KMP_BLOCKTIME", "20"},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kKnown.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kKnown[i].name;
  return names;
}();

/// Empty if it could be opened, else the reason.
std::string open_one(const Known& known, Blas& blas) {
  if (known.patience != nullptr) setenv(known.patience, known.patience_value, 0);
  std::string why;
  for (const std::string& file : known.files()) {
    // RTLD_NOW binds all references now, to the library itself: none can bind to a library opened
    // later.
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      // The error of the first name tried is the one to report.
      const char* said = dlerror();
      if (why.empty() && said != nullptr) why = said;
      continue;
    }
    const Library library(handle);
    blas.name = known.name;
    blas.path = library.path();
    known.fill(library, blas);
    if (blas.sgemm == nullptr && blas.dnnl_sgemm == nullptr) return file + " has no sgemm";
    if (blas.set_threads == nullptr || blas.get_threads == nullptr) {
      return file + " does not let its threads be set";
    }
    return {};
  }
  return why;
}

}  // namespace

bool set_threads(const Blas& blas, int threads) {
  blas.set_threads(threads);
  return blas.get_threads() == threads;
}

std::span<const std::string_view> blas_names() { return kNames; }

OpenedBlas open_blas(std::span<const std::string> names) {
  OpenedBlas opened;
  for (const Known& known : kKnown) {
    if (!names.empty() && std::find(names.begin(), names.end(), known.name) == names.end()) {
      continue;
    }
    Blas blas;
    const std::string why = open_one(known, blas);
    if (why.empty()) {
      opened.found.push_back(std::move(blas));
    } else {
      opened.absent.push_back(std::string(known.name) + " is absent (" + known.package +
                              "): " + why);
    }
  }
  return opened;
}

}  // namespace baregrad::bench::peers
