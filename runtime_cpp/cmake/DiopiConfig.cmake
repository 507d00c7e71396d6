# find_package(Diopi): diopi_add_vendor() and what belongs to it, for a checkout, an installed SDK and a vendor's own repository.
#
# The functions run diopigen in DIOPI_ROOT, the folder that looks for the package, take schemas and sources from DIOPI_HOME and
# build in DIOPI_BINARY_DIR. Every variable that this file sets begins with DIOPI_; settings of CMake's, such as
# CMAKE_CXX_STANDARD, stay as they are: diopi_add_vendor has its own.
cmake_policy(VERSION 3.21...4.0)
get_filename_component(DIOPI_HOME "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(DIOPI_ROOT "${CMAKE_CURRENT_SOURCE_DIR}")
set(DIOPI_BINARY_DIR "${CMAKE_CURRENT_BINARY_DIR}")
set(DIOPI_OUT "" CACHE PATH "The folder to generate under, instead of generated/")
set(DIOPI_CONVERT_CONFIG "" CACHE FILEPATH "What the chip lacks, instead of the vendor's convert_config.yaml")
set(DIOPI_PROFILES "" CACHE STRING "More such files: each gives lib/<name>/libdiopi_impl.so over the same operators")
set(DIOPI_CPU native CACHE STRING "The processor that kernels are compiled for where they run on the host, as -march; empty: the compiler's default")
set(DIOPI_CPU_LEVELS "" CACHE STRING "Levels above DIOPI_CPU, e.g. x86-64-v3, that the kernels are compiled for besides; glibc's loader takes the best that the processor has")
set(DIOPI_SANITIZE OFF CACHE STRING "Build with AddressSanitizer and UndefinedBehaviorSanitizer (address, or ON), UndefinedBehaviorSanitizer alone (undefined), or ThreadSanitizer (thread)")
option(DIOPI_INSTALL "Let `cmake --install` copy the vendor's libraries, the contract's headers and what finds them" "${PROJECT_IS_TOP_LEVEL}")

include("${CMAKE_CURRENT_LIST_DIR}/DiopiToolchain.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/DiopiPython.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/DiopiCompiler.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/DiopiVersion.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/DiopiInstall.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/DiopiVendor.cmake")
