#include "cudnn_handle.h"

#include "library_handles.h"

namespace diopi::launch {

cudnnHandle_t cudnn() {
    thread_local ByDevice<LibraryHandle<cudnnHandle_t, kCudnn, cudnnCreate, cudnnDestroy>> handles;
    return handles.current().get();
}

cudnnHandle_t cudnn_on(cudaStream_t stream) {
    const cudnnHandle_t handle = cudnn();
    check_cudnn(cudnnSetStream(handle, stream), "cuDNN did not take the stream");
    return handle;
}

}  // namespace diopi::launch
