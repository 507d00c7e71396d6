# nvcc for the portable kernels, and NVIDIA's libraries: from the toolkit, or from packages of the Python environment.
include(CheckLanguage)

set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "Compute capabilities to build for, e.g. 80;90")
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "There is no CUDA compiler: install the CUDA toolkit, or name nvcc with -DCMAKE_CUDA_COMPILER=<path>.")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# Of host code alone: device code is optimized in whole whatever this says. The host's part of a kernel only launches it,
# and -O3 took more than half of the time that nvcc took for it.
set(CMAKE_CUDA_FLAGS_RELEASE "-O1")
find_package(CUDAToolkit REQUIRED)

# Makes the target diopi_<name>, a library of NVIDIA with its header, from the toolkit or from the package that has it.
# Ends where there is none, or, if OPTIONAL, makes no target.
#   diopi_find_nvidia(cublas HEADER cublas_v2.h VERSION 13 PACKAGE nvidia-cublas)
function(diopi_find_nvidia name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIONAL" "HEADER;VERSION;PACKAGE" "")
  if(TARGET CUDA::${name})
    find_path(header ${arg_HEADER} PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
    if(header)
      add_library(diopi_${name} INTERFACE)
      target_link_libraries(diopi_${name} INTERFACE CUDA::${name})
      return()
    endif()
  endif()
  set(search "import nvidia, pathlib; print(*[h.parent.parent for p in nvidia.__path__ for h in pathlib.Path(p).glob('*/include/${arg_HEADER}')], sep=';')")
  execute_process(COMMAND ${DIOPI_PYTHON} -c "${search}" OUTPUT_VARIABLE roots OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  foreach(root IN LISTS roots)
    file(GLOB library "${root}/lib/lib${name}.so.${arg_VERSION}")
    if(library)
      add_library(diopi_${name} INTERFACE)
      target_include_directories(diopi_${name} SYSTEM INTERFACE "${root}/include")
      target_link_libraries(diopi_${name} INTERFACE "${library}")
      return()
    endif()
  endforeach()
  if(NOT arg_OPTIONAL)
    message(FATAL_ERROR "lib${name}.so.${arg_VERSION} is missing: run '${Python_EXECUTABLE} -m pip install ${arg_PACKAGE}'.")
  endif()
endfunction()

# Makes the target diopi_cudnn_frontend, the headers of cuDNN's graphs and NVRTC, which they call. They come with the
# package nvidia-cudnn-frontend or the toolkit, or are named with -DDIOPI_CUDNN_FRONTEND=<folder>; without them there is
# no such target.
function(diopi_find_cudnn_frontend)
  set(package nvidia-cudnn-frontend)
  set(search "import importlib.metadata as m; print(*[f.locate().parent for f in m.files('${package}') if f.name == 'cudnn_frontend.h'], sep=';')")
  execute_process(COMMAND ${DIOPI_PYTHON} -c "${search}" OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(DIOPI_CUDNN_FRONTEND cudnn_frontend.h PATHS ${folders} ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH
            DOC "The folder of cudnn_frontend.h")
  diopi_find_nvidia(nvrtc HEADER nvrtc.h VERSION ${CUDAToolkit_VERSION_MAJOR} OPTIONAL)
  if(NOT DIOPI_CUDNN_FRONTEND OR NOT TARGET diopi_nvrtc)
    message(WARNING "Attention and convolutions are built without cuDNN's kernels, and compute halves in float32: run '${Python_EXECUTABLE} -m pip install ${package} nvidia-cuda-nvrtc' for them.")
    return()
  endif()
  add_library(diopi_cudnn_frontend INTERFACE)
  target_include_directories(diopi_cudnn_frontend SYSTEM INTERFACE "${DIOPI_CUDNN_FRONTEND}")
  # Graphs are not written as JSON, whose parser takes longer to compile than all else.
  target_compile_definitions(diopi_cudnn_frontend INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
  target_link_libraries(diopi_cudnn_frontend INTERFACE diopi_nvrtc)
endfunction()
