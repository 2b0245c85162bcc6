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
    -fsanitize=${BAREGRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(baregrad_options INTERFACE -fsanitize=${BAREGRAD_SANITIZE})
endif()
