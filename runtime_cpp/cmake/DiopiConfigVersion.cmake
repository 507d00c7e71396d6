# The version that find_package(Diopi 0.1) asks for: that of the top CMakeLists.txt, by CMake's own rule of compatibility.
include(CMakePackageConfigHelpers)
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../CMakeLists.txt" diopi_version REGEX "^project\\(diopi VERSION ")
string(REGEX REPLACE ".* VERSION ([0-9.]+) .*" "\\1" diopi_version "${diopi_version}")
set(diopi_version_file "${CMAKE_BINARY_DIR}/CMakeFiles/DiopiVersion.cmake")
write_basic_package_version_file("${diopi_version_file}" VERSION "${diopi_version}" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
include("${diopi_version_file}")
