// The steps of a function that is composed of other functions. Statuses stick: after the first failure nothing is done.
#pragma once

#include <diopi/diopirt.h>
#include <diopi/functions.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "dtypes.h"
#include "number.h"
#include "sizes.h"

namespace diopi::composite {

// A value for a parameter that takes an address, e.g. At<int64_t>{2}.get()
template <class T>
struct At {
    T value;
    const T* get() const { return &value; }
};

// Handles for a parameter that takes a list of them.
template <class Handle, size_t count>
struct List {
    Handle handles[count];
    Handle* get() { return handles; }
};

class Steps {
public:
    explicit Steps(diopiContextHandle_t ctx) noexcept : ctx_(ctx) {}
    Steps(const Steps&) = delete;
    Steps& operator=(const Steps&) = delete;

    diopiError_t status() const noexcept { return status_; }

    template <class Step>
    void run(const Step& step) {
        if (status_ != diopiSuccess) return;
        const diopiError_t status = step();
        keep(status);
    }

    // A contiguous tensor that belongs to the context.
    diopiTensorHandle_t temporary(diopiDtype_t dtype, const Sizes& sizes) noexcept {
        if (!sizes.complete()) keep(diopiErrorOccurred);
        diopiTensorHandle_t tensor = nullptr;
        const diopiSize_t view = sizes.view();
        run([&] { return diopiRequireTensor(ctx_, &tensor, &view, nullptr, dtype, diopi_device); });
        return tensor;
    }

    // A tensor of no dimension with the dtype of `like`.
    diopiTensorHandle_t filled(const Number& value, diopiConstTensorHandle_t like) noexcept {
        return filled(value, dtype(like));
    }
    // The same, but a fraction makes a float of an integer's dtype, and a number an integer of a bool's.
    diopiTensorHandle_t widened(const Number& value, diopiConstTensorHandle_t like) noexcept {
        diopiDtype_t wide = dtype(like);
        if (!value.whole()) wide = floating(wide);
        return filled(value, wide == diopi_dtype_bool ? diopi_dtype_int64 : wide);
    }

    diopiDtype_t dtype(diopiConstTensorHandle_t tensor) noexcept {
        diopiDtype_t dtype = diopi_dtype_unsupported;
        run([&] { return diopiGetTensorDtype(tensor, &dtype); });
        return dtype;
    }

    Sizes shape(diopiConstTensorHandle_t tensor) noexcept {
        diopiSize_t sizes{nullptr, 0};
        run([&] { return diopiGetTensorShape(tensor, &sizes); });
        return sizes;
    }

    Number numel(diopiConstTensorHandle_t tensor) noexcept {
        int64_t count = 0;
        run([&] { return diopiGetTensorNumel(tensor, &count); });
        return count;
    }

    Number rank(diopiConstTensorHandle_t tensor) noexcept { return shape(tensor).length(); }

    Number size(diopiConstTensorHandle_t tensor, const Number& dim) noexcept {
        const Sizes sizes = shape(tensor);
        const int64_t at = place(dim.integer(), sizes.length());
        return at < 0 ? Number(0) : Number(sizes[at]);
    }

    static Number length(const diopiSize_t& list) noexcept { return list.len; }

    // -- lists ---------------------------------------------------------------------------------------------------

    static Sizes joined(std::initializer_list<Sizes> lists) noexcept {
        Sizes all;
        for (const Sizes& list : lists) all.append(list);
        return all;
    }

    // As many of the last dimensions as the list has numbers, from the end: -2, -1.
    static Sizes last(const Sizes& list) noexcept {
        Sizes dims;
        for (int64_t dim = -list.length(); dim < 0; ++dim) dims.append(dim);
        return dims;
    }

    // `first` and the dimensions behind it.
    Sizes dims_from(diopiConstTensorHandle_t tensor, const Number& first) noexcept {
        const int64_t rank = shape(tensor).length();
        Sizes dims;
        for (int64_t dim = place(first.integer(), rank); dim >= 0 && dim < rank; ++dim) dims.append(dim);
        return dims;
    }

    // Every dimension but `left_out`; a failure if there is none, for no dimension means all of them to a reduction.
    Sizes others(diopiConstTensorHandle_t tensor, std::initializer_list<Sizes> left_out) noexcept {
        const Sizes dims = joined(left_out);
        const int64_t rank = shape(tensor).length();
        Sizes left;
        for (int64_t i = 0; i < rank; ++i) {
            bool stays = true;
            for (int64_t k = 0; k < dims.length(); ++k) stays = stays && place(dims[k], rank) != i;
            if (stays) left.append(i);
        }
        if (left.length() == 0) keep(diopiErrorOccurred);
        return left;
    }

    // -- shapes of temporaries -------------------------------------------------------------------------------------

    Sizes broadcast(std::initializer_list<diopiConstTensorHandle_t> tensors) noexcept {
        Sizes all;
        for (diopiConstTensorHandle_t tensor : tensors) {
            if (tensor != nullptr) widen(all, shape(tensor));
        }
        return all;
    }

    // Without the dimensions `dims`, or with one element there; no dimension means all.
    Sizes reduced(diopiConstTensorHandle_t tensor, const Sizes& dims, bool keepdim = false) noexcept {
        const Sizes sizes = shape(tensor);
        Sizes left;
        for (int64_t i = 0; i < sizes.length(); ++i) {
            bool goes = dims.length() == 0;
            for (int64_t k = 0; k < dims.length(); ++k) goes = goes || place(dims[k], sizes.length()) == i;
            if (!goes) left.append(sizes[i]);
            if (goes && keepdim) left.append(1);
        }
        return left;
    }

    Sizes with_size(diopiConstTensorHandle_t tensor, const Number& dim, const Number& size) noexcept {
        Sizes sizes = shape(tensor);
        const int64_t at = place(dim.integer(), sizes.length());
        if (at >= 0) sizes[at] = size.integer();
        return sizes;
    }

    Sizes unsqueezed(diopiConstTensorHandle_t tensor, const Number& dim) noexcept {
        Sizes sizes = shape(tensor);
        const int64_t at = place(dim.integer(), sizes.length() + 1);
        if (at >= 0) sizes.insert(at, 1);
        return sizes;
    }

    Sizes transposed(diopiConstTensorHandle_t tensor, const Number& dim0, const Number& dim1) noexcept {
        Sizes sizes = shape(tensor);
        const int64_t a = place(dim0.integer(), sizes.length());
        const int64_t b = place(dim1.integer(), sizes.length());
        if (a >= 0 && b >= 0) std::swap(sizes[a], sizes[b]);
        return sizes;
    }

private:
    void keep(diopiError_t status) noexcept {
        if (status_ == diopiSuccess) status_ = status;
    }

    diopiTensorHandle_t filled(const Number& value, diopiDtype_t dtype) noexcept {
        const diopiTensorHandle_t tensor = temporary(dtype, Sizes());
        run([&] { return diopiFill(ctx_, tensor, value.scalar()); });
        return tensor;
    }

    // A dimension that counts from the start; -1 and a failure if there is none.
    int64_t place(int64_t dim, int64_t rank) noexcept {
        const int64_t at = dim < 0 ? dim + rank : dim;
        if (at >= 0 && at < rank) return at;
        if (rank > 0 || (dim != 0 && dim != -1)) keep(diopiErrorOccurred);  // a tensor of no dimension takes 0 and -1
        return -1;
    }

    void widen(Sizes& all, const Sizes& one) noexcept {
        while (all.complete() && all.length() < one.length()) all.insert(0, 1);
        for (int64_t i = 0; i < one.length(); ++i) {
            int64_t& size = all[all.length() - one.length() + i];
            if (size == 1) size = one[i];
        }
    }

    diopiContextHandle_t ctx_;
    diopiError_t status_ = diopiSuccess;
};

}  // namespace diopi::composite
