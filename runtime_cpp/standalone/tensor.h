// What a tensor handle of standalone points to: a strided view of a storage.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "storage.h"

struct diopiTensor {
    std::shared_ptr<diopi::standalone::Storage> storage;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;  // in elements
    int64_t storage_offset = 0;    // in elements
    int64_t numel = 0;
    diopiDtype_t dtype = diopi_dtype_unsupported;
    uint32_t orders = 0;           // of a description

    void* data() const;
};

namespace diopi::standalone {

// Bytes of one element; throws Error for a number that is no dtype.
int64_t element_bytes(diopiDtype_t dtype);
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& sizes);

struct Layout {
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int64_t storage_offset = 0;

    int64_t numel() const;
    // How many elements the storage must have; throws Error for a negative size, stride or offset.
    int64_t storage_elements() const;
};

std::unique_ptr<diopiTensor> make_tensor(std::shared_ptr<Storage> storage, Layout layout, diopiDtype_t dtype);

}  // namespace diopi::standalone
