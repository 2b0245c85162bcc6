// Checks each variable by calling the code that reads it.
#include "cli/environment.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "backends/cpu/table.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "core/printable.h"
#include "parallel/thread_variable.h"

namespace baregrad::cli {

void check_environment() {
  const std::string problem = parallel::thread_variable_problem();
  if (!problem.empty()) throw ValueError(problem);
  static_cast<void>(kernels::active_isa());
  static_cast<void>(current_allocator());
}

void check_data_variable() {
  const char* folder = std::getenv("BAREGRAD_DATA");
  if (folder == nullptr || *folder == '\0') return;
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return;
  throw ValueError("BAREGRAD_DATA: " + quoted_text(folder) + " is no folder");
}

}  // namespace baregrad::cli
