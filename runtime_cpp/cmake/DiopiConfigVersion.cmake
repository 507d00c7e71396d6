# The version that find_package(Diopi 0.1) asks for, by CMake's own rule of compatibility.
include(CMakePackageConfigHelpers)
include("${CMAKE_CURRENT_LIST_DIR}/DiopiVersion.cmake")
diopi_version(diopi_version)
set(diopi_version_file "${CMAKE_BINARY_DIR}/CMakeFiles/DiopiVersion.cmake")
write_basic_package_version_file("${diopi_version_file}" VERSION "${diopi_version}" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
include("${diopi_version_file}")
