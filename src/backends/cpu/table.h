// Which kernels run: reference first, then overridden by what this CPU does better.
#pragma once

#include <string_view>
#include <vector>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// Reference is the plain, double-accumulating truth; never chosen by itself.
enum class Isa : std::uint8_t { Reference, Scalar, Sse4, Avx2, Avx512 };

std::string_view isa_name(Isa isa) noexcept;
/// ISAs this machine can run, worst first, Reference excluded.
const std::vector<Isa>& available_isas();
/// The one in use: BAREGRAD_ISA if set, else the best available.
Isa active_isa();
/// Switches all later ops of the process; throws ValueError for one this machine cannot run.
void set_active_isa(Isa isa);
/// "scalar", "sse4", "avx2", "avx512", "reference"; throws ValueError and lists them.
Isa isa_from_name(std::string_view name);

const KernelTable& table(Isa isa);
/// The table in use; one load. Like active_isa, throws ValueError when BAREGRAD_ISA names none.
const KernelTable& active_table();

}  // namespace baregrad::kernels
