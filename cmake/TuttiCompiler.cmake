# How our own code is compiled: one interface target that every room links.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# The tool and the examples lie where the contract says: build/tutti, build/examples/...
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(TUTTI_CCACHE ccache)
if(TUTTI_CCACHE)
  # Precompiled headers embed times and macros that ccache would otherwise distrust.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TUTTI_CCACHE})
endif()
find_program(TUTTI_MOLD mold)
if(TUTTI_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(tutti_flags INTERFACE)
target_compile_options(tutti_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-align -Wundef)
if(TUTTI_WERROR)
  target_compile_options(tutti_flags INTERFACE -Werror)
endif()
target_include_directories(tutti_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)

if(TUTTI_SANITIZE)
  # vptr: it opens a pipe for each look at memory, and calls out when a test has used all descriptors up.
  add_compile_options(-fsanitize=${TUTTI_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TUTTI_SANITIZE})
  # What the sanitizers put in confuses g++ 12 about lengths; the other builds look at those.
  target_compile_options(tutti_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-restrict>)
endif()

configure_file(${PROJECT_SOURCE_DIR}/tutti/version.h.in ${PROJECT_BINARY_DIR}/include/tutti/version.h @ONLY)
