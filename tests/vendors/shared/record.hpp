// What the vendors of these tests have in common: each writes down the tensors that reach it, and computes on the host.
#pragma once

#include <diopi/diopirt.h>

#include <string>
#include <vector>

namespace shared {

// e.g. "diopiRelu input: 9 [2, 3] (1, 2)\n", dtype, sizes and strides
inline std::string& record() {
    static std::string text;
    return text;
}

inline std::vector<int64_t> numbers(const diopiSize_t& size) {
    return std::vector<int64_t>(size.data, size.data + size.len);
}

inline std::string list(const std::vector<int64_t>& values) {
    std::string text;
    for (const int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
    return text;
}

struct View {
    diopiDtype_t dtype = diopi_dtype_unsupported;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    char* data = nullptr;

    explicit View(diopiConstTensorHandle_t tensor) {
        diopiSize_t size{};
        const void* address = nullptr;
        diopiGetTensorDtype(tensor, &dtype);
        diopiGetTensorShape(tensor, &size);
        sizes = numbers(size);
        diopiGetTensorStride(tensor, &size);
        strides = numbers(size);
        diopiGetTensorDataConst(tensor, &address);
        data = const_cast<char*>(static_cast<const char*>(address));
    }

    int64_t numel() const {
        int64_t count = 1;
        for (const int64_t size : sizes) count *= size;
        return count;
    }

    double get(int64_t index) const {
        return dtype == diopi_dtype_float64 ? *at<double>(index) : static_cast<double>(*at<float>(index));
    }

    void set(int64_t index, double value) const {
        if (dtype == diopi_dtype_float64) {
            *at<double>(index) = value;
        } else {
            *at<float>(index) = static_cast<float>(value);
        }
    }

private:
    template <class T>
    T* at(int64_t index) const {
        int64_t offset = 0;
        for (size_t dim = sizes.size(); dim-- > 0; index /= sizes[dim]) offset += index % sizes[dim] * strides[dim];
        return reinterpret_cast<T*>(data) + offset;
    }
};

inline View seen(const char* function, const char* name, diopiConstTensorHandle_t tensor) {
    View view(tensor);
    record() += std::string(function) + " " + name + ": " + std::to_string(view.dtype) + " [" + list(view.sizes) +
                "] (" + list(view.strides) + ")\n";
    return view;
}

template <class Function>
diopiError_t unary(const char* name, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                   const Function& function) {
    const View to = seen(name, "out", out), from = seen(name, "input", input);
    for (int64_t index = 0; index < to.numel(); ++index) to.set(index, function(from.get(index)));
    return diopiSuccess;
}

// What conversions are made of; nothing is written down.
inline diopiError_t copy(diopiConstTensorHandle_t from, diopiTensorHandle_t to) {
    const View source(from), target(to);
    for (int64_t index = 0; index < target.numel(); ++index) target.set(index, source.get(index));
    return diopiSuccess;
}

}  // namespace shared
