// Checks the variables by using them.
#include "cli/environment.h"

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "kernels/table.h"
#include "parallel/thread_variable.h"

namespace baregrad::cli {

void check_environment() {
  const std::string problem = parallel::thread_variable_problem();
  if (!problem.empty()) throw ValueError(problem);
  static_cast<void>(kernels::active_isa());
  static_cast<void>(current_allocator());
}

}  // namespace baregrad::cli
