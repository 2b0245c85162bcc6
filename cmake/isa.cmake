# The ISA-flagged object libraries: every kernel source of src/kernels/cpu once per instruction set.
# This is the only place with instruction-set flags.
#
# These objects must hold nothing that another object could share: tests/tools/check_isa.py fails on
# any weak symbol outside their own namespace.

set(BAREGRAD_ISA_FLAGS_scalar -DHWY_COMPILE_ONLY_SCALAR)
set(BAREGRAD_ISA_FLAGS_sse4
    -DHWY_COMPILE_ONLY_STATIC -mssse3 -msse4.1 -msse4.2 -mpclmul -maes -mpopcnt)
set(BAREGRAD_ISA_FLAGS_avx2
    ${BAREGRAD_ISA_FLAGS_sse4} -mavx -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt)
set(BAREGRAD_ISA_FLAGS_avx512
    ${BAREGRAD_ISA_FLAGS_avx2} -mavx512f -mavx512cd -mavx512bw -mavx512dq -mavx512vl)

# Kernels are optimised in every configuration: unoptimised SIMD wrappers are fifty times slower and
# would make the sanitizer suites useless.
set(BAREGRAD_KERNEL_FLAGS -O3 -fno-trapping-math)
if(BAREGRAD_SANITIZE MATCHES address)
  # A quarter less to compile. Not with ThreadSanitizer, whose instrumentation GCC 12 breaks down at.
  set(BAREGRAD_KERNEL_FLAGS -O1 -fno-trapping-math)
endif()

# baregrad_add_isa_kernels(<variable for the objects> <sources>...)
function(baregrad_add_isa_kernels objects)
  set(all)
  foreach(isa IN ITEMS scalar sse4 avx2 avx512)
    set(lib baregrad_kernels_${isa})
    add_library(${lib} OBJECT ${ARGN})
    target_include_directories(${lib} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(${lib} SYSTEM PRIVATE ${BAREGRAD_HIGHWAY_INCLUDE})
    target_compile_options(${lib} PRIVATE ${BAREGRAD_ISA_FLAGS_${isa}} ${BAREGRAD_KERNEL_FLAGS})
    target_link_libraries(${lib} PRIVATE baregrad_options)
    list(APPEND all $<TARGET_OBJECTS:${lib}>)
  endforeach()
  set(${objects} ${all} PARENT_SCOPE)
endfunction()
