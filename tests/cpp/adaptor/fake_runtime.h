// A diopirt.h in host memory for the adaptor's tests: it counts temporaries, and fails on demand.
#pragma once

#include <diopi/diopirt_ext.h>
#include <diopi/diopirt.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

struct diopiTensor {
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    diopiDtype_t dtype = diopi_dtype_float32;
    diopiDevice_t device = diopi_device;
    int64_t offset = 0;
    std::shared_ptr<std::vector<char>> storage;
};

struct diopiContext {
    std::vector<std::unique_ptr<diopiTensor>> temporaries;
    std::vector<const diopiTensor*> returned;  // of these; they stay readable
};

namespace fake {

using Sizes = std::vector<int64_t>;

// Counts down on each call; the call that reaches zero fails. Negative: never.
struct Faults {
    int require = -1;
    int cast = -1;
    int copy = -1;
    int function = -1;
    int dtype = -1;
    bool throws = false;  // the vendor's own faults are exceptions
};

// What reached the vendor, in order: "cast float64 float32", "copy", "diopiAdd".
struct Record {
    std::vector<std::string> calls;
    std::vector<const diopiTensor*> arguments;  // of the function, in C order, lists spread out
    const void* list = nullptr;
};

extern Faults faults;
extern Record record;

inline bool due(int& fault) { return fault > 0 && --fault == 0; }

// Of the vendor's functions, which give a status or throw.
inline bool fails(int& fault) {
    if (!due(fault)) return false;
    if (faults.throws) throw 3;
    return true;
}

inline int64_t element_size(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8:
        case diopi_dtype_bool: return 1;
        case diopi_dtype_int32:
        case diopi_dtype_float32: return 4;
        default: return 8;
    }
}

inline Sizes contiguous(const Sizes& sizes) {
    Sizes strides(sizes.size());
    int64_t next = 1;
    for (size_t d = sizes.size(); d-- > 0; next *= sizes[d] == 0 ? 1 : sizes[d]) strides[d] = next;
    return strides;
}

inline int64_t count(const diopiTensor& tensor) {
    int64_t product = 1;
    for (const int64_t size : tensor.sizes) product *= size;
    return product;
}

// The byte where the element with this logical, row-major index lies.
inline char* place(const diopiTensor& tensor, int64_t index) {
    int64_t offset = tensor.offset;
    for (size_t d = tensor.sizes.size(); d-- > 0; index /= tensor.sizes[d]) {
        offset += index % tensor.sizes[d] * tensor.strides[d];
    }
    return tensor.storage->data() + offset * element_size(tensor.dtype);
}

double load(const diopiTensor& tensor, int64_t index);
void store(const diopiTensor& tensor, int64_t index, double value);

// A tensor whose elements are 1, 2, 3 ... in logical order; `strides` empty: contiguous.
diopiTensor tensor(diopiDtype_t dtype, const Sizes& sizes, Sizes strides = {}, int64_t offset = 0);

std::vector<double> values(const diopiTensor& tensor);

// How often this process has asked for memory on the heap.
long allocations();

}  // namespace fake
