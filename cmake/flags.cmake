# Compiler and linker flags. The only other ones are the instruction sets', in isa.cmake.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(BAREGRAD_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
else()
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")
endif()

# What every target of ours shares.
# fp-contract off: a * b + c rounds twice unless the code says fma, on every machine alike.
# No semantic interposition: exported functions may be inlined and called directly, nobody replaces them one by one.
add_library(baregrad_options INTERFACE)
target_compile_features(baregrad_options INTERFACE cxx_std_20)
target_compile_options(baregrad_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -ffp-contract=off -fno-math-errno -fno-semantic-interposition $<$<BOOL:${BAREGRAD_WERROR}>:-Werror>)
if(BAREGRAD_SANITIZE)
  target_compile_options(baregrad_options INTERFACE
    -fsanitize=${BAREGRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<BOOL:$<TARGET_PROPERTY:BAREGRAD_WITHOUT_UBSAN>>:-fno-sanitize=undefined>)
  target_link_options(baregrad_options INTERFACE -fsanitize=${BAREGRAD_SANITIZE})
endif()

# Optimisation levels: one row per kind of code, one column per build. The last two columns are
# AddressSanitizer and ThreadSanitizer. A target without a level has CMake's own: -O3 in Release.
#
#                                    Release Debug address thread
# Loops that the compiler is to vectorize. A million normal numbers: 3.8 ms, at -O2 6.1 ms.
set(BAREGRAD_LEVEL_loops             -O3     -Og   -O1     -O1)
# Loops around kernels. -O3 makes them larger by a tenth and nothing faster.
set(BAREGRAD_LEVEL_walkers           -O2     -Og   -O1     -O1)
# What every op call passes through.
# With AddressSanitizer, optimising takes longer than the rest of compiling, and pays only where there are loops.
set(BAREGRAD_LEVEL_calls             -O2     -Og   -O0     -O1)
# What waits for ops or for the disk: half as large as at -O2 and no slower.
set(BAREGRAD_LEVEL_size              -Os     -Og   -O0     -O1)
# Kernels on vectors. They are optimised in every build: unoptimised wrappers of intrinsics are fifty times slower.
# With AddressSanitizer -O1 compiles a quarter faster; with ThreadSanitizer it makes GCC 12 crash.
set(BAREGRAD_LEVEL_vectors           -O3     -O3   -O1     -O3)
# Kernels that -O3 makes larger and not faster, and all kernels of the narrow instruction sets: their users
# gain more from a library of half the size.
set(BAREGRAD_LEVEL_vectors_small     -O2     -O2   -O1     -O3)
# The command line and the experiments, which wait for the library.
set(BAREGRAD_LEVEL_commands          -O1     -Og   -O1     -O1)
# Code whose own speed is measured or compared with.
set(BAREGRAD_LEVEL_measured          -O3     -O3   -O3     -O3)
# Loops whose every load, branch and turn is counted: as written.
set(BAREGRAD_LEVEL_counted           -O2     -O2   -O2     -O2)
# Tests. Optimising them takes longer than the rest of compiling them.
set(BAREGRAD_LEVEL_tests             -O0     -Og   -O0     -O0)
# Tests whose hundreds of cases are processes of their own, each of which registers all of them.
set(BAREGRAD_LEVEL_tests_of_many_cases -O1   -Og   -O0     -O0)
# Tests that compute expected values in long loops.
set(BAREGRAD_LEVEL_tests_with_loops  -O1     -Og   -O1     -O1)

# baregrad_optimise(<target> <kind>): compiles the target at the level of a row above.
function(baregrad_optimise target kind)
  list(GET BAREGRAD_LEVEL_${kind} 0 1 2 3 levels)
  list(POP_FRONT levels release debug address thread)
  if(BAREGRAD_SANITIZE MATCHES address)
    set(level ${address})
  elseif(BAREGRAD_SANITIZE)
    set(level ${thread})
  else()
    set(level $<IF:$<CONFIG:Debug>,${debug},${release}>)
  endif()
  target_compile_options(${target} PRIVATE ${level})
endfunction()

# baregrad_flags_for_loops_as_written(<target>): the compiler neither vectorizes nor unrolls.
function(baregrad_flags_for_loops_as_written target)
  baregrad_optimise(${target} counted)
  target_compile_options(${target} PRIVATE -fno-tree-vectorize -fno-tree-slp-vectorize -fno-unroll-loops)
endfunction()

# baregrad_flags_for_ladder(<target>): the rungs of the lab's ladder, whose loops are compared. x * y + z may become
# one instruction where the instruction set has it. Loops begin at a cache line: a short loop that lies in two
# lines is up to half as fast, and where it lies is chance otherwise.
function(baregrad_flags_for_ladder target)
  baregrad_optimise(${target} measured)
  target_compile_options(${target} PRIVATE -ffp-contract=fast -falign-loops=64)
endfunction()

# baregrad_flags_for_tests(<target> <kind>): UndefinedBehaviorSanitizer checks the library and its headers, not the
# code of tests, which halves their compile time. EXPECT_THROW(relu(x), ...) drops a result that is never made.
function(baregrad_flags_for_tests target kind)
  baregrad_optimise(${target} ${kind})
  target_compile_options(${target} PRIVATE -Wno-unused-result)
  set_target_properties(${target} PROPERTIES BAREGRAD_WITHOUT_UBSAN ON)
endfunction()

# baregrad_link_library_first(<target>): of an inline function that library and tests both hold, the linker keeps the
# copy it sees first. This makes it the library's, which is optimised and checked.
function(baregrad_link_library_first target)
  target_link_options(${target} PRIVATE
    LINKER:--whole-archive $<TARGET_FILE:baregrad_internal> LINKER:--no-whole-archive)
  target_link_libraries(${target} PRIVATE baregrad_internal)
endfunction()

# baregrad_link_shared(<target>): a shared library whose functions call each other directly. Tables of kernels are
# pointers, each of which the loader has to relocate: packed, that takes eight bytes instead of 24, where linker and
# C library (glibc 2.36) know how; 28 KB.
include(CheckLinkerFlag)
check_linker_flag(CXX LINKER:-z,pack-relative-relocs BAREGRAD_PACKED_RELOCATIONS)
function(baregrad_link_shared target)
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
  if(BAREGRAD_PACKED_RELOCATIONS)
    target_link_options(${target} PRIVATE LINKER:-z,pack-relative-relocs)
  endif()
endfunction()
