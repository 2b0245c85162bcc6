// Loading the shared library changes nothing in the process, neither MXCSR nor the current
// allocator's memory, and exports only our symbols.
#include <dlfcn.h>
#include <immintrin.h>

#include <gtest/gtest.h>

namespace {

TEST(Library, LoadingLeavesMxcsrAlone) {
  const unsigned before = _mm_getcsr();
  void* library = dlopen(BAREGRAD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(_mm_getcsr(), before);
  EXPECT_EQ(before & 0x8040U, 0U) << "FTZ or DAZ was on before";
  EXPECT_NE(dlsym(library, "_ZN8baregrad3addERKNS_7OperandES2_"), nullptr);
  EXPECT_EQ(dlsym(library, "_ZN8baregrad7kernels12active_tableEv"), nullptr) << "not hidden";
}

}  // namespace
