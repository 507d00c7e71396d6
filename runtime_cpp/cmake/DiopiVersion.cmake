# diopi_version(<variable>): the version that the top CMakeLists.txt gives the project.
function(diopi_version variable)
  file(STRINGS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../CMakeLists.txt" line REGEX "^project\\(diopi VERSION ")
  string(REGEX REPLACE ".* VERSION ([0-9.]+) .*" "\\1" version "${line}")
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()
