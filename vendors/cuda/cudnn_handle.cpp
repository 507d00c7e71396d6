#include "cudnn_handle.h"

#include "library_handles.h"

namespace diopi::launch {
namespace {

class Handle {
public:
    Handle() { check_cudnn(cudnnCreate(&handle_), "cuDNN could not be started"); }
    ~Handle() { static_cast<void>(cudnnDestroy(handle_)); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    cudnnHandle_t get() const { return handle_; }

private:
    cudnnHandle_t handle_ = nullptr;
};

}  // namespace

cudnnHandle_t cudnn() {
    thread_local ByDevice<Handle> handles;
    return handles.current().get();
}

cudnnHandle_t cudnn_on(cudaStream_t stream) {
    const cudnnHandle_t handle = cudnn();
    check_cudnn(cudnnSetStream(handle, stream), "cuDNN did not take the stream");
    return handle;
}

}  // namespace diopi::launch
