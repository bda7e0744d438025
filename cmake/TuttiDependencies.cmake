# What is taken from elsewhere. Everything here is a Debian package of the same name, or comes with the wheel.
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(HWY 1.0 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
if(TUTTI_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

if(TUTTI_WITH_TORCH)
  if(SKBUILD AND NOT Torch_DIR AND NOT CMAKE_PREFIX_PATH MATCHES torch)
    # pip builds in an environment of its own, which hides the installed torch behind PYTHONPATH.
    find_package(Python REQUIRED COMPONENTS Interpreter)
    execute_process(
      COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH --unset=PYTHONNOUSERSITE
        ${Python_EXECUTABLE} -c "import torch; print(torch.utils.cmake_prefix_path)"
      OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE no_torch ERROR_QUIET)
    if(no_torch)
      message(FATAL_ERROR "tutti is built against the installed PyTorch, and there is none: pip install torch first")
    endif()
    list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
  endif()
  find_package(Torch 2.11 REQUIRED)
  # The wheel's libraries find each other by path; our programs must find them without LD_LIBRARY_PATH.
  set(CMAKE_BUILD_RPATH ${TORCH_INSTALL_PREFIX}/lib)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${TORCH_INSTALL_PREFIX}/lib")

  add_library(tutti_torch INTERFACE)
  target_link_libraries(tutti_torch INTERFACE torch torch_cpu c10)
  target_include_directories(tutti_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  # In vectors of bools that LibTorch's autograd functions make, g++ 13 sees copies that never are.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(tutti_torch INTERFACE -Wno-error=array-bounds)
  endif()
endif()
