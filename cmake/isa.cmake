# The ISA-flagged object libraries: every kernel source of src/backends/cpu/simd once per instruction set.
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

# Which of them are built. What a sanitizer looks for does not depend on the width of a vector: there
# one without vectors and one with them keep the build short. Masked loads, where AVX-512 differs, GCC's
# AddressSanitizer does not see; in release, tests put a page without access behind memory, on every set.
# A build that only tries something out may say -DBAREGRAD_ISAS="scalar;avx2" too.
if(NOT BAREGRAD_ISAS)
  set(BAREGRAD_ISAS scalar sse4 avx2 avx512)
  if(BAREGRAD_SANITIZE)
    set(BAREGRAD_ISAS scalar avx2)
  endif()
endif()
foreach(isa IN ITEMS sse4 avx2 avx512)
  if(NOT isa IN_LIST BAREGRAD_ISAS)
    string(TOUPPER ${isa} name)
    list(APPEND BAREGRAD_ISA_DEFINITIONS BAREGRAD_WITHOUT_${name})
  endif()
endforeach()

# baregrad_add_isa_kernels(<name> <kind> <source>...): object libraries baregrad_<name>_<isa>, whose objects are added
# to baregrad_library_objects. The wide sets have the level of <kind> (flags.cmake).
function(baregrad_add_isa_kernels name kind)
  foreach(isa IN LISTS BAREGRAD_ISAS)
    set(lib baregrad_${name}_${isa})
    add_library(${lib} OBJECT ${ARGN})
    target_include_directories(${lib} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(${lib} SYSTEM PRIVATE ${BAREGRAD_HIGHWAY_INCLUDE})
    target_compile_options(${lib} PRIVATE ${BAREGRAD_ISA_FLAGS_${isa}} -fno-trapping-math)
    if(isa MATCHES "scalar|sse4")
      baregrad_optimise(${lib} vectors_small)
    else()
      baregrad_optimise(${lib} ${kind})
    endif()
    target_link_libraries(${lib} PRIVATE baregrad_options)
    list(APPEND baregrad_library_objects $<TARGET_OBJECTS:${lib}>)
  endforeach()
  set(baregrad_library_objects ${baregrad_library_objects} PARENT_SCOPE)
endfunction()

# baregrad_add_isa_ladder(<variable for the objects> <source>...): the lab's vector rungs for the sets
# whose vectors are wider than those of the baseline, which the lab's own library has.
function(baregrad_add_isa_ladder objects)
  set(all)
  foreach(isa IN ITEMS avx2 avx512)
    set(lib baregrad_ladder_${isa})
    add_library(${lib} OBJECT ${ARGN})
    target_include_directories(${lib} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(${lib} PRIVATE ${BAREGRAD_ISA_FLAGS_${isa}})
    baregrad_flags_for_ladder(${lib})
    target_link_libraries(${lib} PRIVATE baregrad_options)
    list(APPEND all $<TARGET_OBJECTS:${lib}>)
  endforeach()
  set(${objects} ${all} PARENT_SCOPE)
endfunction()
