// Picks the ceiling loops of an instruction set.
#include "kernels/ceilings.h"

#include "kernels/table.h"

namespace baregrad::kernels {

Ceilings ceilings(Isa isa) {
  table(isa);  // refuses what this machine cannot run
  switch (isa) {
    case Isa::Reference:
    case Isa::Scalar:
      break;
    case Isa::Sse4:
      return N_SSE4::ceilings();
    case Isa::Avx2:
      return N_AVX2::ceilings();
    case Isa::Avx512:
      return N_AVX3::ceilings();
  }
  return N_SCALAR::ceilings();
}

}  // namespace baregrad::kernels
