// What the functions of a null library do instead of computing: NULL_LIBRARY is the number of one of the ways below.
#pragma once

#include <diopi/diopi_register.h>
#include <diopi/diopirt.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace null_library {

enum Way { kNothing = 1, kZeros = 2, kFirstInput = 3 };

// The elements of a strided tensor in row-major order.
class Elements {
public:
    explicit Elements(diopiConstTensorHandle_t tensor) {
        const void* start = nullptr;
        diopiSize_t sizes{nullptr, 0};
        diopiGetTensorDataConst(tensor, &start);
        diopiGetTensorShape(tensor, &sizes);
        diopiGetTensorStride(tensor, &strides_);
        diopiGetTensorNumel(tensor, &count_);
        diopiGetTensorElemSize(tensor, &size_);
        sizes_ = sizes;
        data_ = static_cast<char*>(const_cast<void*>(start));
    }

    int64_t count() const { return data_ == nullptr ? 0 : count_; }
    int64_t size() const { return size_; }
    char* at(int64_t position) const {
        int64_t offset = 0;
        for (int64_t dim = sizes_.len - 1; dim >= 0; --dim) {
            offset += position % sizes_.data[dim] * strides_.data[dim];
            position /= sizes_.data[dim];
        }
        return data_ + offset * size_;
    }

private:
    char* data_ = nullptr;
    diopiSize_t sizes_{nullptr, 0};
    diopiSize_t strides_{nullptr, 0};
    int64_t count_ = 0;
    int64_t size_ = 0;
};

// One call: every input first, then every output.
class Call {
public:
    explicit Call(diopiContextHandle_t ctx) : ctx_(ctx) {}

    void in(diopiConstTensorHandle_t tensor) {
        if (first_ == nullptr) first_ = tensor;
    }
    template <class Handle>
    void in(Handle* tensors, int64_t count) {
        for (int64_t i = 0; tensors != nullptr && i < count; ++i) in(tensors[i]);
    }

    void out(diopiConstTensorHandle_t tensor) {
        if (NULL_LIBRARY == kNothing || tensor == nullptr) return;
        const Elements target(tensor);
        for (int64_t i = 0; i < target.count(); ++i) write(target.at(i), target.size(), i);
    }
    template <class Handle>
    void out(Handle* tensors, int64_t count) {
        for (int64_t i = 0; tensors != nullptr && i < count; ++i) out(tensors[i]);
    }

    // A tensor that the function allocates gets the form of the first input.
    void allocated(diopiTensorHandle_t* tensor) {
        if (NULL_LIBRARY == kNothing || tensor == nullptr || first_ == nullptr) return;
        diopiSize_t sizes{nullptr, 0};
        diopiDtype_t dtype = diopi_dtype_float32;
        diopiGetTensorShape(first_, &sizes);
        diopiGetTensorDtype(first_, &dtype);
        if (diopiRequireTensor(ctx_, tensor, &sizes, nullptr, dtype, diopi_device) == diopiSuccess) out(*tensor);
    }

    template <class T>
    void host(T* value) {
        if (NULL_LIBRARY != kNothing && value != nullptr) write(reinterpret_cast<char*>(value), sizeof(T), 0);
    }

private:
    // As far as it fits: elements of another size stay zero, a shorter input starts again.
    void write(char* target, int64_t size, int64_t position) const {
        const bool copies = NULL_LIBRARY == kFirstInput && first_ != nullptr;
        if (copies) {
            const Elements source(first_);
            if (source.count() > 0 && source.size() == size) {
                std::memmove(target, source.at(position % source.count()), static_cast<size_t>(size));
                return;
            }
        }
        std::memset(target, 0, static_cast<size_t>(size));
    }

    diopiContextHandle_t ctx_;
    diopiConstTensorHandle_t first_ = nullptr;
};

// The host as a device: its memory, and streams that are the calling thread.
inline int32_t make_stream(diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return 0;
}
inline int32_t accept_stream(diopiStreamHandle_t) { return 0; }
inline void* allocate(uint64_t bytes) { return std::malloc(bytes == 0 ? 1 : bytes); }
inline void release(void* memory) { std::free(memory); }
inline int32_t copy(diopiStreamHandle_t, void* target, const void* source, uint64_t bytes) {
    std::memmove(target, source, bytes);
    return 0;
}
inline const char* last_error() { return ""; }

}  // namespace null_library

extern "C" int32_t initLibrary() {
    diopiRegisterStreamCreateFunc(null_library::make_stream);
    diopiRegisterStreamDestroyFunc(null_library::accept_stream);
    diopiRegisterSynchronizeStreamFunc(null_library::accept_stream);
    diopiRegisterDeviceMallocFunc(null_library::allocate);
    diopiRegisterDevMemFreeFunc(null_library::release);
    diopiRegisterMemcpyH2DAsyncFunc(null_library::copy);
    diopiRegisterMemcpyD2HAsyncFunc(null_library::copy);
    diopiRegisterMemcpyD2DAsyncFunc(null_library::copy);
    diopiRegisterGetLastErrorFunc(null_library::last_error);
    return 0;
}
