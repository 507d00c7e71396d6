# find_package(Diopi): diopi_add_vendor() and what belongs to it, for a checkout and for a vendor's own repository.
#
# The functions run diopigen in DIOPI_ROOT, the folder that looks for the package, and take schemas and sources from DIOPI_HOME.
get_filename_component(DIOPI_HOME "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(DIOPI_ROOT "${CMAKE_CURRENT_SOURCE_DIR}")
set(DIOPI_OUT "" CACHE PATH "The folder to generate under, instead of generated/")
set(DIOPI_CONVERT_CONFIG "" CACHE FILEPATH "What the chip lacks, instead of the vendor's convert_config.yaml")
set(DIOPI_PROFILES "" CACHE STRING "More such files: each gives lib/<name>/libdiopi_impl.so over the same operators")
set(DIOPI_CPU native CACHE STRING "The processor that kernels are compiled for where they run on the host, as -march; empty: the compiler's default")
set(DIOPI_CPU_LEVELS "" CACHE STRING "Levels above DIOPI_CPU, e.g. x86-64-v3, that the kernels are compiled for besides; glibc's loader takes the best that the processor has")
set(DIOPI_SANITIZE OFF CACHE STRING "Build with AddressSanitizer and UndefinedBehaviorSanitizer (address, or ON), or ThreadSanitizer (thread)")

list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
include(DiopiToolchain)
include(DiopiPython)
include(DiopiCompiler)
include(DiopiVendor)
