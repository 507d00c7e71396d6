# The compiler and the flags that every library of diopi is built with.
include(CheckCXXCompilerFlag)
include(CheckLanguage)

# enable_language(CXX), which ends with the reason where there is no compiler that works.
macro(diopi_enable_cxx)
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
    message(FATAL_ERROR "There is no C++ compiler: install g++ 11 or newer, or clang++ 14 or newer, or name one with -DCMAKE_CXX_COMPILER=<path>. "
                        "It compiles C++17 for a vendor's library, C++20 for the PyTorch backend.")
  endif()
  enable_language(CXX)
endmacro()

# The settings that libraries are made with, in the scope of the caller: a folder of this project, or a function.
macro(diopi_use_settings)
  if(NOT CMAKE_CXX_COMPILER_LOADED)
    message(FATAL_ERROR "diopi_add_vendor compiles C++: give project() the language CXX.")
  endif()
  find_package(Threads REQUIRED)
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  # The libraries lie in one folder and find each other there.
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${DIOPI_BINARY_DIR}/lib")
  set(CMAKE_BUILD_RPATH "$ORIGIN")
  set(CMAKE_INSTALL_RPATH "$ORIGIN")
  diopi_find_cpu_options()
  diopi_find_compiler_cache()
endmacro()

# For which processor kernels are compiled that run on the host: DIOPI_CPU_OPTIONS; and DIOPI_CAN_WIDEN, whether the compiler
# can be told to use vectors of 512 bits.
macro(diopi_find_cpu_options)
  check_cxx_compiler_flag(-mprefer-vector-width=512 DIOPI_CAN_WIDEN)
  set(DIOPI_CPU_OPTIONS "")
  if(DIOPI_CPU)
    string(MAKE_C_IDENTIFIER "DIOPI_CPU_${DIOPI_CPU}_IS_KNOWN" known)
    check_cxx_compiler_flag("-march=${DIOPI_CPU}" ${known})
    if(${known})
      set(DIOPI_CPU_OPTIONS "-march=${DIOPI_CPU}")
      # Of a processor that clang knows more of than of its rules it would complain in each unit.
      set(quiet -Wno-invalid-feature-combination)
      if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        check_cxx_compiler_flag(${quiet} DIOPI_CLANG_CHECKS_FEATURES)
        if(DIOPI_CLANG_CHECKS_FEATURES)
          list(APPEND DIOPI_CPU_OPTIONS ${quiet})
        endif()
      endif()
    elseif(NOT DIOPI_CPU STREQUAL "native")
      message(FATAL_ERROR "The C++ compiler does not know the processor '${DIOPI_CPU}': give DIOPI_CPU a value that its option -march takes.")
    endif()
  endif()
endmacro()

# A compiler cache where there is one. ccache needs to be told that precompiled headers may be cached.
set(DIOPI_COMPILER_CACHE AUTO CACHE STRING "The compiler cache: AUTO (ccache, where it is there), OFF, or the path of one")
macro(diopi_find_compiler_cache)
  set(DIOPI_PRECOMPILE_OPTIONS "")
  set(cache "")
  if(DIOPI_COMPILER_CACHE STREQUAL "AUTO")
    find_program(DIOPI_CCACHE ccache)
    set(cache "${DIOPI_CCACHE}")
  elseif(DIOPI_COMPILER_CACHE)
    set(cache "${DIOPI_COMPILER_CACHE}")
  endif()
  if(cache AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${cache}")
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    set(DIOPI_PRECOMPILE_OPTIONS $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  endif()
endmacro()

function(diopi_precompile_headers target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE ${DIOPI_PRECOMPILE_OPTIONS})
endfunction()

# Where a wheel is built, no file of it tells where: messages name sources from the top of the sources on.
if(SKBUILD)
  foreach(folder "${DIOPI_HOME}" "${DIOPI_ROOT}")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${folder}=.>")
  endforeach()
endif()

# Who asks for a sanitizer has it in the whole folder: in the libraries that a vendor links, too.
if(DIOPI_SANITIZE)
  if(DIOPI_SANITIZE STREQUAL "thread")
    set(DIOPI_SANITIZERS -fsanitize=thread)
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)  # headers of torch have fences, which ThreadSanitizer does not follow
  elseif(DIOPI_SANITIZE MATCHES "^(address|ON)$")
    set(DIOPI_SANITIZERS -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  elseif(DIOPI_SANITIZE STREQUAL "undefined")
    set(DIOPI_SANITIZERS -fsanitize=undefined -fno-sanitize-recover=undefined)
  else()
    message(FATAL_ERROR "DIOPI_SANITIZE is '${DIOPI_SANITIZE}': choose one of address, undefined, thread, OFF.")
  endif()
  # -O1 compiles in half the time, and a trace needs lines only
  set(DIOPI_SANITIZE_OPTIONS -O1 -g1 ${DIOPI_SANITIZERS} -fno-omit-frame-pointer)
  add_compile_options(${DIOPI_SANITIZE_OPTIONS})
  add_link_options(${DIOPI_SANITIZERS})
endif()

# Warnings are errors in our sources; what a package brings is included as a system header.
# clang's -Wall asks for braces around each base class of an aggregate, g++'s does not. g++ before 12 takes the product of two
# bools in a template for a mistake.
set(DIOPI_STRICT_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror>" "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces>"
                         "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,12>>:-Wno-int-in-bool-context>"
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
