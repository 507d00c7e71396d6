# The compiler and the flags that every library of diopi is built with.
include(CheckCXXCompilerFlag)
include(CheckLanguage)

check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
  unset(CMAKE_CXX_COMPILER CACHE) # the next call looks again
  if(DEFINED ENV{CXX})
    find_program(found NAMES "$ENV{CXX}" NO_CACHE)
  else()
    find_program(found NAMES c++ g++ clang++ NO_CACHE)
  endif()
  if(found)
    file(READ "${CMAKE_BINARY_DIR}/CMakeFiles/CMakeError.log" log)
    message(FATAL_ERROR "The C++ compiler '${found}' cannot build a program. CMake's test of it said:\n${log}")
  endif()
  message(FATAL_ERROR "There is no C++ compiler: install g++ 9 or newer, or name one with -DCMAKE_CXX_COMPILER=<path>.")
endif()
enable_language(CXX)
find_package(Threads REQUIRED)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "How to optimize" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # asserts stay: they cost nothing that a measurement shows
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# For which processor kernels are compiled that run on the host: DIOPI_CPU_OPTIONS.
set(DIOPI_CPU_OPTIONS "")
if(DIOPI_CPU)
  string(MAKE_C_IDENTIFIER "DIOPI_CPU_${DIOPI_CPU}_IS_KNOWN" known)
  check_cxx_compiler_flag("-march=${DIOPI_CPU}" ${known})
  if(${known})
    set(DIOPI_CPU_OPTIONS "-march=${DIOPI_CPU}")
  elseif(NOT DIOPI_CPU STREQUAL "native")
    message(FATAL_ERROR "The C++ compiler does not know the processor '${DIOPI_CPU}': give DIOPI_CPU a value that its option -march takes.")
  endif()
endif()

check_cxx_compiler_flag(-mprefer-vector-width=512 DIOPI_CAN_WIDEN)

# Where a wheel is built, no file of it tells where: messages name sources from the top of the sources on.
if(SKBUILD)
  foreach(folder "${DIOPI_HOME}" "${DIOPI_ROOT}")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${folder}=.>")
  endforeach()
endif()

# The libraries lie in one folder and find each other there.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_BUILD_RPATH "$ORIGIN")
set(CMAKE_INSTALL_RPATH "$ORIGIN")

if(DIOPI_SANITIZE)
  if(DIOPI_SANITIZE STREQUAL "thread")
    set(sanitizers -fsanitize=thread)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      add_compile_options(-Wno-tsan)  # headers of torch have fences, which ThreadSanitizer does not follow
    endif()
  elseif(DIOPI_SANITIZE MATCHES "^(address|ON)$")
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  else()
    message(FATAL_ERROR "DIOPI_SANITIZE is '${DIOPI_SANITIZE}': choose one of address, thread, OFF.")
  endif()
  # -O1 compiles in half the time, and a trace needs lines only
  set(DIOPI_SANITIZE_OPTIONS -O1 -g1 ${sanitizers} -fno-omit-frame-pointer)
  add_compile_options(${DIOPI_SANITIZE_OPTIONS})
  add_link_options(${sanitizers})
endif()

# A compiler cache where there is one. ccache needs to be told that precompiled headers may be cached.
set(DIOPI_COMPILER_CACHE AUTO CACHE STRING "The compiler cache: AUTO (ccache, where it is there), OFF, or the path of one")
if(DIOPI_COMPILER_CACHE STREQUAL "AUTO")
  find_program(DIOPI_CCACHE ccache)
  set(cache "${DIOPI_CCACHE}")
elseif(DIOPI_COMPILER_CACHE)
  set(cache "${DIOPI_COMPILER_CACHE}")
endif()
if(cache AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${cache}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# Warnings are errors in our sources; what a package brings is included as a system header.
set(DIOPI_STRICT_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror>"
                         "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Werror>")
function(diopi_compile_strictly target)
  target_compile_options(${target} PRIVATE ${DIOPI_STRICT_OPTIONS})
endfunction()

# Every symbol of the library must be found when it is linked. A sanitized library finds some only in the process.
function(diopi_link_completely target)
  if(NOT DIOPI_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# The contract's headers carry no visibility, so a version script says what leaves a library. Its own definitions win
# inside it: another vendor's library in the same process cannot take them over.
function(diopi_export target script)
  target_link_options(${target} PRIVATE "-Wl,--version-script=${script}" -Wl,-Bsymbolic-functions)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()
