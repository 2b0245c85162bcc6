// Picks the ceiling loops of an instruction set.
#include "backends/cpu/ceilings.h"

#include "backends/cpu/table.h"

namespace baregrad::kernels {

Ceilings ceilings(Isa isa) {
  table(isa);  // throws if this machine cannot run it
  switch (isa) {
    case Isa::Reference:
    case Isa::Scalar:
      break;
    case Isa::Sse4:
#if !defined(BAREGRAD_WITHOUT_SSE4)
      return N_SSE4::ceilings();
#else
      break;
#endif
    case Isa::Avx2:
#if !defined(BAREGRAD_WITHOUT_AVX2)
      return N_AVX2::ceilings();
#else
      break;
#endif
    case Isa::Avx512:
#if !defined(BAREGRAD_WITHOUT_AVX512)
      return N_AVX3::ceilings();
#else
      break;
#endif
  }
  return N_SCALAR::ceilings();
}

}  // namespace baregrad::kernels
