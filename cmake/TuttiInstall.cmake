# libtutti.so out of all rooms, its headers, and what find_package(tutti) reads. (The tool installs itself, in cli/.)
include(CMakePackageConfigHelpers)
get_property(tutti_rooms GLOBAL PROPERTY TUTTI_ROOMS)
file(WRITE ${CMAKE_BINARY_DIR}/libtutti.cpp "// The rooms are the library; a target needs a source.\n")
add_library(tutti_shared SHARED ${CMAKE_BINARY_DIR}/libtutti.cpp)
set_target_properties(tutti_shared PROPERTIES
  OUTPUT_NAME tutti EXPORT_NAME tutti VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
# Whole rooms: a user may need what the library itself does not.
foreach(room IN LISTS tutti_rooms)
  target_link_libraries(tutti_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${room}>)
endforeach()
target_link_libraries(tutti_shared PUBLIC torch)
target_compile_features(tutti_shared INTERFACE cxx_std_20)

install(TARGETS tutti_shared EXPORT tutti
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tutti ${PROJECT_BINARY_DIR}/include/tutti
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "test_*.h" EXCLUDE)

set(tutti_package ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
install(EXPORT tutti NAMESPACE tutti:: FILE tuttiTargets.cmake DESTINATION ${tutti_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tuttiConfig.cmake.in ${CMAKE_BINARY_DIR}/tuttiConfig.cmake
  INSTALL_DESTINATION ${tutti_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tuttiConfig.cmake ${CMAKE_BINARY_DIR}/tuttiConfigVersion.cmake
  DESTINATION ${tutti_package})
