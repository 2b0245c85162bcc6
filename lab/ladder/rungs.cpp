// The list of rungs, lowest first.
#include "lab/ladder/rungs.h"

#include <string>

#include "baregrad/error.h"
#include "lab/ladder/multiply.h"

namespace baregrad::lab {
namespace {

constexpr Rung kRungs[] = {
    {"naive", "three loops, as in the textbook",
     "Every element of c is the dot product of a row of a and a column of b.", "01_naive.cpp", true,
     multiply_naive},
    {"reordered", "the inner loops exchanged",
     "b and c are read along their rows, and no sum waits for the one before it.",
     "02_reordered.cpp", true, multiply_reordered},
    {"tiled", "a tile of b at a time",
     "A tile of b that fits into the L2 cache serves all rows of a before the next is fetched.",
     "03_tiled.cpp", true, multiply_tiled},
    {"unrolled", "four steps of k at once",
     "c is loaded and stored once for four multiply-adds instead of for each.", "04_unrolled.cpp",
     true, multiply_unrolled},
    {"simd", "vectors and fused multiply-adds",
     "The same loops with vectors as wide as this processor has them.", "05_simd.cpp", false,
     multiply_simd},
    {"register_blocked", "a block of c in registers",
     "A loaded vector of b serves many rows, and c stays in registers while k runs.",
     "06_register_blocked.cpp", false, multiply_register_blocked},
    {"packed", "operands copied into the order they are read in",
     "Blocks for L1, L2 and L3 are packed, so that the innermost loop reads straight on.",
     "07_packed.cpp", false, multiply_packed},
    {"engine", "the engine's own product",
     "Operands are packed only where that pays, and tiles fetch c ahead.", "08_engine.cpp", false,
     multiply_engine},
};

}  // namespace

std::span<const Rung> rungs() { return kRungs; }

const Rung& find_rung(std::string_view name) {
  std::string names;
  for (const Rung& rung : kRungs) {
    if (rung.name == name) return rung;
    names += names.empty() ? "" : ", ";
    names += rung.name;
  }
  throw ValueError("lab: there is no rung '" + std::string(name) + "': there are " + names);
}

}  // namespace baregrad::lab
