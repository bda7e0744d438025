# tutti_report_template(<result> <without>): a source that defines tutti::observe::page_template: made of report/ at build time, or
# <without> where the charting library is not there (`tools/setup report` fetches it; a build is not to fail for a page).
set(TUTTI_REPORT_LIBRARY ${PROJECT_SOURCE_DIR}/.venv/report/uplot/static CACHE PATH "Folder with uPlot.iife.js and uPlot.min.css")

function(tutti_report_template result without)
  set(report ${PROJECT_SOURCE_DIR}/report)
  set(library ${TUTTI_REPORT_LIBRARY}/uPlot.iife.js ${TUTTI_REPORT_LIBRARY}/uPlot.min.css)
  find_package(Python 3.9 COMPONENTS Interpreter)
  foreach(file IN LISTS library)
    if(NOT EXISTS ${file} OR NOT Python_EXECUTABLE)
      message(STATUS "Report page: left out, since its charting library is not there; tools/setup report fetches it")
      set(${result} ${without} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  # The page names its parts.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${report}/page.html)
  file(STRINGS ${report}/page.html parts REGEX "TUTTI:[a-z_]+\\.(js|css)")
  list(TRANSFORM parts REPLACE ".*TUTTI:([a-z_.]+).*" "${report}/\\1")
  set(template ${CMAKE_CURRENT_BINARY_DIR}/page_template.html)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/page_template.cpp)
  add_custom_command(OUTPUT ${source} BYPRODUCTS ${template}
    COMMAND ${Python_EXECUTABLE} ${report}/assemble --template --library ${TUTTI_REPORT_LIBRARY} --out ${template}
    COMMAND ${Python_EXECUTABLE} ${report}/embed --out ${source} ${template}
    DEPENDS ${report}/assemble ${report}/embed ${report}/page.html ${parts} ${library}
    COMMENT "Making the report page" VERBATIM)
  set(${result} ${source} PARENT_SCOPE)
endfunction()
