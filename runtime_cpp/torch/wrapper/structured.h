// The three forms of a structured operator (functional, out, in-place) over torch's own meta functions.
//
// A generated kernel class derives from at::meta::structured_<op> and adds `impl`, which calls the C function. These
// templates give that class its outputs, so that shapes, dtypes, strides, checks and messages are torch's.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <type_traits>

#include "device/device.h"
#include "releases.h"

namespace dipu {

template <class Kernel>
inline constexpr bool kIsIterator = std::is_base_of_v<at::TensorIteratorBase, Kernel>;

// An uninitialized device tensor; contiguous (or in the options' memory format) when `strides` is empty.
DIPU_API at::Tensor new_output(c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options);

// Checks dtype and device of an out= tensor, resizes it, and restrides it if its size changed.
DIPU_API void resize_output(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                            const c10::TensorOptions& options);

// Checks that an in-place operator may write its result to `self`.
DIPU_API void check_inplace(const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options);

// A tensor with `strides` to compute into when `out` has others; nothing when they are the same.
DIPU_API std::optional<at::Tensor> stride_proxy(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                                const c10::TensorOptions& options);

DIPU_API void copy_proxy(const at::Tensor& out, const at::Tensor& proxy);

inline c10::DeviceIndex output_device(const c10::TensorOptions& options) {
    const c10::Device device = options.device();
    return device.has_index() ? device.index() : current_device();
}

// Allocates N outputs; op.outputs[i] after op.meta(...).
template <class Kernel, std::size_t N>
class Functional final : public Kernel {
public:
    void set_output_strided(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                            c10::TensorOptions options DIPU_NAMES_PARAM) override {
        set_output_raw_strided(index, sizes, strides, options DIPU_NAMES_ARG);
    }
    void set_output_raw_strided(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                c10::TensorOptions options DIPU_NAMES_PARAM) override {
        scope_.enter(output_device(options));
        outputs[index] = new_output(sizes, strides, options);
        if constexpr (kIsIterator<Kernel>) {
            at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options DIPU_NAMES_ARG);
        }
    }
    const at::Tensor& maybe_get_output(int64_t index) override { return outputs[index]; }

    const at::Tensor& output(std::size_t index) const { return outputs[index]; }

    // The dtype that inputs are cast to: `input`'s own where the meta function asked for no common one.
    c10::ScalarType compute_dtype(const at::Tensor& input) const {
        return this->common_dtype_ == c10::ScalarType::Undefined ? input.scalar_type() : this->common_dtype_;
    }

    std::array<at::Tensor, N> outputs;

private:
    DeviceScope scope_{current_device()};
};

// What the out and in-place forms share: outputs that the caller gave, and proxies where their strides do not suit.
template <class Kernel, std::size_t N, bool kInplace>
class Given final : public Kernel {
public:
    template <class... Tensors>
    explicit Given(const Tensors&... outputs) : given_{&outputs...} {
        static_assert(sizeof...(Tensors) == N, "one tensor for each output");
    }

    void set_output_strided(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                            c10::TensorOptions options DIPU_NAMES_PARAM) override {
        accept(index, sizes, strides, options);
        proxies_[index] = stride_proxy(*given_[index], sizes, strides, options);
        set_iterator(index, sizes, strides, options DIPU_NAMES_ARG);
    }
    void set_output_raw_strided(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                c10::TensorOptions options DIPU_NAMES_PARAM) override {
        accept(index, sizes, strides, options);
        set_iterator(index, sizes, strides, options DIPU_NAMES_ARG);
    }
    const at::Tensor& maybe_get_output(int64_t index) override { return output(index); }

    // The tensor that `impl` writes.
    const at::Tensor& output(std::size_t index) const {
        return proxies_[index].has_value() ? *proxies_[index] : *given_[index];
    }

    // The dtype that inputs are cast to: `input`'s own where the meta function asked for no common one.
    c10::ScalarType compute_dtype(const at::Tensor& input) const {
        return this->common_dtype_ == c10::ScalarType::Undefined ? input.scalar_type() : this->common_dtype_;
    }

    // Copies the proxies to the caller's tensors.
    void flush() const {
        for (std::size_t index = 0; index < N; ++index) {
            if (proxies_[index].has_value()) [[unlikely]] {
                copy_proxy(*given_[index], *proxies_[index]);
            }
        }
    }

private:
    void accept(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options) {
        scope_.enter(output_device(options));
        if constexpr (kInplace) {
            check_inplace(*given_[index], sizes, options);
        } else {
            resize_output(*given_[index], sizes, strides, options);
        }
    }
    void set_iterator(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      c10::TensorOptions options DIPU_NAMES_PARAM) {
        if constexpr (kIsIterator<Kernel>) {
            at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options DIPU_NAMES_ARG);
        }
    }

    std::array<const at::Tensor*, N> given_;
    std::array<std::optional<at::Tensor>, N> proxies_;
    DeviceScope scope_{current_device()};
};

template <class Kernel, std::size_t N>
using OutVariant = Given<Kernel, N, false>;

template <class Kernel, std::size_t N = 1>
using Inplace = Given<Kernel, N, true>;

}  // namespace dipu
