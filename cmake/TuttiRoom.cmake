# tutti_room(<name> [TORCH] SOURCES ... [LINKS ...] [TESTS ...] [TEST_LINKS ...] [PURE ...] [ALONE ...] [NETWORKS])
# One static library `tutti_<name>` per room, and one test program `<name>_test` of the tests beside its files.
# TORCH: the room stands on LibTorch and shares its precompiled header. PURE: those of its sources and tests that do not
# include it, and so do not wait for it. ALONE: those whose names clash with other files' (see tutti_unite). NETWORKS: its
# tests train networks.
function(tutti_room name)
  cmake_parse_arguments(ROOM "TORCH;NETWORKS" "" "SOURCES;LINKS;TESTS;TEST_LINKS;PURE;ALONE" ${ARGN})
  add_library(tutti_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(tutti_${name} PRIVATE tutti_flags PUBLIC ${ROOM_LINKS})
  target_include_directories(tutti_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
  set_property(GLOBAL APPEND PROPERTY TUTTI_ROOMS tutti_${name})
  if(ROOM_TORCH)
    target_link_libraries(tutti_${name} PUBLIC tutti_torch)
    tutti_precompiled_torch(tutti_${name})
    tutti_unite(tutti_${name})
    set_source_files_properties(${ROOM_PURE} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    set_source_files_properties(${ROOM_PURE} ${ROOM_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(ROOM_TESTS AND TUTTI_BUILD_TESTS)
    if(ROOM_NETWORKS)
      tutti_test(${name}_test NETWORKS SOURCES ${ROOM_TESTS} LINKS tutti_${name} ${ROOM_TEST_LINKS})
    elseif(ROOM_TORCH)
      tutti_test(${name}_test TORCH SOURCES ${ROOM_TESTS} LINKS tutti_${name} ${ROOM_TEST_LINKS})
    else()
      tutti_test(${name}_test SOURCES ${ROOM_TESTS} LINKS tutti_${name} ${ROOM_TEST_LINKS})
    endif()
  endif()
endfunction()

# A file that includes LibTorch takes 5 to 10 seconds for templates that its headers ask for, whatever is in it; one with
# CLI11 some 5. So a target's files are compiled some at a time, as one. (Not for clang-tidy, which looks at each.)
option(TUTTI_UNITE "Compile files with large headers some at a time" ON)
function(tutti_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TUTTI_UNITE} UNITY_BUILD_BATCH_SIZE 5)
endfunction()

# tutti_test(<name> [TORCH|NETWORKS] SOURCES ... LINKS ... [TIMEOUT seconds] [STANDARD year])
# A GoogleTest program, one ctest entry per test. Entries of LibTorch programs are one per program: each start costs a second.
# NETWORKS: on LibTorch, and with all of torch/torch.h.
function(tutti_test name)
  cmake_parse_arguments(TEST "TORCH;NETWORKS" "TIMEOUT;STANDARD" "SOURCES;LINKS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
    if(TEST_TORCH OR TEST_NETWORKS)
      set(TEST_TIMEOUT 600)  # of all tests of a program
    endif()
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_flags ${TEST_LINKS} GTest::gmock GTest::gtest_main)
  if(TEST_TORCH OR TEST_NETWORKS)
    target_link_libraries(${name} PRIVATE tutti_torch)
    if(TEST_NETWORKS)
      tutti_precompiled_networks(${name})
    else()
      tutti_precompiled_torch(${name})
    endif()
    tutti_unite(${name})
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS torch)
  else()
    if(TEST_STANDARD)
      set_target_properties(${name} PROPERTIES CXX_STANDARD ${TEST_STANDARD})
    else()
      tutti_precompiled_test(${name})
    endif()
    gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT ${TEST_TIMEOUT})
  endif()
endfunction()

# tutti_python_test(<name> <file> [arguments]): a file of unittest's cases. One that ends by main of tests/skips.py counts as
# skipped where all of its cases were.
function(tutti_python_test name)
  add_test(NAME ${name} COMMAND ${Python_EXECUTABLE} ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# GoogleMock and what every test includes anyway: two thirds of a small test's time to compile.
function(tutti_precompiled_test target)
  if(NOT TARGET tutti_test_pch)
    file(WRITE ${CMAKE_BINARY_DIR}/test_pch.cpp "// Only here so that the precompiled header has a target.\n")
    add_library(tutti_test_pch OBJECT ${CMAKE_BINARY_DIR}/test_pch.cpp)
    target_link_libraries(tutti_test_pch PRIVATE tutti_flags GTest::gmock)
    target_precompile_headers(tutti_test_pch PRIVATE <gmock/gmock.h> <gtest/gtest.h> <thread> <chrono> <filesystem>)
  endif()
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM tutti_test_pch)
endfunction()

# Reading LibTorch's headers takes 16 s a file; compiled once, every target of ours reuses them. They are two, since what
# they instantiate is instantiated again by every file: 2.5 s for tensors, modules and c10d, 5 s for all of torch/torch.h.
function(tutti_precompiled_torch target)
  tutti_precompiled(${target} tutti_pch <torch/types.h> <torch/nn/module.h> <torch/optim/optimizer.h>
    <torch/csrc/distributed/c10d/ProcessGroup.hpp> <torch/csrc/distributed/c10d/Store.hpp>)
endfunction()

# For programs that train networks.
function(tutti_precompiled_networks target)
  tutti_precompiled(${target} tutti_networks_pch <torch/torch.h> <torch/csrc/distributed/c10d/ProcessGroup.hpp>
    <torch/csrc/distributed/c10d/Store.hpp>)
endfunction()

function(tutti_precompiled target pch)
  # LibTorch brings a {fmt} of its own among its headers, which is found first and has no library to link.
  set(fmt_definitions FMT_HEADER_ONLY=1)
  if(NOT TARGET ${pch})
    file(WRITE ${CMAKE_BINARY_DIR}/${pch}.cpp "// Only here so that the precompiled header has a target.\n")
    add_library(${pch} OBJECT ${CMAKE_BINARY_DIR}/${pch}.cpp)
    target_link_libraries(${pch} PRIVATE tutti_flags tutti_torch)
    target_precompile_headers(${pch} PRIVATE ${ARGN})
    target_compile_definitions(${pch} PRIVATE ${fmt_definitions})
  endif()
  # Programs are compiled as position independent code, too: the header is shared with libraries.
  target_compile_options(${target} PRIVATE -fPIC)
  target_compile_definitions(${target} PRIVATE ${fmt_definitions})
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()
