// What a context handle of standalone points to: a stream, and the tensors that operators asked for on the way.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor.h"

struct diopiContext {
public:
    diopiContext();  // with a stream of the current device
    ~diopiContext();
    diopiContext(const diopiContext&) = delete;
    diopiContext& operator=(const diopiContext&) = delete;

    diopiStreamHandle_t stream() const { return stream_; }
    void synchronize() const;

    // A tensor that lives until it is returned, reset() at the latest.
    diopiTensorHandle_t require_tensor(diopi::standalone::Layout layout, diopiDtype_t dtype, diopiDevice_t device);
    void return_tensor(diopiTensorHandle_t tensor);
    void reset();
    void check_guards() const;

private:
    void keep_for_later(const diopiTensor& tensor);
    std::shared_ptr<diopi::standalone::Storage> storage_of(uint64_t bytes, diopiDevice_t device);

    diopiStreamHandle_t stream_;
    std::vector<std::unique_ptr<diopiTensor>> tensors_;
    // Storages of tensors that were taken back. The stream runs in order, so they may be used again before it is done.
    std::vector<std::shared_ptr<diopi::standalone::Storage>> cache_;
    uint64_t cached_bytes_ = 0;
};
