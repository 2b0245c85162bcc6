# Compiler flags that every target of ours shares. The only other flags are in isa.cmake.
add_library(baregrad_options INTERFACE)
target_compile_features(baregrad_options INTERFACE cxx_std_20)
# fp-contract off: a * b + c rounds twice unless the code says fma, on every machine alike.
target_compile_options(baregrad_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -ffp-contract=off -fno-math-errno $<$<BOOL:${BAREGRAD_WERROR}>:-Werror>)

set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(BAREGRAD_SANITIZE)
  target_compile_options(baregrad_options INTERFACE
    -fsanitize=${BAREGRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<BOOL:$<TARGET_PROPERTY:BAREGRAD_WITHOUT_UBSAN>>:-fno-sanitize=undefined>)
  target_link_options(baregrad_options INTERFACE -fsanitize=${BAREGRAD_SANITIZE})
endif()

# baregrad_join(<target> [<count>]): where BAREGRAD_UNITY is on, the target's sources are compiled <count>
# (8) at a time, in half the time; fewer where they are long to compile, for one that begins last keeps
# only one core busy. What they keep in unnamed namespaces needs names that differ, also from names of
# headers that others use. Sources with flags or definitions of their own stay alone.
function(baregrad_join target)
  if(BAREGRAD_UNITY)
    set(count 8)
    if(ARGC GREATER 1)
      set(count ${ARGV1})
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    # Meant for types of headers; GCC takes all but the first line of such a source for one.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# baregrad_join_folders(<target> <source>...): the same, but only sources of one folder together.
function(baregrad_join_folders target)
  baregrad_join(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH path)
    cmake_path(GET path FILENAME folder)
    list(APPEND sources_${folder} ${source})
    list(LENGTH sources_${folder} count)
    math(EXPR group "(${count} - 1) / 12")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
endfunction()
